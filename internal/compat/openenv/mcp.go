package openenv

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"proctor/internal/compat"
	"proctor/monitor"
)

// sessions are environments that clients hold over HTTP, by id.
type sessions struct {
	mu   sync.Mutex
	open map[string]*episode
}

// maxSessions bounds them: over HTTP nothing says that a client is gone. Their sandboxes go with their
// leases, however many are left here.
const maxSessions = 4096

// rpcRequest is a JSON-RPC request of the protocol's tool part.
type rpcRequest struct {
	Version string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      json.RawMessage `json:"id"`
}

// Codes of JSON-RPC errors.
const (
	rpcParse    = -32700
	rpcInvalid  = -32600
	rpcMethod   = -32601
	rpcParams   = -32602
	rpcInternal = -32603
	rpcServer   = -32000
)

// mcp answers a JSON-RPC request over HTTP; params.session_id names the environment.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		compat.Answer(w, http.StatusRequestEntityTooLarge, rpcError(nil, rpcInvalid, "the request is too large"))
		return
	}
	compat.Answer(w, http.StatusOK, s.rpc(r.Context(), nil, body))
}

// rpc answers a JSON-RPC request for environment e, or, where e is nil, for the session that it names.
func (s *Server) rpc(ctx context.Context, e *episode, raw []byte) map[string]any {
	var req rpcRequest
	if err := json.Unmarshal(raw, &req); err != nil {
		return rpcError(nil, rpcParse, "Parse error")
	}
	if req.Method == "" {
		return rpcError(req.ID, rpcInvalid, "method is missing")
	}
	var params struct {
		SessionID string          `json:"session_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		resetData
	}
	if len(req.Params) > 0 {
		if err := json.Unmarshal(req.Params, &params); err != nil {
			return rpcError(req.ID, rpcParams, "Params must be an object")
		}
	}
	switch req.Method {
	case "tools/list":
		list := tools()
		for _, t := range list {
			t["inputSchema"] = t["input_schema"]
		}
		return rpcResult(req.ID, map[string]any{"tools": list})
	case "openenv/session/create":
		return s.createSession(ctx, req)
	case "openenv/session/close":
		return s.closeSession(ctx, req, params.SessionID)
	case "tools/call":
		if e == nil {
			if e = s.sessions.find(params.SessionID); e == nil {
				return rpcError(req.ID, rpcParams, "session_id is unknown; openenv/session/create gives one")
			}
		}
		return e.callTool(ctx, req, params.Name, params.Arguments)
	}
	return rpcError(req.ID, rpcMethod, "Method not found: "+req.Method)
}

func (s *Server) createSession(ctx context.Context, req rpcRequest) map[string]any {
	e := &episode{host: s.host}
	if _, err := e.reset(ctx, req.Params); err != nil {
		_, words := describe(err)
		return rpcError(req.ID, rpcServer, words)
	}
	id := rand.Text()
	s.sessions.mu.Lock()
	full := len(s.sessions.open) >= maxSessions
	if !full {
		s.sessions.open[id] = e
	}
	s.sessions.mu.Unlock()
	if full {
		e.close(ctx)
		return rpcError(req.ID, rpcServer, "too many sessions; close some")
	}
	state := e.state()
	return rpcResult(req.ID, map[string]any{"session_id": id, "rollout_id": state["rollout_id"], "task_id": state["task_id"]})
}

func (s *Server) closeSession(ctx context.Context, req rpcRequest, id string) map[string]any {
	s.sessions.mu.Lock()
	e := s.sessions.open[id]
	delete(s.sessions.open, id)
	s.sessions.mu.Unlock()
	if e == nil {
		return rpcError(req.ID, rpcParams, "Unknown session_id")
	}
	e.close(ctx)
	return rpcResult(req.ID, map[string]any{"closed": true})
}

func (s *sessions) find(id string) *episode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

// callTool runs a tool as the protocol's tool part asks for it. What the agent did wrong is a result.
func (e *episode) callTool(ctx context.Context, req rpcRequest, name string, args json.RawMessage) map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rollout == "" {
		return rpcError(req.ID, rpcServer, "there is no episode; reset first")
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	seen, err := compat.Call(ctx, e.host, compat.Caller{Rollout: e.rollout, Principal: monitor.Agent}, "", name, args)
	var bad *monitor.BadCall
	switch {
	case errors.As(err, &bad):
		return rpcResult(req.ID, map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": bad.Error()}}})
	case err != nil:
		_, words := describe(err)
		return rpcError(req.ID, rpcInternal, words)
	}
	e.steps++
	return rpcResult(req.ID, map[string]any{"isError": false, "content": []any{map[string]any{"type": "text", "text": seen.Output}},
		"structuredContent": observed(false, name, seen)})
}

func rpcResult(id json.RawMessage, result any) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": orNull(id), "result": result}
}

func rpcError(id json.RawMessage, code int, words string) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": orNull(id), "error": map[string]any{"code": code, "message": words}}
}

func orNull(id json.RawMessage) any {
	if len(id) == 0 {
		return nil
	}
	return id
}
