// Package indextest has small package indexes on loopback, to test with real installers and without any
// index of the world's.
package indextest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Server is an index.
type Server struct {
	URL string // what its installer is given
	// Origin is the server's own address, under which it also answers /hello.
	Origin string

	mu    sync.Mutex
	asked []string
}

// start serves an index until the test ends.
func start(t testing.TB, mux *http.ServeMux) *Server {
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	s := &Server{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.EscapedPath())
		s.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.Origin = server.URL
	return s
}

// Asked gives the paths that the server was asked for, in order.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// Get asks a handler for a path, as a client that takes accept, and gives the status and the body.
func Get(h http.Handler, path, accept string) (int, string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}
