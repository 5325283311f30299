package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/egress"
)

// relays are those that a Manager asked for, in order; nil for an end.
type relays struct {
	mu  sync.Mutex
	got []sandbox.Relay
	err error
}

// Relay notes what is asked for.
func (s *cutSession) Relay(_ context.Context, r sandbox.Relay) error {
	l := &s.cut.relays
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.got = append(l.got, r)
	}
	return l.err
}

func (r *relays) words() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, relay := range r.got {
		words = append(words, map[bool]string{true: "open", false: "end"}[relay != nil])
	}
	return strings.Join(words, " ")
}

// fakeEgress keeps its clients, and tells each of an event at once.
type fakeEgress struct {
	err     error
	clients []egress.Client
}

func (f *fakeEgress) For(c egress.Client) (sandbox.Relay, error) {
	f.clients = append(f.clients, c)
	return quietRelay{}, f.err
}

// IndexEnv names an index as a server with one does.
func (f *fakeEgress) IndexEnv() map[string]string {
	return map[string]string{"PIP_INDEX_URL": "http://index.test/", "UV_INDEX_URL": "http://index.test/"}
}

type quietRelay struct{ sandbox.Relay }

const listedTask = `{"id": "l", "instruction": "i", "image": "img", "workdir": "/w", "env": {"UV_INDEX_URL": "mine"},
	"network": {"agent": "allowlist", "allowed_hosts": ["a.test"], "package_index": {"before": "2023-05-01"}}, "vars": {"package": "p", "fix_version": "1.4"}}`

// A rollout's relay is open while the agent's part lasts, across a restart, and its events are in the record.
func TestReach(t *testing.T) {
	carrier := &fakeEgress{}
	w := newWorld(t, func(w *world) { w.opt.Egress = carrier })
	made, err := w.m.Create(context.Background(), "", CreateRequest{Task: json.RawMessage(listedTask)})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.cut.relays.words(); got != "open" {
		t.Errorf("after the create: %q", got)
	}
	c := carrier.clients[0]
	if c.Name != made.ID || !slices.Equal(c.Policy.Hosts, []string{"a.test"}) || c.Policy.Index == nil || c.Policy.Index.Fix != "1.4" {
		t.Errorf("%+v", c)
	}
	env := reachEnv(w.m.live[made.ID].doc.Task, carrier)
	if env["PIP_INDEX_URL"] != "http://index.test/" || env["UV_INDEX_URL"] != "mine" {
		t.Errorf("%v", env)
	}
	c.Record(egress.Event{Kind: egress.KindTLS, Host: "a.test", Port: 443, Outcome: egress.Carried, Sent: 1, Got: 2, Took: time.Second})

	w.crash()
	if got := w.cut.relays.words(); got != "open" {
		t.Errorf("after a restart: %q", got)
	}
	if err := w.m.Submit(context.Background(), made.ID); err != nil {
		t.Fatal(err)
	}
	if got := w.cut.relays.words(); got != "open end" {
		t.Errorf("after the submission: %q", got)
	}
	events, err := w.store.Events(context.Background(), made.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range events {
		var d eventDoc
		if err := json.Unmarshal(e.Doc, &d); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, d.Kind)
		if d.Kind == "egress" && !strings.Contains(string(d.Data), `"duration_ms":1000`) {
			t.Errorf("%s", d.Data)
		}
	}
	if want := []string{"created", "egress", "submitted"}; !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
	w.crash() // after the agent's part nothing is opened any more
	if got := w.cut.relays.words(); got != "" {
		t.Errorf("taken up after the submission: %q", got)
	}
}

// What cannot be opened fails the create with what to do, and leaves nothing behind; a rollout that lives
// goes on without.
func TestReachThatCannotBeOpened(t *testing.T) {
	carrier := &fakeEgress{}
	w := newWorld(t, func(w *world) { w.opt.Egress = carrier })
	create := func() (Created, error) {
		return w.m.Create(context.Background(), "", CreateRequest{Task: json.RawMessage(listedTask)})
	}
	for name, tc := range map[string]struct {
		index, relay error
		code, words  string
	}{
		"no index":  {index: egress.ErrNoIndex, code: CodeUnsupported, words: "--package-index"},
		"no engine": {relay: sandbox.ErrUnavailable, code: CodeEngine, words: "allowlist"},
	} {
		carrier.err, w.cut.relays.err = tc.index, tc.relay
		_, err := create()
		var e *Error
		if !errors.As(err, &e) || e.Code != tc.code || !strings.Contains(e.Detail, tc.words) || w.boxes() != 0 {
			t.Errorf("%s: %v, %d sandboxes", name, err, w.boxes())
		}
	}
	carrier.err, w.cut.relays.err = nil, nil
	made, err := create()
	if err != nil {
		t.Fatal(err)
	}
	carrier.err = egress.ErrNoIndex
	w.crash()
	if v, err := w.m.Get(context.Background(), made.ID); err != nil || v.Status != StatusRunning {
		t.Errorf("%+v %v", v, err)
	}
	if got := w.cut.relays.words(); got != "" {
		t.Errorf("%q", got)
	}
}
