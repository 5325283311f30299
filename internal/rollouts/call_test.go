package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/rules"
	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"

	"github.com/google/go-cmp/cmp"
)

func TestACallIsShownAndRecorded(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	obs := w.do(id, bash(t, "k", "echo hi"))
	if obs.Output != "hi\n" || obs.ExitCode == nil || *obs.ExitCode != 0 || obs.CallID != "id-k" {
		t.Errorf("shown %+v", obs)
	}
	rec := w.trajectory(id).Calls[0]
	if rec.Principal != monitor.Agent || rec.Name != "bash" || string(rec.Arguments) != `{"command":"echo hi"}` {
		t.Errorf("recorded %+v", rec)
	}
	if diff := cmp.Diff(&obs, rec.Observation); diff != "" {
		t.Errorf("the record shows something else (-shown +recorded):\n%s", diff)
	}
	if diff := cmp.Diff(rec.Observation, rec.Original); diff != "" {
		t.Errorf("the original differs:\n%s", diff)
	}
}

func TestABlockedCallIsAnsweredWithTheDecoy(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		mode, preset string
		decision     string
		action       string
		ran          bool
	}{
		{monitor.Enforce, monitor.Balanced, monitor.Block, monitor.Decoyed, false},
		{monitor.Enforce, monitor.Observe, monitor.Flag, monitor.Executed, true},
		{monitor.Shadow, monitor.Balanced, monitor.Block, monitor.Executed, true},
		{monitor.Off, "", monitor.Allow, monitor.Executed, true},
	} {
		t.Run(c.mode+" "+c.preset, func(t *testing.T) {
			id := w.create(func(r *CreateRequest) { r.Mode, r.Preset = c.mode, c.preset }).ID
			obs := w.do(id, bash(t, "", "echo CHEAT"))
			rec := w.trajectory(id).Calls[0]
			if rec.Verdict.Decision != c.decision || rec.Verdict.Action != c.action {
				t.Errorf("%s, %s; want %s, %s", rec.Verdict.Decision, rec.Verdict.Action, c.decision, c.action)
			}
			if ran := len(w.session(id).Calls()) == 1; ran != c.ran {
				t.Errorf("ran: %v, want %v", ran, c.ran)
			}
			if shown := obs.Output == "CHEAT\n"; shown != c.ran {
				t.Errorf("shown %q", obs.Output)
			}
			if (rec.Original == nil) == c.ran {
				t.Errorf("original %+v of a call that ran: %v", rec.Original, c.ran)
			}
			v := w.view(id)
			if v.Calls != 1 || v.Blocked != b2i(c.decision == monitor.Block) || v.Flagged != b2i(c.decision == monitor.Flag) {
				t.Errorf("figures %+v", v)
			}
		})
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestOneKeyRunsOnceFromEightClients(t *testing.T) {
	g := hold()
	w := newWorld(t)
	w.engine.OnDo = g.answer
	id := w.create().ID
	answers := make([]monitor.Observation, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			obs, err := w.m.Call(context.Background(), id, bash(t, "k", "wait"))
			if err != nil {
				t.Error(err)
			}
			answers[i] = obs
		})
	}
	<-g.started
	close(g.release)
	wg.Wait()
	late := w.do(id, bash(t, "k", "wait"))
	for _, a := range append(answers, late) {
		if diff := cmp.Diff(answers[0], a); diff != "" {
			t.Errorf("answers differ:\n%s", diff)
		}
	}
	if n := g.count(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	if n := len(w.trajectory(id).Calls); n != 1 {
		t.Errorf("%d calls are recorded", n)
	}
}

