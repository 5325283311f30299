package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

// foreign says of a route that other people's protocols own its form: the Model Context Protocol's and what
// lies under /compat/. docs/compatibility.md names them.
func foreign(route string) bool {
	return strings.HasPrefix(route, "/compat/") || strings.HasSuffix(route, "/mcp")
}

// The served document names exactly the routes that are there.
func TestDocumentMatchesRoutes(t *testing.T) {
	l := newLab(t)
	routes, ok := l.srv.Config.Handler.(chi.Routes)
	if !ok {
		t.Fatal("the handler does not tell its routes")
	}
	served := map[string]bool{}
	err := chi.Walk(routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !foreign(route) {
			served[method+" "+route] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := l.send("GET", "/openapi.json", "trainer-key", "")
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Security  []any
			Responses map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("document: %v %.200s", err, got.body)
	}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			route := strings.ToUpper(method) + " " + path
			if !served[route] {
				t.Errorf("%s is documented and not served", route)
			}
			delete(served, route)
			if len(op.Responses) < 2 || (len(op.Security) == 0 && path != "/healthz" && path != "/readyz") {
				t.Errorf("%s: responses %v, security %v", route, op.Responses, op.Security)
			}
		}
	}
	for route := range served {
		t.Errorf("%s is served and not documented", route)
	}
	for _, part := range strings.Split(got.body, `"$ref":"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if doc.Components.Schemas[name] == nil {
			t.Errorf("schema %s is referred to and not there", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(goodCall))
	f.Add([]byte(`{"call_id": null} {}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var b callBody
		err := unmarshal(body, &b)
		if err == nil && !json.Valid(body) {
			t.Errorf("took %q, which is not JSON", body)
		}
	})
}
