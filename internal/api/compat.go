package api

import (
	"crypto/sha256"
	"net/http"

	"proctor/internal/compat"
	"proctor/internal/compat/mcptools"
	"proctor/internal/compat/nemogym"
	"proctor/internal/compat/openenv"
	"proctor/internal/compat/swerex"

	"github.com/go-chi/chi/v5"
)

// protocols are the servers of other people's protocols.
type protocols struct {
	swerex  *swerex.Server
	openenv *openenv.Server
	nemogym *nemogym.Server
}

func newProtocols(o Options) protocols {
	secret := sha256.New() // of keys that the data folder keeps: sessions survive a restart
	for _, k := range o.Keys {
		secret.Write([]byte(k.Secret))
	}
	return protocols{swerex.New(o.Rollouts), openenv.New(o.Rollouts, o.Version), nemogym.New(o.Rollouts, secret.Sum(nil))}
}

func (s *Server) compatRoutes(r chi.Router) {
	r.HandleFunc("/v1/rollouts/{id}/mcp", s.agent(s.mcp))
	r.HandleFunc("/compat/swerex/{id}", s.agent(s.sweRex))
	r.HandleFunc("/compat/swerex/{id}/*", s.agent(s.sweRex))
	environments(r, func(h handler) http.HandlerFunc { return s.trainer(RoleTrainer, h) }, s)
}

// environments routes the protocols whose clients may have no key; guard says who is let through.
func environments(r chi.Router, guard func(handler) http.HandlerFunc, s *Server) {
	r.HandleFunc("/compat/openenv/*", guard(s.openEnv))
	r.HandleFunc("/compat/nemo-gym", guard(s.nemoGym))
	r.HandleFunc("/compat/nemo-gym/*", guard(s.nemoGym))
}

// CompatHandler serves OpenEnv and NeMo-Gym without a key, for clients that cannot send one. Whoever
// reaches it can make rollouts: it belongs on a loopback listener of its own.
func (s *Server) CompatHandler() http.Handler {
	r := s.router()
	environments(r, s.handle, s)
	return r
}

// mcp speaks the Model Context Protocol to a rollout's agent.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request, id, principal string) error {
	if _, err := s.rollouts.Get(r.Context(), id); err != nil {
		return err
	}
	mcptools.Handler(s.rollouts, compat.Caller{Rollout: id, Principal: principal}, s.version).ServeHTTP(w, r)
	return nil
}

// sweRex is SWE-ReX's remote runtime in one rollout.
func (s *Server) sweRex(w http.ResponseWriter, r *http.Request, id, principal string) error {
	if _, err := s.rollouts.Get(r.Context(), id); err != nil {
		return err
	}
	s.protocols.swerex.Serve(w, r, compat.Caller{Rollout: id, Principal: principal}, chi.URLParam(r, "*"))
	return nil
}

// openEnv is an OpenEnv environment server.
func (s *Server) openEnv(w http.ResponseWriter, r *http.Request) error {
	s.protocols.openenv.Serve(w, r, chi.URLParam(r, "*"))
	return nil
}

// nemoGym is a NeMo-Gym resources server.
func (s *Server) nemoGym(w http.ResponseWriter, r *http.Request) error {
	s.protocols.nemogym.Serve(w, r, chi.URLParam(r, "*"))
	return nil
}
