package api

import (
	"context"
	"net/http"

	"proctor/internal/rollouts"

	"github.com/go-chi/chi/v5"
)

// Places is what the route for capacity needs of *rollouts.Manager.
type Places interface {
	Capacity() rollouts.Capacity
	Warm(ctx context.Context, taskID string, req rollouts.WarmRequest) (rollouts.Warmed, error)
}

func (s *Server) capacityRoutes(r chi.Router) {
	r.Get("/v1/capacity", s.trainer(RoleReviewer, s.capacity))
	r.Post("/v1/tasks/{id}/warm", s.trainer(RoleTrainer, s.warm))
}

func capacityOperations() []operation {
	return []operation{
		{"GET", "/v1/capacity", "How many rollouts live, may live, and wait for a place", "trainer", nil, nil, rollouts.Capacity{}, 200},
		{"POST", "/v1/tasks/{id}/warm", "Make a task's image ready, and sandboxes of it", "trainer", nil, rollouts.WarmRequest{}, rollouts.Warmed{}, 202},
	}
}

// capacity tells how full the server is.
func (s *Server) capacity(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, s.rollouts.Capacity())
}

// warm makes ready what rollouts of a task will need.
func (s *Server) warm(w http.ResponseWriter, r *http.Request) error {
	var req rollouts.WarmRequest
	if _, err := decode(r, &req); err != nil {
		return err
	}
	warmed, err := s.rollouts.Warm(r.Context(), chi.URLParam(r, "id"), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, warmed)
}

// patience reads ?wait_s, which says the same as the field of a create's body.
func patience(r *http.Request, req *rollouts.CreateRequest) error {
	wait, err := queryInt(r, "wait_s", req.WaitS, 0, 3600)
	if err != nil {
		return err
	}
	req.WaitS = wait
	return nil
}
