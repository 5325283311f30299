package egress

import (
	"errors"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/egress/index"
	"proctor/sandbox/egress/index/indextest"
	"proctor/sandbox/egress/index/npm"
	"proctor/sandbox/egress/index/pypi"
)

// indexed gives options with both indexes, each with a package in time and a later one.
func indexed(t *testing.T) Options {
	t.Helper()
	python, err := pypi.New(index.Options{Upstream: indextest.New(t, indextest.Release{Project: "helper", Version: "1.0", Uploaded: "2022-01-01T00:00:00Z"}).URL})
	if err != nil {
		t.Fatal(err)
	}
	node, err := npm.New(index.Options{Upstream: indextest.NewNPM(t, indextest.Package{Name: "helper", Version: "1.0.0", Published: "2022-01-01T00:00:00Z"}).URL})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Python: python, NPM: node}
}

// A sandbox has a door, and settings, for each index of the server, and for no other.
func TestIndexes(t *testing.T) {
	both := indexed(t)
	for _, tc := range []struct {
		name  string
		opts  Options
		doors string
		env   []string // some of the settings
		not   []string
	}{
		{"both", both, "@proxy @index @npm", []string{"PIP_INDEX_URL=http://127.0.0.12/simple/", "npm_config_registry=http://127.0.0.13/", "YARN_NPM_REGISTRY_SERVER=http://127.0.0.13", "YARN_UNSAFE_HTTP_WHITELIST=127.0.0.13"}, nil},
		{"Python alone", Options{Python: both.Python}, "@proxy @index", []string{"UV_INDEX_URL=http://127.0.0.12/simple/"}, []string{"npm_config_registry", "YARN_REGISTRY"}},
		{"npm alone", Options{NPM: both.NPM}, "@proxy @npm", []string{"YARN_REGISTRY=http://127.0.0.13/"}, []string{"PIP_INDEX_URL"}},
	} {
		p := New(tc.opts)
		r, err := p.For(Client{Policy: Policy{Index: &index.Rule{}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := doorNames(r); got != tc.doors {
			t.Errorf("%s: doors %q, want %q", tc.name, got, tc.doors)
		}
		env := p.IndexEnv()
		for _, want := range tc.env {
			if name, value, _ := strings.Cut(want, "="); env[name] != value {
				t.Errorf("%s: %s=%q, want %q", tc.name, name, env[name], value)
			}
		}
		for _, name := range tc.not {
			if _, ok := env[name]; ok {
				t.Errorf("%s: %s is set", tc.name, name)
			}
		}
		without, err := p.For(Client{})
		if err != nil || doorNames(without) != "@proxy" {
			t.Errorf("%s: a policy without an index has %v, %v", tc.name, without, err)
		}
	}
	if _, err := New(Options{}).For(Client{Policy: Policy{Index: &index.Rule{}}}); !errors.Is(err, ErrNoIndex) {
		t.Errorf("without any: %v", err)
	}
	if npm.Origin != "http://"+NPMAddr.Addr().String() || NPMAddr.Port() != 80 {
		t.Errorf("documents say %s, and the door is %s", npm.Origin, NPMAddr)
	}
}

func doorNames(r sandbox.Relay) string {
	var names []string
	for _, d := range r.Doors() {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

// Requests to each index are told with its kind.
func TestIndexEvents(t *testing.T) {
	s := newSite(t)
	opts := indexed(t)
	s.opts.Python, s.opts.NPM = opts.Python, opts.NPM
	r, err := New(s.opts).For(Client{Policy: Policy{Index: &index.Rule{Before: time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}}, Record: func(e Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		door, path, kind, want string
		status                 int
	}{
		{"@index", "/simple/helper/", KindIndex, "helper-1.0-py3-none-any.whl", 200},
		{"@npm", "/helper", KindNPM, "http://127.0.0.13/helper/-/helper-1.0.0.tgz", 200},
		{"@npm", "/absent", KindNPM, "Not found", 404},
	} {
		got := s.ask(r, tc.door, 80, "GET "+tc.path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", tc.path, got)
		}
		e := s.told(func(e Event) bool { return e.Request == "GET "+tc.path })
		if e.Kind != tc.kind || e.Status != tc.status || e.Outcome != Carried || e.Got == 0 {
			t.Errorf("%s: %+v", tc.path, e)
		}
	}
}
