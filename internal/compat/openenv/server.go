// Package openenv serves rollouts as an OpenEnv environment: a WebSocket on which every connection is an
// environment of its own (reset, step, state, close, mcp), and the HTTP routes beside it.
//
// reset makes a rollout of the task that task_id names, or that the seed picks; a step is a tool call of
// the agent; submit grades the work, and its step is done and carries the reward. What the wire calls
// metadata is stripped by OpenEnv itself, so nothing that a client needs is put there.
package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"proctor/internal/compat"
	"proctor/internal/rollouts"

	"github.com/coder/websocket"
)

// maxMessage bounds one message of a client, in bytes.
const maxMessage = 16 << 20

// Server serves any number of environments. Safe for concurrent use.
type Server struct {
	host     compat.Host
	version  string
	sessions sessions
}

// New makes a Server.
func New(h compat.Host, version string) *Server {
	return &Server{host: h, version: version, sessions: sessions{open: map[string]*episode{}}}
}

// Serve answers one request to endpoint, the path behind the mount point.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, endpoint string) {
	switch r.Method + " " + endpoint {
	case "GET ws":
		s.websocket(w, r)
	case "GET health":
		compat.Answer(w, http.StatusOK, map[string]string{"status": "healthy"})
	case "GET metadata":
		compat.Answer(w, http.StatusOK, map[string]any{"name": "proctor", "version": s.version, "author": nil, "readme_content": nil, "documentation_url": nil,
			"description": "Coding tasks in sandboxes, a tool call a step. submit ends the episode and is rewarded."})
	case "GET schema":
		compat.Answer(w, http.StatusOK, schema())
	case "GET state":
		compat.Answer(w, http.StatusOK, (&episode{host: s.host}).state()) // as OpenEnv's own server: a fresh environment's
	case "POST mcp":
		s.mcp(w, r)
	default:
		compat.Answer(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
	}
}

// message is what either side sends.
type message struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// websocket serves one environment for as long as the connection lasts.
func (s *Server) websocket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the mount point's key guards, not an origin
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxMessage)
	e := &episode{host: s.host}
	defer e.close(r.Context())
	for {
		_, raw, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		kind, data, last := s.answer(r.Context(), e, raw)
		if last {
			_ = conn.Close(websocket.StatusNormalClosure, "")
			return
		}
		out, err := json.Marshal(map[string]any{"type": kind, "data": data})
		if err != nil {
			return
		}
		if err := conn.Write(r.Context(), websocket.MessageText, out); err != nil {
			return
		}
	}
}

// answer gives the answer to one message; last says that the client takes its leave.
func (s *Server) answer(ctx context.Context, e *episode, raw []byte) (kind string, data any, last bool) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return "error", map[string]any{"message": "Invalid JSON: " + err.Error(), "code": "INVALID_JSON"}, false
	}
	var err error
	switch m.Type {
	case "reset":
		kind = "observation"
		data, err = e.reset(ctx, m.Data)
	case "step":
		kind = "observation"
		data, err = e.step(ctx, m.Data)
	case "state":
		return "state", e.state(), false
	case "mcp":
		return "mcp", s.rpc(ctx, e, m.Data), false
	case "close":
		return "", nil, true
	default:
		return "error", map[string]any{"message": "Unknown message type: " + m.Type, "code": "UNKNOWN_TYPE"}, false
	}
	if err != nil {
		code, words := describe(err)
		return "error", map[string]any{"message": words, "code": code}, false
	}
	return kind, data, false
}

// describe gives an error OpenEnv's code.
func describe(err error) (code, words string) {
	var wire *wireError
	var refused *rollouts.Error
	switch {
	case errors.As(err, &wire):
		return wire.code, wire.message
	case errors.As(err, &refused) && refused.Code == rollouts.CodeAtCapacity:
		return "CAPACITY_REACHED", refused.Detail
	case errors.As(err, &refused) && strings.HasPrefix(refused.Code, "task"):
		return "FACTORY_ERROR", refused.Detail
	}
	return "EXECUTION_ERROR", compat.Words(err)
}

// schema describes actions, observations and state.
func schema() map[string]any {
	object := func(required []string, properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "required": required, "properties": properties}
	}
	text, null := map[string]any{"type": "string"}, []string{"integer", "null"}
	return map[string]any{
		"action": object([]string{"tool_name"}, map[string]any{"type": map[string]any{"const": "call_tool"}, "tool_name": text,
			"arguments": map[string]any{"type": "object"}}),
		"observation": object([]string{"output"}, map[string]any{"output": text, "exit_code": map[string]any{"type": null},
			"timed_out": map[string]any{"type": "boolean"}, "truncated": map[string]any{"type": "boolean"}}),
		"state": object([]string{"step_count"}, map[string]any{"episode_id": text, "step_count": map[string]any{"type": "integer"},
			"task_id": text, "rollout_id": text, "done": map[string]any{"type": "boolean"}}),
	}
}
