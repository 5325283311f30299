package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/internal/records"
	"proctor/internal/store"
	"proctor/internal/trajectory"
)

// world is a gateway before a policy server whose answers a test writes.
type world struct {
	t        testing.TB
	gateway  *Gateway
	records  *records.Service
	front    *httptest.Server
	upstream *httptest.Server
	target   Target

	mu     sync.Mutex
	asked  []string // bodies
	paths  []string
	answer http.HandlerFunc
}

func newWorld(t testing.TB) *world {
	t.Helper()
	st, err := store.Open(context.Background(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := records.New(st)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.InsertRollout(context.Background(), &store.Rollout{ID: "r", TaskID: "t", Status: "running", TokenHash: []byte{1}, CreatedAt: time.Now(), Doc: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, records: kept}
	w.upstream = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.asked, w.paths = append(w.asked, string(body)), append(w.paths, r.URL.Path)
		answer := w.answer
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(rw, r)
	}))
	w.target = Target{BaseURL: w.upstream.URL + "/v1", Model: "served", APIKey: "sk-secret"}
	w.gateway = New(Options{
		Target: func(_ context.Context, id string) (Target, error) {
			if id != "r" {
				return Target{}, errors.New("ended")
			}
			return w.target, nil
		},
		Records: kept, Log: slog.New(slog.DiscardHandler),
	})
	w.front = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/chat/completions"):
			w.gateway.Chat(rw, r, "r")
		case strings.HasSuffix(r.URL.Path, "/messages"):
			w.gateway.Messages(rw, r, "r")
		case strings.HasSuffix(r.URL.Path, "/ended"):
			w.gateway.Chat(rw, r, "gone")
		default:
			w.gateway.Models(rw, r, "r")
		}
	}))
	t.Cleanup(func() {
		w.front.Close()
		w.upstream.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// says answers with a file of testdata.
func (w *world) says(name string) {
	body, err := os.ReadFile("testdata/" + name)
	if err != nil {
		w.t.Fatal(err)
	}
	kind := "application/json"
	if strings.HasSuffix(name, ".sse") {
		kind = "text/event-stream"
	}
	w.does(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		rw.Header().Set("Server", "uvicorn at internal-host")
		_, _ = rw.Write(body)
	})
}

func (w *world) does(f http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// ask makes a request and reads the answer whole.
func (w *world) ask(path, body string, headers ...string) (int, http.Header, string) {
	w.t.Helper()
	res, err := w.send(context.Background(), path, body, headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

func (w *world) send(ctx context.Context, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.front.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(req)
}

// calls gives what was recorded, waiting for n.
func (w *world) calls(n int) []*trajectory.ModelCall {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		calls, err := w.records.Calls(context.Background(), "r")
		if err != nil {
			w.t.Fatal(err)
		}
		if len(calls) >= n || time.Now().After(deadline) {
			if len(calls) != n {
				w.t.Fatalf("%d calls are recorded, want %d", len(calls), n)
			}
			return calls
		}
	}
}

const (
	chat    = "/openai/v1/chat/completions"
	message = "/anthropic/v1/messages"
	hello   = `{"model": "any", "messages": [{"role": "user", "content": "Hello"}], "temperature": 0.7}`
	helloSS = `{"model": "any", "messages": [{"role": "user", "content": "Hello"}], "stream": true}`
	claude  = `{"model": "any", "max_tokens": 100, "system": "Be brief.", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}], "tools": [{"name": "bash", "description": "runs", "input_schema": {"type": "object"}}]}`
)