func TestWhatAKeyIsBoundTo(t *testing.T) {
	w := newWorld(t)
	id, other := w.create().ID, w.create().ID
	w.do(id, bash(t, "k", "echo 1"))
	_, err := w.m.Call(context.Background(), id, bash(t, "k", "echo 2"))
	wantCode(t, err, CodeConflict)
	_, err = w.m.Call(context.Background(), id, tool(t, "k", "view", map[string]any{"path": "x"}))
	wantCode(t, err, CodeConflict)
	coded, _ := monitor.ParseCall("", "k", "bash", json.RawMessage(`{"command":"echo 1"}`), "base64")
	_, err = w.m.Call(context.Background(), id, coded)
	wantCode(t, err, CodeConflict)

	renamed := bash(t, "k", "echo 1")
	renamed.ID = "another name for it"
	if obs := w.do(id, renamed); obs.CallID != "id-k" {
		t.Errorf("a retry under another call_id is answered with %q, want the first answer", obs.CallID)
	}
	harness := bash(t, "k", "echo harness")
	harness.Principal = monitor.Harness
	if obs := w.do(id, harness); obs.Output != "harness\n" {
		t.Errorf("the harness's key is not its own: %q", obs.Output)
	}
	if obs := w.do(other, bash(t, "k", "echo other")); obs.Output != "other\n" {
		t.Errorf("another rollout's key is not its own: %q", obs.Output)
	}
	w.do(id, bash(t, "", "echo x"))
	w.do(id, bash(t, "", "echo x"))
	if n := len(w.session(id).Calls()); n != 4 {
		t.Errorf("%d calls ran, want 4: without a key each call is one", n)
	}
	_, err = w.m.Call(context.Background(), id, bash(t, strings.Repeat("k", 257), "true"))
	wantCode(t, err, CodeBadRequest)
}

func TestCallsOfARolloutAreSerialInOrder(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var order []string
	busy := 0
	w.engine.OnDo = func(_ context.Context, _ *sandboxtest.FakeSession, call sandbox.Call) (sandbox.Result, error) {
		mu.Lock()
		busy++
		if busy > 1 {
			t.Error("two calls run at once")
		}
		order = append(order, call.Command)
		mu.Unlock()
		mu.Lock()
		busy--
		mu.Unlock()
		return sandbox.Result{}, sandboxtest.ErrNotAnswered
	}
	id := w.create().ID
	r := w.m.find(id)
	var want []string
	var flights []*flight
	for i := range 50 {
		call := bash(t, fmt.Sprint(i), fmt.Sprint("echo ", i))
		want = append(want, call.Box.Command)
		f, err := r.fly(wanted{key: callKey{"agent", call.Key}, args: monitor.ArgsSHA256(call), serial: true},
			func(ctx context.Context, f *flight) error { return r.gated(ctx, f, call) })
		if err != nil {
			t.Fatal(err)
		}
		flights = append(flights, f)
	}
	for _, f := range flights {
		if err := r.await(context.Background(), f); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-arrived +ran):\n%s", diff)
	}
}

func TestControlCallsDoNotQueue(t *testing.T) {
	g := hold()
	w := newWorld(t)
	w.engine.OnDo = g.answer
	id := w.create().ID
	running := w.later(id, bash(t, "", "wait"))
	<-g.started
	queued := w.later(id, bash(t, "", "echo queued"))
	for _, c := range []monitor.Call{
		tool(t, "", "bash_output", map[string]any{"handle": "shell"}),
		tool(t, "", "bash_input", map[string]any{"handle": "bg1", "text": "y\n"}),
		tool(t, "", "bash_kill", map[string]any{"handle": "bg1"}),
	} {
		w.do(id, c)
	}
	if res, err := w.m.Exec(context.Background(), id, sandbox.Exec{Argv: []string{"sh", "-c", "echo one-shot"}}); err != nil || string(res.Stdout) != "one-shot\n" {
		t.Errorf("a one-shot of the harness: %q, %v", res.Stdout, err)
	}
	select {
	case err := <-queued:
		t.Fatalf("a shell call passed the one that runs: %v", err)
	default:
	}
	close(g.release)
	if err := errors.Join(<-running, <-queued); err != nil {
		t.Fatal(err)
	}
}

func TestACallGoesOnWhenItsCallerHangsUp(t *testing.T) {
	g := hold()
	w := newWorld(t)
	w.engine.OnDo = g.answer
	id := w.create().ID
	ctx, hangUp := context.WithCancel(context.Background())
	go func() {
		<-g.started
		hangUp()
	}()
	_, err := w.m.Call(ctx, id, bash(t, "k", "wait"))
	wantCode(t, err, CodeInterrupted)
	close(g.release)
	if obs := w.do(id, bash(t, "k", "wait")); obs.Output != "run 1\n" {
		t.Errorf("the retry is answered with %q", obs.Output)
	}
}

