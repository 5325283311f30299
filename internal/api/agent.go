package api

import (
	"encoding/json"
	"net/http"

	"proctor/internal/rollouts"
	"proctor/monitor"

	"github.com/go-chi/chi/v5"
)

// agentHandler is a handler on the agent plane; principal says whose key opened it.
type agentHandler func(w http.ResponseWriter, r *http.Request, id, principal string) error

// agent lets requests through that carry the rollout's own token, as the agent's, or a trainer key,
// as the harness's.
func (s *Server) agent(next agentHandler) http.HandlerFunc {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		id, secret := chi.URLParam(r, "id"), bearer(r)
		if s.rollouts.Authenticate(id, secret) {
			return next(w, r, id, monitor.Agent)
		}
		if _, role := s.opens(secret); rank[role] >= rank[RoleTrainer] {
			return next(w, r, id, monitor.Harness)
		}
		return notFound()
	})
}

// callBody is the body of POST /v1/rollouts/{id}/calls.
type callBody struct {
	CallID    *string         `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Encoding  string          `json:"encoding"`
}

// call runs one tool call. The answer has the same fields, headers and status whatever the Gate
// made of it.
func (s *Server) call(w http.ResponseWriter, r *http.Request, id, principal string) error {
	var body callBody
	if _, err := decode(r, &body); err != nil {
		return err
	}
	callID := ""
	if body.CallID != nil {
		callID = *body.CallID
	}
	call, err := monitor.ParseCall(callID, r.Header.Get("Idempotency-Key"), body.Name, body.Arguments, body.Encoding)
	if err != nil {
		return err
	}
	call.Principal = principal
	seen, err := s.rollouts.Call(r.Context(), id, call)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, seen)
}

// submit ends the agent's part.
func (s *Server) submit(w http.ResponseWriter, r *http.Request, id, _ string) error {
	if _, err := readBody(r); err != nil {
		return err
	}
	if err := s.rollouts.Submit(r.Context(), id); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]string{"status": "submitted"})
}

// tools lists the tools, in the form that the query asks for: plain (default), openai, anthropic.
func (s *Server) tools(w http.ResponseWriter, r *http.Request, id, _ string) error {
	if _, err := s.rollouts.Get(r.Context(), id); err != nil {
		return err
	}
	form := r.URL.Query().Get("format")
	list := []any{}
	for _, t := range rollouts.ToolList() {
		switch form {
		case "", "plain", "anthropic":
			list = append(list, t)
		case "openai":
			list = append(list, map[string]any{"type": "function", "function": map[string]any{
				"name": t.Name, "description": t.Description, "parameters": t.InputSchema}})
		default:
			return problem("invalid_field", "Query field format must be plain, openai or anthropic.")
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"tools": list})
}
