package api

import (
	"context"
	"net/http"

	"proctor/internal/rollouts"

	"github.com/go-chi/chi/v5"
)

// Forks is what the routes for snapshots and forks need of *rollouts.Manager.
type Forks interface {
	Snapshot(ctx context.Context, id string) (rollouts.Snapshot, error)
	Snapshots(ctx context.Context, id string) ([]rollouts.Snapshot, error)
	DropSnapshot(ctx context.Context, id, snapshot string) error
	Fork(ctx context.Context, id, key string, req rollouts.ForkRequest) (rollouts.GroupCreated, error)
}

func (s *Server) forkRoutes(r chi.Router) {
	r.Post("/v1/rollouts/{id}/snapshot", s.trainer(RoleTrainer, s.snapshot))
	r.Get("/v1/rollouts/{id}/snapshots", s.trainer(RoleReviewer, s.snapshots))
	r.Delete("/v1/rollouts/{id}/snapshots/{snapshot}", s.trainer(RoleTrainer, s.dropSnapshot))
	r.Post("/v1/rollouts/{id}/fork", s.trainer(RoleTrainer, s.fork))
}

func forkOperations() []operation {
	const ro = "/v1/rollouts/{id}"
	return []operation{
		{"POST", ro + "/snapshot", "Keep the sandbox's files", "trainer", nil, nil, rollouts.Snapshot{}, 201},
		{"GET", ro + "/snapshots", "What is kept of a rollout's files", "trainer", nil, nil, listOf[rollouts.Snapshot]("snapshots"), 200},
		{"DELETE", ro + "/snapshots/{snapshot}", "Remove a snapshot", "trainer", nil, nil, nil, 204},
		{"POST", ro + "/fork", "Make n rollouts that go on from here, or from a snapshot", "trainer", nil, rollouts.ForkRequest{}, rollouts.GroupCreated{}, 201},
	}
}

// snapshot keeps a rollout's files once the call that runs has ended.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request) error {
	if _, err := readBody(r); err != nil {
		return err
	}
	made, err := s.rollouts.Snapshot(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, made)
}

// snapshots lists them.
func (s *Server) snapshots(w http.ResponseWriter, r *http.Request) error {
	all, err := s.rollouts.Snapshots(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return writeList(w, "snapshots", all, "")
}

// dropSnapshot removes one.
func (s *Server) dropSnapshot(w http.ResponseWriter, r *http.Request) error {
	if err := s.rollouts.DropSnapshot(r.Context(), chi.URLParam(r, "id"), chi.URLParam(r, "snapshot")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// fork makes rollouts that go on from another.
func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	var req rollouts.ForkRequest
	if _, err := decode(r, &req); err != nil {
		return err
	}
	made, err := s.rollouts.Fork(r.Context(), chi.URLParam(r, "id"), r.Header.Get("Idempotency-Key"), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, made)
}