func TestAnEngineThatIsOutForAWhile(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	out := func(context.Context, sandbox.Call) error { return fmt.Errorf("%w: no daemon", sandbox.ErrUnavailable) }
	w.cut.set(out, nil)
	_, err := w.m.Call(context.Background(), id, bash(t, "k", "echo once"))
	if e := wantCode(t, err, CodeEngine); !e.Retry || e.After == 0 || strings.Contains(e.Error(), "no daemon") {
		t.Errorf("%+v does not ask for a retry, or tells of the host", e)
	}
	if rec := w.trajectory(id).Calls[0]; rec.Observation != nil || rec.Error != "" {
		t.Errorf("the call has an outcome already: %+v", rec)
	}
	w.cut.set(nil, nil)
	if obs := w.do(id, bash(t, "k", "echo once")); obs.Output != "once\n" {
		t.Errorf("the retry shows %q", obs.Output)
	}
	w.cut.set(nil, out) // it runs, and the answer is lost
	_, err = w.m.Call(context.Background(), id, bash(t, "k2", "echo twice"))
	wantCode(t, err, CodeEngine)
	w.cut.set(nil, nil)
	w.do(id, bash(t, "", "echo next"))
	if obs := w.do(id, bash(t, "k2", "echo twice")); obs.Output != "twice\n" {
		t.Errorf("a call that ran is settled with %q", obs.Output)
	}
	w.cut.set(out, nil) // it never arrives, and nobody retries
	_, err = w.m.Call(context.Background(), id, bash(t, "k3", "echo lost"))
	wantCode(t, err, CodeEngine)
	w.cut.set(nil, nil)
	w.do(id, bash(t, "", "echo next"))
	_, err = w.m.Call(context.Background(), id, bash(t, "k3", "echo lost"))
	wantCode(t, err, CodeUnknown)
	if n := len(w.session(id).Calls()); n != 4 {
		t.Errorf("%d calls ran, want 4", n)
	}
	for _, rec := range w.trajectory(id).Calls {
		if (rec.Observation == nil) != (rec.Error != "") {
			t.Errorf("call %d is neither answered nor interrupted: %+v", rec.Ordinal, rec)
		}
	}
}

func TestAFullDiskLosesNoCall(t *testing.T) {
	small, err := store.Open(context.Background(), t.TempDir(), store.Options{MaxPages: 120})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(w *world) {
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
		w.store, w.opt.Store = small, small
	})
	t.Cleanup(func() { _ = small.Close() })
	id := w.create().ID
	n := 0
	for ; n < 1000; n++ {
		_, err = w.m.Call(context.Background(), id, bash(t, fmt.Sprint(n), "echo "+strings.Repeat("x", 3000)))
		if err != nil {
			break
		}
	}
	if e := wantCode(t, err, CodeStoreFull); !e.Retry || strings.Contains(e.Error(), "SQL") {
		t.Errorf("%+v does not ask for a retry, or tells of the host", e)
	}
	tr := w.trajectory(id)
	whole := 0
	for _, c := range tr.Calls {
		if c.Observation != nil {
			whole++
		}
	}
	if whole != n || n == 0 {
		t.Errorf("%d calls were answered, %d are recorded whole", n, whole)
	}
	if obs := w.do(id, bash(t, "0", "echo "+strings.Repeat("x", 3000))); len(obs.Output) != 3001 {
		t.Errorf("what was recorded cannot be read: %+v", obs)
	}
}

