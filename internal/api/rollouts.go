package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"proctor/internal/rollouts"
	"proctor/sandbox"

	"github.com/go-chi/chi/v5"
)

// createRollout makes a rollout.
func (s *Server) createRollout(w http.ResponseWriter, r *http.Request) error {
	var req rollouts.CreateRequest
	if _, err := decode(r, &req); err != nil {
		return err
	}
	if err := patience(r, &req); err != nil {
		return err
	}
	made, err := s.rollouts.Create(r.Context(), r.Header.Get("Idempotency-Key"), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, made)
}

// listRollouts lists rollouts, newest first. Query: task_id, group_id, status, limit, cursor.
func (s *Server) listRollouts(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := queryInt(r, "limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	views, next, err := s.rollouts.List(r.Context(), rollouts.Filter{
		TaskID: q.Get("task_id"), GroupID: q.Get("group_id"), Status: q.Get("status"), Limit: limit, Cursor: q.Get("cursor"),
	})
	if err != nil {
		return err
	}
	return writeList(w, "rollouts", views, next)
}

// getRollout gives one rollout.
func (s *Server) getRollout(w http.ResponseWriter, r *http.Request) error {
	view, err := s.rollouts.Get(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, view)
}

// deleteRollout ends a rollout and frees its sandbox; its record stays.
func (s *Server) deleteRollout(w http.ResponseWriter, r *http.Request) error {
	if err := s.rollouts.Delete(r.Context(), chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// heartbeat renews a rollout's lease.
func (s *Server) heartbeat(w http.ResponseWriter, r *http.Request) error {
	if err := s.rollouts.Heartbeat(r.Context(), chi.URLParam(r, "id")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// grade grades a rollout; ?wait=true waits for the grade, else 202 says that it is under way.
func (s *Server) grade(w http.ResponseWriter, r *http.Request) error {
	wait := r.URL.Query().Get("wait") == "true"
	if _, err := readBody(r); err != nil {
		return err
	}
	grade, err := s.rollouts.Grade(r.Context(), chi.URLParam(r, "id"), wait)
	if err != nil {
		return err
	}
	if grade == nil {
		return writeJSON(w, http.StatusAccepted, map[string]string{"status": "grading"})
	}
	return writeJSON(w, http.StatusOK, grade)
}

// patch gives the rollout's work as a unified diff, made on the trusted side.
func (s *Server) patch(w http.ResponseWriter, r *http.Request) error {
	diff, err := s.rollouts.Patch(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/x-diff; charset=utf-8")
	_, err = w.Write(diff)
	return err
}

// execBody is the body of POST /v1/rollouts/{id}/exec.
type execBody struct {
	Argv     []string `json:"argv"`
	Stdin    string   `json:"stdin"`
	TimeoutS float64  `json:"timeout_s"`
	User     string   `json:"user"`
}

// exec runs one argv for the harness: not gated, recorded as the harness's.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) error {
	var body execBody
	if _, err := decode(r, &body); err != nil {
		return err
	}
	if len(body.Argv) == 0 {
		return problem("invalid_field", "Field argv must be a list of at least one text: the program and its arguments.")
	}
	if body.TimeoutS < 0 || body.TimeoutS > 7200 {
		return problem("invalid_field", "Field timeout_s must be from 0 to 7200.")
	}
	res, err := s.rollouts.Exec(r.Context(), chi.URLParam(r, "id"), sandbox.Exec{
		ID: r.Header.Get("Idempotency-Key"), Argv: body.Argv, Stdin: []byte(body.Stdin), User: body.User, Timeout: time.Duration(body.TimeoutS * float64(time.Second)),
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"stdout": string(res.Stdout), "stderr": string(res.Stderr), "exit_code": res.Exit, "timed_out": res.TimedOut,
	})
}

// queryInt reads a whole number from the query.
func queryInt(r *http.Request, name string, def, lo, hi int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < lo || n > hi {
		return 0, problem("invalid_field", fmt.Sprintf("Query field %s must be a whole number from %d to %d.", name, lo, hi))
	}
	return n, nil
}

// writeJSON writes v with its length, so that every answer has the same headers.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client hung up: nobody is left to tell
	return nil
}

// writeList writes a listing under its plural name, with the cursor of the next page or null.
func writeList(w http.ResponseWriter, name string, items any, next string) error {
	var cursor *string
	if next != "" {
		cursor = &next
	}
	return writeJSON(w, http.StatusOK, map[string]any{name: items, "next": cursor})
}
