package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"proctor/internal/store"
	"proctor/judge"
	"proctor/monitor"
	"proctor/monitor/decoy"
	"proctor/monitor/normalize"
	"proctor/rules"
	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// world is a Manager over fakes, and the means to crash and restart it.
type world struct {
	t      *testing.T
	store  *store.Store
	engine *sandboxtest.Fake
	cut    *cutEngine // between the Manager at hand and the engine
	lab    *fakeLab
	norm   atomic.Pointer[fakeNormalizer] // of the rollout made last
	clock  *clock
	opt    Options
	m      *Manager
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newWorld opens a Manager with two tasks: "t", and "bare", which has no grader.
func newWorld(t *testing.T, change ...func(*world)) *world {
	t.Helper()
	st, err := store.Open(context.Background(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: st, engine: &sandboxtest.Fake{Caps: sandbox.Capabilities{Fork: true}}, lab: &fakeLab{}, clock: &clock{now: time.Unix(1_800_000_000, 0)}}
	w.opt = Options{
		Store: st, Lab: w.lab, Clock: w.clock.Now, SweepEvery: -1, Log: slog.New(slog.NewTextHandler(testLog{t}, nil)),
		Tasks: []*tasks.Task{
			{ID: "t", Instruction: "Fix it.", Image: "img", Workdir: "/testbed", TestPaths: []string{"tests/"}, HiddenPaths: []string{"/testbed/.eval"},
				Grader: &tasks.Grader{Kind: "patch", Command: "true", Report: "exit"}},
			{ID: "bare", Instruction: "Look.", Image: "img", Workdir: "/"},
		},
		Inline: func(raw json.RawMessage) (*tasks.Task, error) { return tasks.ParseInline(raw) },
		Rules:  func() RuleSet { return fakeRules{} }, Judge: fakeJudge{},
		Normalizer: func(normalize.Task, normalize.Facts) monitor.Normalizer {
			n := &fakeNormalizer{}
			w.norm.Store(n)
			return n
		},
		Decoys: func(DecoyEnv) monitor.Decoyer { return fakeDecoys{} },
	}
	for _, f := range change {
		f(w)
	}
	w.open()
	t.Cleanup(func() {
		w.cut.cut()
		if err := w.m.Close(false); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	if testing.Verbose() {
		fmt.Print(l.t.Name(), ": ", string(p))
	}
	return len(p), nil
}

func (w *world) open() {
	w.t.Helper()
	w.cut = &cutEngine{Engine: w.engine, dead: make(chan struct{})}
	w.opt.Engine = w.cut
	m, err := Open(context.Background(), w.opt)
	if err != nil {
		w.t.Fatal(err)
	}
	w.m = m
}

// crash is a SIGKILL and a restart: what the old Manager has under way never comes to an end.
func (w *world) crash() {
	w.t.Helper()
	w.cut.kill()
	w.open()
}

// cutEngine stands between a Manager and the engine. Killed, none of its calls ever returns: to the
// world, its Manager is gone.
type cutEngine struct {
	sandbox.Engine
	dead chan struct{}

	mu     sync.Mutex
	killed bool
	// before and after run around each call of a session that does not fail.
	before, after func(ctx context.Context, call sandbox.Call) error
	created       func()
	relays        relays
}

// Unwrap gives the engine, which keeps images.
func (c *cutEngine) Unwrap() sandbox.Engine { return c.Engine }

func (c *cutEngine) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.killed {
		c.killed = true
		close(c.dead)
	}
}

func (c *cutEngine) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.after = nil, nil
}

func (c *cutEngine) hooks() (before, after func(context.Context, sandbox.Call) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.before, c.after
}

func (c *cutEngine) set(before, after func(context.Context, sandbox.Call) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.after = before, after
}

// pass never returns once the Manager is dead.
func (c *cutEngine) pass() {
	select {
	case <-c.dead:
		select {}
	default:
	}
}

func (c *cutEngine) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	s, err := c.Engine.Create(ctx, spec)
	if c.created != nil {
		c.created()
	}
	c.pass()
	if err != nil {
		return nil, err
	}
	return &cutSession{Session: s, cut: c}, nil
}

func (c *cutEngine) Attach(ctx context.Context, id string) (sandbox.Session, error) {
	s, err := c.Engine.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	return &cutSession{Session: s, cut: c}, nil
}

type cutSession struct {
	sandbox.Session
	cut *cutEngine
}

func (s *cutSession) Do(ctx context.Context, call sandbox.Call) (sandbox.Result, error) {
	before, after := s.cut.hooks()
	if before != nil {
		if err := before(ctx, call); err != nil {
			return sandbox.Result{}, err
		}
	}
	s.cut.pass()
	type answer struct {
		res sandbox.Result
		err error
	}
	got := make(chan answer, 1)
	go func() {
		res, err := s.Session.Do(ctx, call)
		got <- answer{res, err}
	}()
	select {
	case a := <-got:
		if after != nil {
			if err := after(ctx, call); err != nil {
				return sandbox.Result{}, err
			}
		}
		s.cut.pass()
		return a.res, a.err
	case <-s.cut.dead:
		select {}
	}
}

// fakeLab prepares nothing and grades as its functions say.
type fakeLab struct {
	prepare func(ctx context.Context, task *tasks.Task) (Image, error)
	verify  func() error
	grade   func(ctx context.Context, job GradeJob) (tasks.Grade, error)
	patch   string
}

func (l *fakeLab) Prepare(ctx context.Context, task *tasks.Task, hardened bool) (Image, error) {
	if l.prepare != nil {
		return l.prepare(ctx, task)
	}
	return Image{Ref: fmt.Sprintf("%s-%v", task.Image, hardened), Digest: "sha256:" + task.Image}, nil
}

func (l *fakeLab) Verify(context.Context, *tasks.Task, Image, sandbox.Session) error {
	if l.verify != nil {
		return l.verify()
	}
	return nil
}

func (l *fakeLab) Facts(*tasks.Task, Image, sandbox.Session) normalize.Facts { return nil }

func (l *fakeLab) Patch(context.Context, *tasks.Task, Image, sandbox.Session) ([]byte, error) {
	return []byte(l.patch), nil
}

func (l *fakeLab) Grade(ctx context.Context, job GradeJob) (tasks.Grade, error) {
	if l.grade != nil {
		return l.grade(ctx, job)
	}
	one := 1.0
	return tasks.Grade{Outcome: tasks.Resolved, Reward: &one, FailureClass: "none", Review: job.Review(ctx, []byte(l.patch))}, nil
}

// fakeRules hit "CHEAT" on resolved facts, and "ODD", on which the judge is to speak.
type fakeRules struct{}

func (fakeRules) Digest() string                              { return "sha256:packs" }
func (fakeRules) Session(rules.Vars) (monitor.Matcher, error) { return fakeRules{}, nil }
func (fakeRules) Match(ev *rules.Event) []rules.Hit {
	hit := rules.Hit{Rule: "core/cheat", Pack: "core", Version: "1.0.0", Class: rules.HiddenArtifact, Entity: "call", Span: "CHEAT", Skip: "resolved", Resolved: true}
	switch {
	case strings.Contains(ev.Call.Text, "CHEAT"):
		return []rules.Hit{hit}
	case strings.Contains(ev.Call.Text, "ODD"):
		hit.Rule, hit.Skip = "core/odd", "never"
		return []rules.Hit{hit}
	}
	return nil
}

type fakeJudge struct{}

func (fakeJudge) Judge(context.Context, judge.Case) judge.Opinion {
	return judge.Opinion{By: "fake", Verdict: judge.Benign, Reason: "looks honest"}
}
func (fakeJudge) Name() string   { return "fake" }
func (fakeJudge) Digest() string { return "sha256:judge" }

// fakeNormalizer gives the command as text, and keeps what it observed.
type fakeNormalizer struct {
	mu       sync.Mutex
	observed []string
}

func (n *fakeNormalizer) Event(_ context.Context, c normalize.Call) rules.Event {
	return rules.Event{Call: rules.CallFacts{Tool: c.Tool, Text: c.Command + c.Path}}
}

func (n *fakeNormalizer) Observe(c normalize.Call, ran bool, cwd string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.observed = append(n.observed, fmt.Sprintf("%s %v %s", c.Command, ran, cwd))
}

func (n *fakeNormalizer) seen() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.observed, "; ")
}