func TestDeathOfTheBox(t *testing.T) {
	for _, c := range []struct {
		class   string
		reward  *float64
		outcome string
	}{{classModel, new(float64), "unresolved"}, {classInfra, nil, "infra_failure"}} {
		t.Run(c.class, func(t *testing.T) {
			w := newWorld(t)
			id := w.create().ID
			w.do(id, bash(t, "before", "echo before"))
			w.session(id).Die(c.class, "killed its init")
			_, err := w.m.Call(context.Background(), id, bash(t, "k", "true"))
			wantCode(t, err, CodeSandboxDead)
			eventually(t, "the sandbox is removed", func() bool { return w.boxes() == 0 && w.m.find(id) == nil })
			v := w.view(id)
			if v.Status != StatusFailed || v.FailureClass != c.class || !strings.Contains(v.StopReason, "killed its init") || v.Outcome != c.outcome {
				t.Errorf("%+v", v)
			}
			if (v.Reward == nil) != (c.reward == nil) {
				t.Errorf("reward %v, want %v", v.Reward, c.reward)
			}
			grade, err := w.m.Grade(context.Background(), id, true)
			if err != nil || grade.FailureClass != c.class || (grade.Reward == nil) != (c.reward == nil) {
				t.Errorf("grade %+v, %v", grade, err)
			}
			if obs := w.do(id, bash(t, "before", "echo before")); obs.Output != "before\n" {
				t.Errorf("a retry after the end shows %q", obs.Output)
			}
			_, err = w.m.Call(context.Background(), id, bash(t, "k", "true"))
			wantCode(t, err, CodeEnded)
			_, err = w.m.Call(context.Background(), id, bash(t, "before", "echo other"))
			wantCode(t, err, CodeConflict)
			_, err = w.m.Call(context.Background(), id, bash(t, "", "true"))
			wantCode(t, err, CodeEnded)
		})
	}
}

func TestExecIsTheHarnesss(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	argv := []string{"sh", "-c", "echo CHEAT"}
	for range 2 {
		res, err := w.m.Exec(context.Background(), id, sandbox.Exec{ID: "k", Argv: argv})
		if err != nil || string(res.Stdout) != "CHEAT\n" {
			t.Fatalf("%q, %v", res.Stdout, err)
		}
	}
	if n := len(w.session(id).Execs()); n != 1 {
		t.Errorf("one key ran %d times", n)
	}
	_, err := w.m.Exec(context.Background(), id, sandbox.Exec{ID: "k", Argv: []string{"true"}})
	wantCode(t, err, CodeConflict)
	_, err = w.m.Exec(context.Background(), id, sandbox.Exec{Argv: []string{"no-such-program"}})
	wantCode(t, err, CodeInvalidCall)
	for _, bad := range [][]string{nil, {""}, {"a\x00b"}} {
		_, err = w.m.Exec(context.Background(), id, sandbox.Exec{Argv: bad})
		wantCode(t, err, CodeInvalidField)
	}
	rec := w.trajectory(id).Calls[0]
	if rec.Principal != monitor.Harness || rec.Verdict.Decision != monitor.Allow || rec.Observation.Output != "CHEAT\n" {
		t.Errorf("%+v", rec)
	}
	if v := w.view(id); v.Calls != 0 || v.Hacks != 0 {
		t.Errorf("the harness's calls count as the agent's: %+v", v)
	}
	if err := w.m.Delete(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	_, err = w.m.Exec(context.Background(), id, sandbox.Exec{ID: "k", Argv: argv})
	wantCode(t, err, CodeNotFound)
}

// racyRules count without a lock, as a rules.Session does.
type racyRules struct{ n *int }

func (racyRules) Digest() string                                { return "sha256:racy" }
func (r racyRules) Session(rules.Vars) (monitor.Matcher, error) { return r, nil }
func (r racyRules) Match(*rules.Event) []rules.Hit              { *r.n++; return nil }
func (r racyRules) MatchResult(*rules.Event) []rules.Hit        { *r.n++; return nil }

func TestMatchersTakeOneCallAtATime(t *testing.T) {
	n := 0
	w := newWorld(t, func(w *world) { w.opt.Rules = func() RuleSet { return racyRules{&n} } })
	id := w.create().ID
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { w.do(id, tool(t, "", "bash_output", map[string]any{"handle": "shell"})) })
	}
	wg.Wait()
	if n != 40 {
		t.Errorf("%d matches, want 40: both phases of each call", n)
	}
}

func TestAPanicEndsOneCallOnly(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	w.cut.set(func(context.Context, sandbox.Call) error { panic("bug") }, nil)
	_, err := w.m.Call(context.Background(), id, bash(t, "k", "echo x"))
	if e := wantCode(t, err, CodeInternal); strings.Contains(e.Error(), "bug") {
		t.Errorf("the agent is told the cause: %v", e)
	}
	w.cut.set(nil, nil)
	if obs := w.do(id, bash(t, "k", "echo x")); obs.Output != "x\n" {
		t.Errorf("the retry shows %q", obs.Output)
	}
}
