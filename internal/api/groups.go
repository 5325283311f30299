package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"proctor/internal/rollouts"

	"github.com/go-chi/chi/v5"
)

// Groups is what the routes for groups need of *rollouts.Manager.
type Groups interface {
	CreateGroup(ctx context.Context, key string, req rollouts.GroupRequest) (rollouts.GroupCreated, error)
	Group(ctx context.Context, id string, waitS int) (rollouts.GroupView, error)
	// AbortGroup ends the members that still run, and returns when their sandboxes are gone.
	AbortGroup(ctx context.Context, id string) (rollouts.GroupView, error)
	// WatchGroup gives the group now and at each change, until it is done or ctx ends.
	WatchGroup(ctx context.Context, id string) (<-chan rollouts.GroupView, error)
}

func (s *Server) groupRoutes(r chi.Router) {
	r.Post("/v1/groups", s.trainer(RoleTrainer, s.createGroup))
	r.Get("/v1/groups/{id}", s.trainer(RoleReviewer, s.getGroup))
	r.Delete("/v1/groups/{id}", s.trainer(RoleTrainer, s.deleteGroup))
	r.Post("/v1/groups/{id}/abort", s.trainer(RoleTrainer, s.abortGroup))
	r.Get("/v1/groups/{id}/events", s.trainer(RoleReviewer, s.groupEvents))
}

func groupOperations() []operation {
	return []operation{
		{"POST", "/v1/groups", "Create n rollouts of a task", "trainer", []string{"wait_s"}, rollouts.GroupRequest{}, rollouts.GroupCreated{}, 201},
		{"GET", "/v1/groups/{id}", "A group's results", "trainer", []string{"wait_s"}, nil, rollouts.GroupView{}, 200},
		{"DELETE", "/v1/groups/{id}", "End the members that still run", "trainer", nil, nil, nil, 204},
		{"POST", "/v1/groups/{id}/abort", "End the members that still run, and give the group", "trainer", nil, nil, rollouts.GroupView{}, 200},
		{"GET", "/v1/groups/{id}/events", "The group now and at each change (SSE)", "trainer", nil, nil, nil, 200},
	}
}

// createGroup makes n rollouts of one task.
func (s *Server) createGroup(w http.ResponseWriter, r *http.Request) error {
	var req rollouts.GroupRequest
	if _, err := decode(r, &req); err != nil {
		return err
	}
	if err := patience(r, &req.CreateRequest); err != nil {
		return err
	}
	made, err := s.rollouts.CreateGroup(r.Context(), r.Header.Get("Idempotency-Key"), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, made)
}

// getGroup gives a group's results; ?wait_s waits that long for its end.
func (s *Server) getGroup(w http.ResponseWriter, r *http.Request) error {
	wait, err := queryInt(r, "wait_s", 0, 0, 600)
	if err != nil {
		return err
	}
	view, err := s.rollouts.Group(r.Context(), chi.URLParam(r, "id"), wait)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// abortGroup ends what still runs of a group.
func (s *Server) abortGroup(w http.ResponseWriter, r *http.Request) error {
	if _, err := readBody(r); err != nil {
		return err
	}
	view, err := s.rollouts.AbortGroup(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// deleteGroup is abortGroup without an answer.
func (s *Server) deleteGroup(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.rollouts.AbortGroup(r.Context(), chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// groupEvents streams a group's view at each change, as event "group", the last one as "done".
func (s *Server) groupEvents(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.rollouts.WatchGroup(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	streamEvents(w, r, feed, func(view rollouts.GroupView) (string, error) {
		data, err := json.Marshal(view)
		kind := "group"
		if view.Status == "done" {
			kind = "done"
		}
		return fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data), err
	})
	return nil
}
