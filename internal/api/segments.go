package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"proctor/internal/records"
	"proctor/internal/trajectory"

	"github.com/go-chi/chi/v5"
)

// Segments keeps what a trainer uploads. *records.Service.
type Segments interface {
	Upload(ctx context.Context, rollout string, segments []*trajectory.Segment) (int, error)
}

func (s *Server) segmentRoutes(r chi.Router) {
	r.Post("/v1/rollouts/{id}/segments", s.trainer(RoleTrainer, s.uploadSegments))
}

func segmentOperations() []operation {
	return []operation{
		{"POST", "/v1/rollouts/{id}/segments", "Upload the segments of a trainer that does not use the gateway", "trainer", nil, segmentsBody{}, map[string]int{}, 200},
	}
}

// segmentsBody is the body of an upload.
type segmentsBody struct {
	Segments []*trajectory.Segment `json:"segments"`
}

// uploadSegments adds segments to a rollout's record. They are held to what the gateway's are held to.
func (s *Server) uploadSegments(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if _, err := s.rollouts.Get(r.Context(), id); err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	var upload segmentsBody
	if err := unmarshal(body, &upload); err != nil {
		if !json.Valid(body) && (strings.Contains(string(body), "NaN") || strings.Contains(string(body), "Infinity")) {
			return fieldProblem("logprobs", "The body holds NaN or Infinity, which JSON does not have. A logprob that is no finite number was sampled under no distribution: leave the rollout out, or send it as text_only.")
		}
		return err
	}
	if len(upload.Segments) == 0 {
		return fieldProblem("segments", "Field segments must be a list of at least one segment.")
	}
	if s.segments == nil {
		return notFound()
	}
	n, err := s.segments.Upload(r.Context(), id, upload.Segments)
	var field *trajectory.FieldError
	switch {
	case err == nil:
		return writeJSON(w, http.StatusOK, map[string]int{"segments": n})
	case errors.As(err, &field):
		return fieldProblem(field.Field, uploadWords(err))
	case errors.Is(err, records.ErrGateway), errors.Is(err, records.ErrUploaded):
		return problem("records_conflict", err.Error()+".")
	}
	return err
}

// uploadWords gives the first problems of an upload, a line each.
func uploadWords(err error) string {
	lines := strings.Split(err.Error(), "\n")
	const most = 10
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, "\n")
}

func fieldProblem(field, detail string) *Problem {
	p := problem("invalid_field", detail)
	p.Field = field
	return p
}
