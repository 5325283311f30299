package api

import (
	"net/http"

	"proctor/internal/rollouts"

	"github.com/go-chi/chi/v5"
)

// Places is what the route for capacity needs of *rollouts.Manager.
type Places interface {
	Capacity() rollouts.Capacity
}

func (s *Server) capacityRoutes(r chi.Router) {
	r.Get("/v1/capacity", s.trainer(RoleReviewer, s.capacity))
}

func capacityOperations() []operation {
	return []operation{{"GET", "/v1/capacity", "How many rollouts live, may live, and wait for a place", "trainer", nil, nil, rollouts.Capacity{}, 200}}
}

// capacity tells how full the server is.
func (s *Server) capacity(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, s.rollouts.Capacity())
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
