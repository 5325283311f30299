package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"proctor/internal/rollouts"
	"proctor/monitor"

	"github.com/go-chi/chi/v5"
)

// verdicts lists a rollout's calls that a rule hit.
func (s *Server) verdicts(w http.ResponseWriter, r *http.Request) error {
	list, err := s.rollouts.Verdicts(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return writeList(w, "verdicts", list, "")
}

// reviewBody is the body of a verdict's review.
type reviewBody struct {
	Label string `json:"label"`
	Note  string `json:"note"`
}

// review records what a person says of a verdict.
func (s *Server) review(w http.ResponseWriter, r *http.Request) error {
	ordinal, err := strconv.Atoi(chi.URLParam(r, "ordinal"))
	if err != nil || ordinal < 1 {
		return notFound()
	}
	var body reviewBody
	if _, err := decode(r, &body); err != nil {
		return err
	}
	switch body.Label {
	case "hack", "benign", "unsure":
	default:
		return problem("invalid_field", "Field label must be hack, benign or unsure.")
	}
	review := rollouts.Review{Label: body.Label, Note: body.Note, At: time.Now().UTC()}
	if err := s.rollouts.AddReview(r.Context(), chi.URLParam(r, "id"), ordinal, review); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, review)
}

// events streams what happens to a rollout as server-sent events. Last-Event-ID takes it up again.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	from, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	feed, err := s.rollouts.Events(r.Context(), chi.URLParam(r, "id"), from)
	if err != nil {
		return err
	}
	streamEvents(w, r, feed, func(e rollouts.Event) (string, error) {
		data, err := json.Marshal(e)
		return fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", e.Number, e.Kind, data), err
	})
	return nil
}

// listTasks lists the tasks that the server holds.
func (s *Server) listTasks(w http.ResponseWriter, r *http.Request) error {
	return writeList(w, "tasks", s.rollouts.Tasks(r.Context()), "")
}

// getTask gives one task.
func (s *Server) getTask(w http.ResponseWriter, r *http.Request) error {
	t, err := s.rollouts.Task(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, t)
}

// checkBody is the body of POST /v1/packs/check.
type checkBody struct {
	TaskID    string          `json:"task_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// check explains what the rules make of a call, and runs nothing.
func (s *Server) check(w http.ResponseWriter, r *http.Request) error {
	var body checkBody
	if _, err := decode(r, &body); err != nil {
		return err
	}
	call, err := monitor.ParseCall("", "", body.Name, body.Arguments, "")
	if err != nil {
		return err
	}
	explanation, err := s.rollouts.Check(r.Context(), body.TaskID, call)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, explanation)
}

// health says that the process answers.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether rollouts can be made.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if err := s.rollouts.Ready(r.Context()); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
