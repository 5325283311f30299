// Package modeltest is a small server that speaks the OpenAI chat protocol over real HTTP, plays a
// policy, and misbehaves on demand. It is no mock: clients reach it by URL.
package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Message is a message of a chat.
type Message struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	ToolCalls []Call `json:"tool_calls,omitempty"`
	ToolCall  string `json:"tool_call_id,omitempty"`
}

// Call is a tool call.
type Call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Request is what the server was sent.
type Request struct {
	Model    string            `json:"model"`
	Messages []Message         `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
}

// Turn is how many replies the request's conversation holds.
func (r *Request) Turn() int {
	n := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// Last gives the last message's text.
func (r *Request) Last() string { return r.Messages[len(r.Messages)-1].Content }

// Behaviour answers one request.
type Behaviour func(w http.ResponseWriter, r *http.Request, req *Request)

// Server is a running server.
type Server struct {
	URL string // of the API, for a client's base URL

	http *httptest.Server
	mu   sync.Mutex
	all  []Request
	how  Behaviour
}

// New starts a server.
func New(how Behaviour) *Server {
	s := &Server{how: how}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL + "/v1"
	return s
}

// Close stops the server.
func (s *Server) Close() { s.http.Close() }

// Requests gives what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.all...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var req Request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/chat/completions" || len(req.Messages) == 0 {
		Fail(http.StatusBadRequest, "no chat completion request")(w, r, &req)
		return
	}
	s.mu.Lock()
	s.all = append(s.all, req)
	how := s.how
	s.mu.Unlock()
	how(w, r, &req)
}

// Script plays commands, one a reply, then submits: as tool calls, or as text where no tools are offered.
func Script(commands ...string) Behaviour {
	return func(w http.ResponseWriter, r *http.Request, req *Request) {
		n := req.Turn()
		if len(req.Tools) == 0 {
			command := "submit"
			if n < len(commands) {
				command = commands[n]
			}
			Say("Next.\n\n```bash\n"+command+"\n```")(w, r, req)
			return
		}
		if n >= len(commands) {
			Tool("submit", "{}")(w, r, req)
			return
		}
		args, _ := json.Marshal(map[string]string{"command": commands[n]})
		Tool("bash", string(args))(w, r, req)
	}
}

// Tool calls a tool.
func Tool(name, arguments string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, req *Request) {
		c := Call{ID: fmt.Sprintf("call-%d", req.Turn()), Type: "function"}
		c.Function.Name, c.Function.Arguments = name, arguments
		reply(w, req, Message{Role: "assistant", ToolCalls: []Call{c}})
	}
}

// Say answers text.
func Say(text string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, req *Request) {
		reply(w, req, Message{Role: "assistant", Content: text})
	}
}

// Fail answers an error.
func Fail(status int, words string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ *Request) {
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "0.02")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": words, "type": "error", "code": fmt.Sprint(status)}}) // the client may have left
	}
}

// Garbage answers 200 with something else.
func Garbage(text string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ *Request) { _, _ = fmt.Fprint(w, text) }
}

// Stall answers nothing until the client leaves, or d is over.
func Stall(d time.Duration) Behaviour {
	return func(_ http.ResponseWriter, r *http.Request, _ *Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(d):
		}
	}
}

// First answers the first n requests by first, the others by then.
func First(n int, first, then Behaviour) Behaviour {
	var mu sync.Mutex
	seen := 0
	return func(w http.ResponseWriter, r *http.Request, req *Request) {
		mu.Lock()
		seen++
		early := seen <= n
		mu.Unlock()
		if early {
			first(w, r, req)
			return
		}
		then(w, r, req)
	}
}

// WithoutTools refuses requests that offer tools, as servers without a tool parser do.
func WithoutTools(then Behaviour) Behaviour {
	return func(w http.ResponseWriter, r *http.Request, req *Request) {
		if len(req.Tools) > 0 {
			Fail(http.StatusBadRequest, `"auto" tool choice requires --enable-auto-tool-choice`)(w, r, req)
			return
		}
		then(w, r, req)
	}
}

func reply(w http.ResponseWriter, req *Request, m Message) {
	words := 0
	for _, x := range req.Messages {
		words += len(strings.Fields(x.Content)) + 1
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"id": "x", "object": "chat.completion", "created": 1, "model": req.Model, // the client may have left
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": "stop"}},
		"usage":   map[string]any{"prompt_tokens": words, "completion_tokens": 7, "total_tokens": words + 7}})
}
