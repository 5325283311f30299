package rollouts

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"proctor/monitor"
	"proctor/sandbox"

	"github.com/google/go-cmp/cmp"
)

// TestACallSurvivesACrashAtEveryPoint kills the server at each step of a call, and has the client
// repeat it with its key, at once or only after another call.
func TestACallSurvivesACrashAtEveryPoint(t *testing.T) {
	block := func(context.Context, sandbox.Call) error { select {} }
	for _, c := range []struct {
		name     string
		before   func(context.Context, sandbox.Call) error
		after    func(context.Context, sandbox.Call) error
		holds    bool // the command runs on while the server dies
		lateRuns int  // how often it has run where another call came first
	}{
		{name: "before the sandbox has it", before: block, lateRuns: 0},
		{name: "while it runs", holds: true, lateRuns: 1},
		{name: "before the outcome is written", after: block, lateRuns: 1},
		{name: "before the answer is sent", lateRuns: 1},
	} {
		for _, late := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", then another call"}[late], func(t *testing.T) {
				g := hold()
				w := newWorld(t)
				w.engine.OnDo = g.answer
				id := w.create().ID
				w.do(id, bash(t, "", "echo first"))
				reached := make(chan struct{}, 2)
				signal := func(f func(context.Context, sandbox.Call) error) func(context.Context, sandbox.Call) error {
					if f == nil {
						return nil
					}
					return func(ctx context.Context, call sandbox.Call) error { reached <- struct{}{}; return f(ctx, call) }
				}
				w.cut.set(signal(c.before), signal(c.after))
				if !c.holds {
					close(g.release)
				}
				done := w.later(id, bash(t, "k", "wait"))
				switch {
				case c.holds:
					<-g.started
				case c.before != nil || c.after != nil:
					<-reached
				default:
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
				w.crash()
				if c.holds {
					close(g.release)
				}
				if late {
					w.do(id, bash(t, "", "echo other"))
				}
				obs, err := w.m.Call(context.Background(), id, bash(t, "k", "wait"))
				if late && c.lateRuns == 0 {
					wantCode(t, err, CodeUnknown)
				} else if err != nil || obs.Output != "run 1\n" {
					t.Fatalf("the retry shows %q, %v", obs.Output, err)
				}
				if want := map[bool]int{false: 1, true: c.lateRuns}[late]; g.count() != want {
					t.Errorf("it ran %d times, want %d", g.count(), want)
				}
				w.do(id, bash(t, "", "echo last"))
				for _, rec := range w.trajectory(id).Calls {
					if rec.Observation == nil && rec.Error == "" {
						t.Errorf("call %d has no outcome", rec.Ordinal)
					}
				}
			})
		}
	}
}

// TestACallComesBackAsItWasAsked checks that arguments and encoding survive the store byte for byte.
func TestACallComesBackAsItWasAsked(t *testing.T) {
	for _, encoding := range []string{"", "base64"} {
		g := hold()
		w := newWorld(t)
		w.engine.OnDo = g.answer
		id := w.create().ID
		arguments := json.RawMessage("{ \"command\": \"wait <a >b && c \u2028 \\u003e \\ud800\", \"timeout_s\": 3.0 }")
		call, err := monitor.ParseCall("", "k", "bash", arguments, encoding)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.later(id, call)
		<-g.started
		w.crash()
		close(g.release)
		obs := w.do(id, call)
		if obs.Output != "run 1\n" || (obs.Base64 != nil) != (encoding == "base64") {
			t.Errorf("encoding %q: %+v", encoding, obs)
		}
		if rec := w.trajectory(id).Calls[0]; !bytes.Equal(rec.Arguments, call.Arguments) {
			t.Errorf("recorded %s, asked %s", rec.Arguments, call.Arguments)
		}
	}
}

