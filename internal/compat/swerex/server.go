// Package swerex serves a rollout as SWE-ReX's remote runtime, so that SWE-agent and what else drives that
// runtime goes on unchanged: only the URL and the key differ.
//
// With the agent's token every call goes through the Gate as the agent's: a session is the rollout's shell,
// execute is a subshell in it, and files go by its file tools. With a trainer key the same calls are the
// harness's: recorded, not judged; execute and files then run one-shot, outside the agent's shell.
//
// A rollout has one shell. Sessions by other names than the first one opened share it.
package swerex

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"proctor/internal/compat"
)

// maxBody bounds a request, an upload included.
const maxBody = 64 << 20

// Server serves any number of rollouts. Safe for concurrent use.
type Server struct {
	host compat.Host

	mu       sync.Mutex
	sessions map[string]map[string]*session // by rollout and name
}

// session is an open shell session. handle names an interactive program that runs in it.
type session struct {
	mu     sync.Mutex
	handle string
}

// New makes a Server.
func New(h compat.Host) *Server {
	return &Server{host: h, sessions: map[string]map[string]*session{}}
}

// request is one request to one endpoint.
type request struct {
	*http.Request
	who compat.Caller
	key string // its id: a repeat is answered, not run again
}

// Serve answers one request of who to endpoint, the path behind the mount point.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, who compat.Caller, endpoint string) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	req := request{r, who, r.Header.Get("X-Request-ID")}
	if req.key != "" {
		req.key = "swerex:" + endpoint + ":" + req.key
	}
	get := map[string]func(request) (any, error){"": s.root, "is_alive": s.alive}
	post := map[string]func(request) (any, error){"create_session": s.createSession, "run_in_session": s.runInSession,
		"close_session": s.closeSession, "execute": s.execute, "read_file": s.readFile, "write_file": s.writeFile,
		"upload": s.upload, "close": s.close}
	table := post
	if r.Method == http.MethodGet {
		table = get
	}
	handle, ok := table[endpoint]
	if !ok {
		compat.Answer(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
		return
	}
	answer, err := handle(req)
	if err != nil {
		fail(w, err)
		return
	}
	compat.Answer(w, http.StatusOK, answer)
}

// fail answers as SWE-ReX's own server does: 511 with an exception that the client raises.
func fail(w http.ResponseWriter, err error) {
	var e *exception
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		e = raise(classValue, "a request may have %d bytes", maxBody)
	case !errors.As(err, &e):
		e = raise(classOther, "%s", compat.Words(err))
	}
	compat.Answer(w, http.StatusNetworkAuthenticationRequired, map[string]any{"swerexception": map[string]any{
		"message": e.message, "class_path": e.class, "traceback": "", "extra_info": e.extra}})
}

// decode reads a request's JSON. Fields of a newer SWE-ReX are let by: it, not we, owns the form.
func decode(r request, v any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return raise(classValue, "the request does not fit its form: %v", err)
	}
	return nil
}

func (s *Server) root(request) (any, error) {
	return map[string]string{"message": "hello world"}, nil
}

func (s *Server) alive(request) (any, error) {
	return map[string]any{"is_alive": true, "message": ""}, nil
}

// close ends the client's use of the runtime. The rollout stays, for its trainer to grade.
func (s *Server) close(r request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, r.who.Rollout)
	return map[string]any{}, nil
}