// fakeDecoys say that the file is not there.
type fakeDecoys struct{}

func (fakeDecoys) Answer(context.Context, decoy.Request) decoy.Answer {
	one := 1
	return decoy.Answer{Family: "no-such-file", Action: "decoyed", Result: sandbox.Result{Output: []byte("No such file or directory\n"), Exit: &one}}
}

func (fakeDecoys) Recall(context.Context, decoy.Request) (decoy.Answer, bool) {
	return decoy.Answer{}, false
}

// create makes a rollout of task "t".
func (w *world) create(change ...func(*CreateRequest)) Created {
	w.t.Helper()
	req := CreateRequest{TaskID: "t"}
	for _, f := range change {
		f(&req)
	}
	made, err := w.m.Create(context.Background(), "", req)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// bash gives a bash call.
func bash(t testing.TB, key, command string) monitor.Call {
	t.Helper()
	return tool(t, key, monitor.ToolBash, map[string]any{"command": command})
}

func tool(t testing.TB, key, name string, arguments map[string]any) monitor.Call {
	t.Helper()
	if arguments == nil {
		arguments = map[string]any{}
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	call, err := monitor.ParseCall("id-"+key, key, name, raw, "")
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// do makes a call that must succeed.
func (w *world) do(id string, call monitor.Call) monitor.Observation {
	w.t.Helper()
	obs, err := w.m.Call(context.Background(), id, call)
	if err != nil {
		w.t.Fatalf("call %s: %v", call.Arguments, err)
	}
	return obs
}

// later makes a call in the background.
func (w *world) later(id string, call monitor.Call) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := w.m.Call(context.Background(), id, call)
		done <- err
	}()
	return done
}

// session gives the fake sandbox of a rollout.
func (w *world) session(id string) *sandboxtest.FakeSession {
	w.t.Helper()
	listed, _ := w.engine.List(context.Background())
	for _, l := range listed {
		if l.Name == id {
			return w.engine.Session(l.ID)
		}
	}
	w.t.Fatalf("rollout %s has no sandbox", id)
	return nil
}

func (w *world) view(id string) View {
	w.t.Helper()
	v, err := w.m.Get(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) trajectory(id string) *Trajectory {
	w.t.Helper()
	tr, err := w.m.Trajectory(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, c := range tr.Calls {
		if c.Ordinal != i+1 {
			w.t.Fatalf("call %d has ordinal %d: ordinals have gaps", i+1, c.Ordinal)
		}
	}
	return tr
}

// boxes counts the sandboxes there are.
func (w *world) boxes() int {
	listed, _ := w.engine.List(context.Background())
	return len(listed)
}

// wantCode checks the code of an error.
func wantCode(t *testing.T, err error, code string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want code %s", err, err, code)
	}
	if e.Code != code {
		t.Fatalf("code %s (%v), want %s", e.Code, err, code)
	}
	return e
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never came true: %s", what)
}

// gate is a command that waits until it is let go, and counts how often it ran.
type gateCommand struct {
	mu      sync.Mutex
	runs    int
	started chan struct{}
	release chan struct{}
}

func hold() *gateCommand {
	return &gateCommand{started: make(chan struct{}, 100), release: make(chan struct{})}
}

func (g *gateCommand) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs
}

// answer is an OnDo: commands that hold "wait" wait, the rest is built in.
func (g *gateCommand) answer(_ context.Context, _ *sandboxtest.FakeSession, call sandbox.Call) (sandbox.Result, error) {
	if !strings.Contains(call.Command, "wait") {
		return sandbox.Result{}, sandboxtest.ErrNotAnswered
	}
	g.mu.Lock()
	g.runs++
	n := g.runs
	g.mu.Unlock()
	g.started <- struct{}{}
	<-g.release
	zero := 0
	return sandbox.Result{Output: fmt.Appendf(nil, "run %d\n", n), Exit: &zero, Cwd: "/waited"}, nil
}
