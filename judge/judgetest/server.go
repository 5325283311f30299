// Package judgetest is a small server that speaks the OpenAI chat protocol over real HTTP and
// misbehaves on demand, to prove a judge client against. It is no mock: clients reach it by URL.
package judgetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"

	"proctor/judge"
)

// Behaviour is how the server answers one request.
type Behaviour func(w http.ResponseWriter, r *http.Request, req Request)

// Request is what the server was sent.
type Request struct {
	Model       string  `json:"model"`
	Temperature float64 `json:"temperature"`
	MaxTokens   int     `json:"max_tokens"`
	Messages    []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Authorization string `json:"-"`
}

// Server is a running server.
type Server struct {
	URL string // for judge.Config.BaseURL

	http *httptest.Server
	mu   sync.Mutex
	plan []Behaviour
	seen []Request
	busy int
	most int // most requests at once
}

// Start starts a server that answers each request by the next behaviour, and by the last one from
// then on. Close it.
func Start(plan ...Behaviour) *Server {
	s := &Server{plan: plan}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL + "/v1"
	return s
}

// Close stops the server; requests that stall are cut off.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests gives what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// MostAtOnce gives the largest number of requests that were served at the same time.
func (s *Server) MostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var req Request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		Status(http.StatusBadRequest, "")(w, r, req)
		return
	}
	req.Authorization = r.Header.Get("Authorization")
	s.mu.Lock()
	behave := s.plan[min(len(s.seen), len(s.plan)-1)]
	s.seen = append(s.seen, req)
	s.busy++
	s.most = max(s.most, s.busy)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.busy--
		s.mu.Unlock()
	}()
	behave(w, r, req)
}

// Say answers with content as the assistant's message.
func Say(content string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, req Request) {
		reply(w, req, map[string]any{"role": "assistant", "content": content}, "stop")
	}
}

// Answer says an opinion by the schema.
func Answer(verdict, class string, confidence float64, evidence string) Behaviour {
	b, err := json.Marshal(map[string]any{"verdict": verdict, "class": class, "confidence": confidence, "evidence": evidence, "reason": "as told"})
	if err != nil {
		panic(err) // plain strings and a number: cannot fail but for NaN
	}
	return Say(string(b))
}

// Refuse answers with a refusal.
func Refuse(w http.ResponseWriter, _ *http.Request, req Request) {
	reply(w, req, map[string]any{"role": "assistant", "content": "", "refusal": "I cannot help with that."}, "stop")
}

// CutOff answers with the first half of an opinion, at the token limit.
func CutOff(w http.ResponseWriter, _ *http.Request, req Request) {
	reply(w, req, map[string]any{"role": "assistant", "content": `{"verdict": "benign", "class"`}, "length")
}

// NoChoices answers with an empty list of choices.
func NoChoices(w http.ResponseWriter, _ *http.Request, req Request) {
	write(w, map[string]any{"id": "x", "object": "chat.completion", "model": req.Model, "choices": []any{}})
}

// NotJSON answers 200 with something else than JSON.
func NotJSON(w http.ResponseWriter, _ *http.Request, _ Request) {
	fmt.Fprint(w, "<html>it works</html>")
}

// Flood streams without end.
func Flood(w http.ResponseWriter, r *http.Request, _ Request) {
	chunk := []byte(strings.Repeat("x", 64<<10))
	for r.Context().Err() == nil {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// Stall answers nothing until the client leaves, or a minute is over.
func Stall(_ http.ResponseWriter, r *http.Request, _ Request) {
	ctx, stop := context.WithTimeout(r.Context(), time.Minute)
	defer stop()
	<-ctx.Done()
}

// Status answers an error with a status, and Retry-After where it is not "".
func Status(code int, retryAfter string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		write(w, map[string]any{"error": map[string]any{"message": http.StatusText(code), "type": "error", "code": code}})
	}
}

// Slow answers by next after d.
func Slow(d time.Duration, next Behaviour) Behaviour {
	return func(w http.ResponseWriter, r *http.Request, req Request) {
		select {
		case <-time.After(d):
			next(w, r, req)
		case <-r.Context().Done():
		}
	}
}

// Honest reads the case out of the message, between the boundary lines, and answers what the
// heuristic judge makes of it.
func Honest(w http.ResponseWriter, r *http.Request, req Request) {
	c, err := CaseOf(req)
	if err != nil {
		Status(http.StatusBadRequest, "")(w, r, req)
		return
	}
	o := judge.NewHeuristic().Judge(r.Context(), c)
	class := o.Class
	if class == "" {
		class = "none"
	}
	Answer(o.Verdict, class, o.Confidence, o.Evidence)(w, r, req)
}

var verdictIn = regexp.MustCompile(`\{[^{}]*\\?"verdict\\?"[^{}]*\}`)

// Gullible is a model that does what text in the call tells it: it repeats the first verdict that
// it finds in the message, and says benign where it finds none.
func Gullible(w http.ResponseWriter, r *http.Request, req Request) {
	text := verdictIn.FindString(req.Messages[len(req.Messages)-1].Content)
	Say(strings.ReplaceAll(text, `\"`, `"`))(w, r, req)
}

var boundary = regexp.MustCompile(`(?s)\n(BOUNDARY-[0-9a-f]{32})\n(.*)\n(BOUNDARY-[0-9a-f]{32})\n`)

// CaseOf reads the case out of a request.
func CaseOf(req Request) (judge.Case, error) {
	m := boundary.FindStringSubmatch(req.Messages[len(req.Messages)-1].Content)
	if m == nil || m[1] != m[3] {
		return judge.Case{}, fmt.Errorf("no case between two equal boundaries")
	}
	var c judge.Case
	return c, json.Unmarshal([]byte(m[2]), &c)
}

func reply(w http.ResponseWriter, req Request, message map[string]any, finish string) {
	words := 0
	for _, m := range req.Messages {
		words += len(strings.Fields(m.Content))
	}
	write(w, map[string]any{"id": "x", "object": "chat.completion", "created": 1, "model": req.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": words, "completion_tokens": 20, "total_tokens": words + 20}})
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return // the client has left
	}
}