// TestStateIsRebuilt checks that normaliser, figures, keys and numbers are as if there had been no
// crash.
func TestStateIsRebuilt(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	w.do(id, bash(t, "1", "cd /x"))
	w.do(id, bash(t, "2", "echo CHEAT"))
	w.do(id, bash(t, "3", "echo ODD"))
	before, norm := w.view(id), w.norm.Load().seen()
	if before.Blocked != 1 || before.Hacks != 1 || before.Calls != 3 {
		t.Fatalf("figures %+v", before)
	}
	w.crash()
	if diff := cmp.Diff(before, w.view(id)); diff != "" {
		t.Errorf("the view (-before +after):\n%s", diff)
	}
	if got := w.norm.Load().seen(); got != norm {
		t.Errorf("the normaliser saw %q, want %q", got, norm)
	}
	if obs := w.do(id, bash(t, "2", "echo CHEAT")); obs.Output != "No such file or directory\n" {
		t.Errorf("a blocked call's retry shows %q", obs.Output)
	}
	w.do(id, bash(t, "4", "echo 4"))
	if n := len(w.trajectory(id).Calls); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
}

// forget makes the store forget the outcome of a call, as if the server had died before it.
func (w *world) forget(text string, args ...any) {
	w.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.store.Dir(), "proctor.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA busy_timeout = 5000; "+text, args...); err != nil {
		w.t.Fatal(err)
	}
}

func TestADecoyThatWasNotWrittenIsShownAfterTheCrash(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	shown := w.do(id, bash(t, "k", "echo CHEAT"))
	w.forget("DELETE FROM outcomes")
	w.crash()
	eventually(t, "the call has an outcome without being asked for", func() bool { return w.trajectory(id).Calls[0].Observation != nil })
	if diff := cmp.Diff(shown, w.do(id, bash(t, "k", "echo CHEAT"))); diff != "" {
		t.Errorf("the answer changed:\n%s", diff)
	}
	if n := len(w.session(id).Calls()); n != 0 {
		t.Errorf("a blocked call ran %d times", n)
	}
}

func TestASubmissionThatWasNotWritten(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	w.do(id, tool(t, "s", "submit", nil))
	w.forget("UPDATE rollouts SET status = 'running', doc = replace(doc, '\"status\":\"submitted\"', '\"status\":\"running\"')")
	w.crash()
	if v := w.view(id); v.Status != StatusSubmitted {
		t.Errorf("%+v", v)
	}
	w.forget("DELETE FROM outcomes")
	w.crash()
	eventually(t, "the submission has its outcome", func() bool { return w.trajectory(id).Calls[0].Observation != nil })
}

