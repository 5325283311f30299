package api

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Packs is what the routes for rule packs need of the server that holds them.
type Packs interface {
	// PackList tells what new rollouts are pinned to.
	PackList() PackList
	// ReloadPacks reads the packs again, checks and compiles them, and only then pins new rollouts to
	// them. On any error nothing has changed; a *rollouts.Error names file, line and column of each
	// problem. Rollouts that run keep the packs that they started with.
	ReloadPacks(ctx context.Context) (PacksReloaded, error)
}

// PackList is the packs in use.
type PackList struct {
	Digest string     `json:"digest"` // as in a rollout's digests.packs
	Packs  []PackView `json:"packs"`
}

// PackView is one pack.
type PackView struct {
	ID      string   `json:"id"`
	Version string   `json:"version"`
	License string   `json:"license,omitempty"`
	Rules   int      `json:"rules"`
	Active  int      `json:"active"` // neither disabled nor deprecated
	Lists   []string `json:"lists,omitempty"`
}

// PacksReloaded is the outcome of a reload.
type PacksReloaded struct {
	PackList
	Previous string `json:"previous"` // digest before
	Changed  bool   `json:"changed"`
}

func (s *Server) packRoutes(r chi.Router) {
	r.Get("/v1/packs", s.trainer(RoleReviewer, s.listPacks))
	r.Post("/v1/packs/reload", s.trainer(RoleAdmin, s.reloadPacks))
}

func packOperations() []operation {
	return []operation{
		{"GET", "/v1/packs", "The rule packs that new rollouts are pinned to", "trainer", nil, nil, PackList{}, 200},
		{"POST", "/v1/packs/reload", "Read the rule packs again; running rollouts keep theirs", "trainer", nil, nil, PacksReloaded{}, 200},
	}
}

// listPacks gives the packs.
func (s *Server) listPacks(w http.ResponseWriter, _ *http.Request) error {
	if s.packs == nil {
		return notFound()
	}
	return writeJSON(w, http.StatusOK, s.packs.PackList())
}

// reloadPacks swaps the packs, or says why not.
func (s *Server) reloadPacks(w http.ResponseWriter, r *http.Request) error {
	if s.packs == nil {
		return notFound()
	}
	out, err := s.packs.ReloadPacks(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, out)
}
