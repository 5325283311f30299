package replay

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"proctor/internal/client"
	"proctor/internal/traces"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"x", "x", ""},
		{"x", "y", "-x\n+y\n"},
		{"x\n", "y\n", "-x\n+y\n"},
		{"a\nb\nc\nd", "a\nb\nX\nd", " b\n-c\n+X\n d\n"},
		{"a\nb\nc", "a\nc", " a\n-b\n c\n"},
		{"a", "a\nb", " a\n+b\n"},
		{"a\nb\nc\nd\ne", "a\nX\nc\nY\ne", " a\n-b\n+X\n c\n-d\n+Y\n e\n"},
	} {
		if got := Diff(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.a, c.b, got, c.want)
		}
	}
	long := strings.Repeat("line\n", 3000)
	if got := Diff("a\n"+long+"b", "c\n"+strings.ReplaceAll(long, "line", "other")+"d"); strings.Count(got, "\n") < 6000 {
		t.Errorf("a long one loses lines: %d", strings.Count(got, "\n"))
	}
}

// FuzzDiff holds that removed and kept lines stand in the recorded text, in order, added and kept ones in
// the shown one, and that only equal texts have no difference.
func FuzzDiff(f *testing.F) {
	f.Add("a\nb", "b\nc")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		d := Diff(a, b)
		if (d == "") != (a == b) {
			t.Fatalf("%q", d)
		}
		if d == "" {
			return
		}
		x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
		next := func(list []string, l string) []string {
			for i := range list {
				if list[i] == l {
					return list[i+1:]
				}
			}
			t.Fatalf("%q is not in its text, in order\n%s", l, d)
			return nil
		}
		for _, l := range strings.Split(strings.TrimSuffix(d, "\n"), "\n") {
			if l[0] != '+' {
				x = next(x, l[1:])
			}
			if l[0] != '-' {
				y = next(y, l[1:])
			}
		}
	})
}

func TestMasks(t *testing.T) {
	for name, pairs := range map[string][][2]string{
		"timings":   {{"5 passed in 0.12s", "5 passed in 3.4s"}, {"at 12:03:04", "at 23:59:59.123"}, {"real 0m0.123s", "real 1m2.000s"}, {"Nov 29 22:01 a", "Jan  1 00:00 a"}},
		"pids":      {{"[1] 1234", "[1] 99"}, {"pid 7", "pid 71"}},
		"addresses": {{"<x at 0x7f00aabbcc>", "<x at 0x7f11aabbcc>"}},
		"hashes":    {{"commit 0a1b2c3", "commit ffeeddccbbaa"}},
		"tempnames": {{"/tmp/a.b/x", "/tmp/zz/x"}},
		"space":     {{"a  \nb\n\n", "a\nb"}},
	} {
		list, err := Masks([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pairs {
			if mask(p[0], list) != mask(p[1], list) {
				t.Errorf("%s: %q is not %q", name, mask(p[0], list), mask(p[1], list))
			}
		}
		if mask("3 failed", list) == mask("4 failed", list) {
			t.Errorf("%s hides what matters", name)
		}
	}
	if _, err := Masks([]string{"all"}); !errors.Is(err, ErrMask) || !strings.Contains(err.Error(), "timings") {
		t.Errorf("%v", err)
	}
}

// echo answers each command with itself, refuses "bad", and is gone after "die".
func echo(t *testing.T) *client.Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/rollouts/r/calls", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			CallID    string `json:"call_id"`
			Arguments struct{ Command string }
		}
		_ = json.NewDecoder(r.Body).Decode(&body) // what is wrong shows in the answer
		status := map[string]int{"bad": 422, "die": 410}[body.Arguments.Command]
		if status != 0 {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"code": "no", "detail": "not so"}`))
			return
		}
		out := body.Arguments.Command + " by " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		_ = json.NewEncoder(w).Encode(map[string]any{"call_id": body.CallID, "output": out, "exit_code": 0})
	})
	mux.HandleFunc("/v1/rollouts/r/trajectory", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"rollout": {"mode": "enforce"}, "calls": [{"call_id": "2", "verdict": {"action": "decoyed", "class": "git_history"}}]}`))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return client.New(srv.URL, "trainer")
}

func call(command, shown string, exit int) traces.Call {
	return traces.Call{Tool: "bash", Arguments: map[string]any{"command": command}, Output: shown, Shown: true, Exit: &exit}
}

func TestPlay(t *testing.T) {
	harness := call("h", "h by trainer", 0)
	harness.Harness = true
	blind := call("b", "", 0)
	blind.Shown = false
	tr := &traces.Trace{ID: "x", Calls: []traces.Call{call("a", "a by agent", 0), call("b", "other", 0), call("c", "c by agent", 1), harness, blind, call("bad", "", 0)}}
	r, err := (&Player{Client: echo(t), ID: "r", Token: "agent"}).Play(t.Context(), tr, nil)
	if err != nil || r.Calls != 6 || r.Same != 2 || r.Different != 2 || r.Blind != 1 || r.Failed != 1 || r.Mode != "enforce" {
		t.Fatalf("%+v, %v", r, err)
	}
	if d := r.Detail[0]; d.Ordinal != 2 || d.Diff != "-other\n+b by agent\n" || d.Action != "decoyed" || d.Class != "git_history" {
		t.Errorf("%+v", d)
	}
	if d := r.Detail[1]; d.Diff != "exit status 1, now 0" {
		t.Errorf("%+v", d)
	}
	fresh := &traces.Trace{Calls: []traces.Call{call("a", "(a\n) by agent", 0)}}
	if r, err := (&Player{Client: echo(t), ID: "r", Token: "agent", Fresh: true}).Play(t.Context(), fresh, nil); err != nil || r.Same != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	gone := &traces.Trace{Calls: []traces.Call{call("die", "", 0), call("a", "", 0)}}
	if r, err := (&Player{Client: echo(t), ID: "r"}).Play(t.Context(), gone, nil); err == nil || r.Calls != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
