package api

import (
	"context"
	"net/http"
	"strings"

	"proctor/internal/critic"
	"proctor/internal/rollouts"

	"github.com/go-chi/chi/v5"
)

// Critics is what the routes for generative critics need of *rollouts.Manager.
type Critics interface {
	PolicyStats(ctx context.Context, name string) (rollouts.PolicyStats, error)
	Values(ctx context.Context, id string, req rollouts.ValuesRequest) (rollouts.RolloutValues, error)
	CriticPairs(ctx context.Context, id string, kinds []string) ([]critic.Pair, error)
}

func (s *Server) criticRoutes(r chi.Router) {
	r.Get("/v1/policies/{name}/stats", s.trainer(RoleReviewer, s.policyStats))
	r.Post("/v1/rollouts/{id}/values", s.trainer(RoleTrainer, s.values))
	r.Get("/v1/rollouts/{id}/critic-pairs", s.trainer(RoleReviewer, s.criticPairs))
}

func criticOperations() []operation {
	return []operation{
		{"GET", "/v1/policies/{name}/stats", "A policy's moving average of success by task family", "trainer", nil, nil, rollouts.PolicyStats{}, 200},
		{"POST", "/v1/rollouts/{id}/values", "Ask a generative critic about a rollout's states", "trainer", nil, rollouts.ValuesRequest{}, rollouts.RolloutValues{}, 200},
		{"GET", "/v1/rollouts/{id}/critic-pairs", "A graded rollout's states with its return, one JSON line each", "trainer", []string{"kinds"}, nil, nil, 200},
	}
}

// policyStats gives how a policy does lately.
func (s *Server) policyStats(w http.ResponseWriter, r *http.Request) error {
	stats, err := s.rollouts.PolicyStats(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, stats)
}

// values asks a critic.
func (s *Server) values(w http.ResponseWriter, r *http.Request) error {
	var req rollouts.ValuesRequest
	if _, err := decode(r, &req); err != nil {
		return err
	}
	values, err := s.rollouts.Values(r.Context(), chi.URLParam(r, "id"), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, values)
}

// criticPairs gives what a critic trains on, as JSON lines.
func (s *Server) criticPairs(w http.ResponseWriter, r *http.Request) error {
	var kinds []string
	if k := r.URL.Query().Get("kinds"); k != "" {
		kinds = strings.Split(k, ",")
	}
	pairs, err := s.rollouts.CriticPairs(r.Context(), chi.URLParam(r, "id"), kinds)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	return critic.WritePairs(w, pairs)
}