func TestAHarnessOneShotSurvivesACrash(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	e := sandbox.Exec{ID: "k", Argv: []string{"sh", "-c", "echo x"}}
	if _, err := w.m.Exec(context.Background(), id, e); err != nil {
		t.Fatal(err)
	}
	w.crash()
	res, err := w.m.Exec(context.Background(), id, e)
	if err != nil || string(res.Stdout) != "x\n" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
	w.forget("DELETE FROM outcomes")
	w.crash() // the fake does not know one-shots by their names, so it is run for the retry
	if res, err = w.m.Exec(context.Background(), id, e); err != nil || string(res.Stdout) != "x\n" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
	if rec := w.trajectory(id).Calls[0]; rec.Observation == nil || rec.Principal != monitor.Harness {
		t.Errorf("%+v", rec)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	w := newWorld(t)
	kept := w.create().ID
	made := make(chan struct{})
	w.cut.created = func() { close(made); select {} }
	go func() { _, _ = w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t"}) }()
	<-made
	if w.boxes() != 2 {
		t.Fatalf("%d sandboxes", w.boxes())
	}
	w.crash()
	if w.boxes() != 1 {
		t.Errorf("%d sandboxes after the restart, want 1", w.boxes())
	}
	w.do(kept, bash(t, "", "true"))
	if _, err := w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t"}); err != nil {
		t.Errorf("the key of a create that died: %v", err)
	}
}

func TestHalfAGroupIsDropped(t *testing.T) {
	w := newWorld(t)
	g, err := w.m.CreateGroup(context.Background(), "k", GroupRequest{CreateRequest: CreateRequest{TaskID: "t"}, N: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.forget(`UPDATE groups SET doc = '{"n": 2, "members": ["", ""], "failed": [], "done": false}'`)
	w.crash()
	if w.boxes() != 0 {
		t.Errorf("%d sandboxes are left", w.boxes())
	}
	_, err = w.m.Get(context.Background(), g.Rollouts[0].ID)
	wantCode(t, err, CodeNotFound)
	again, err := w.m.CreateGroup(context.Background(), "k", GroupRequest{CreateRequest: CreateRequest{TaskID: "t"}, N: 2})
	if err != nil || again.ID == g.ID {
		t.Errorf("a retry gives %s, %v", again.ID, err)
	}
}

func TestASandboxThatIsGone(t *testing.T) {
	w := newWorld(t)
	lost, killed, alive := w.create().ID, w.create().ID, w.create().ID
	w.do(lost, bash(t, "k", "echo kept"))
	if err := w.engine.Remove(context.Background(), w.session(lost).ID()); err != nil {
		t.Fatal(err)
	}
	w.session(killed).Die(classModel, "ate all memory")
	w.crash()
	eventually(t, "the dead are buried", func() bool { return w.m.find(lost) == nil && w.m.find(killed) == nil })
	if v := w.view(lost); v.Status != StatusFailed || v.FailureClass != classInfra || v.Reward != nil || v.Calls != 1 {
		t.Errorf("lost with the host: %+v", v)
	}
	if v := w.view(killed); v.FailureClass != classModel || v.Reward == nil || !strings.Contains(v.StopReason, "ate all memory") {
		t.Errorf("killed by the agent: %+v", v)
	}
	w.do(alive, bash(t, "", "true"))
	if w.boxes() != 1 {
		t.Errorf("%d sandboxes", w.boxes())
	}
	if obs := w.do(lost, bash(t, "k", "echo kept")); obs.Output != "kept\n" {
		t.Errorf("the record of the lost one: %q", obs.Output)
	}
}

// downEngine cannot attach; it is well otherwise, or down altogether.
type downEngine struct {
	sandbox.Engine
	well bool
}

func (downEngine) Attach(context.Context, string) (sandbox.Session, error) {
	return nil, sandbox.ErrUnavailable
}

func (d downEngine) Capabilities(ctx context.Context) (sandbox.Capabilities, error) {
	if !d.well {
		return sandbox.Capabilities{}, sandbox.ErrUnavailable
	}
	return d.Engine.Capabilities(ctx)
}

func TestOneBoxThatCannotBeTakenUp(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	w.cut.kill()
	opt := w.opt
	opt.Engine = downEngine{w.engine, true}
	m, err := Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "its box is removed", func() bool { return m.find(id) == nil && w.boxes() == 0 })
	if err := m.Close(false); err != nil {
		t.Fatal(err)
	}
	if v, err := m.Get(context.Background(), id); err != nil || v.FailureClass != classInfra || v.Reward != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestNoRolloutIsGivenUpForAnEngineThatIsDown(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	w.cut.kill()
	opt := w.opt
	opt.Engine = downEngine{w.engine, false}
	if _, err := Open(context.Background(), opt); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "start it") {
		t.Fatalf("%v", err)
	}
	w.open()
	w.do(id, bash(t, "", "true"))
}

func TestPacksThatChangedAreNoted(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	n := 0
	w.opt.Rules = func() RuleSet { return racyRules{&n} }
	w.crash()
	feed, err := w.m.Events(context.Background(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(t, feed, 1); got[0] != "2 packs_changed" {
		t.Errorf("%v", got)
	}
	if v := w.view(id); v.Digests.Packs != "sha256:packs" {
		t.Errorf("the digest that it started with is lost: %+v", v.Digests)
	}
}

func TestOptionsThatAreMissing(t *testing.T) {
	w := newWorld(t)
	for want, change := range map[string]func(*Options){
		"Store": func(o *Options) { o.Store = nil }, "Engine": func(o *Options) { o.Engine = nil },
		"Lab": func(o *Options) { o.Lab = nil }, "Judge": func(o *Options) { o.Judge = nil },
		`"t"`: func(o *Options) { o.Tasks = append(o.Tasks, o.Tasks[0]) },
	} {
		opt := w.opt
		change(&opt)
		if _, err := Open(context.Background(), opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
