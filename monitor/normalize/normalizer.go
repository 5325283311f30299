package normalize

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"proctor/monitor/classifier"
	"proctor/rules"
)

// Budget of one call. Reached only by input made to reach it: the typical command takes 30 us and
// the longest of the corpora under 5 ms. Steps bound the work; the time is for facts that are slow to
// come and is generous, so that a loaded machine does not change what is seen.
const (
	maxTime     = 500 * time.Millisecond
	maxCommands = 512
	maxSteps    = 20000
	maxDepth    = 16
	maxLoop     = 16
	maxWords    = 512
	maxValue    = 64 << 10
)

// Normalizer makes the events of one rollout and follows what its calls do. Safe for concurrent
// use; calls that change state are meant to come one after the other.
type Normalizer struct {
	task  taskFacts
	facts Facts
	names *classifier.Names
	model *classifier.Model // nil: the built-in one

	mu      sync.Mutex
	state   *state
	pending *pending // what the last Event saw
	typed   map[string]*typing
}

type pending struct {
	call  Call
	state *state
}

// New gives a Normalizer at the start of a rollout. A nil facts answers unknown to everything.
func New(task Task, facts Facts) *Normalizer {
	if facts == nil {
		facts = noFacts{}
	}
	t := newTaskFacts(task)
	return &Normalizer{task: t, facts: facts, names: classifier.NamesOf(t.workdir, task.Vars), model: task.Classifier, state: &state{cwd: t.workdir, old: t.workdir}}
}

// Event gives the facts of call; it changes nothing that a later Event sees.
func (n *Normalizer) Event(ctx context.Context, call Call) rules.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	ev, st := n.read(ctx, call)
	if n.model == nil {
		n.model = classifier.Core()
	}
	n.model.Judge(n.names, &ev)
	n.pending = &pending{call, st}
	return ev
}

// Document gives what a classifier would read of a call, and asks none.
func (n *Normalizer) Document(ctx context.Context, call Call) classifier.Document {
	n.mu.Lock()
	defer n.mu.Unlock()
	ev, _ := n.read(ctx, call)
	return n.names.Read(&ev)
}

// Observe tells that call ran, or was answered without running, and where the shell then stood ("":
// not known). A call that did not run leaves no effects.
func (n *Normalizer) Observe(call Call, ran bool, cwd string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pending
	n.pending = nil
	if ran {
		if p == nil || p.call != call {
			_, st := n.read(context.Background(), call)
			p = &pending{call, st}
		}
		n.state = p.state.commit()
		n.keepTyped(call)
	}
	if strings.HasPrefix(cwd, "/") {
		n.state.cwd = path.Clean(cwd)
	}
}

// read makes the event and the state that would follow.
func (n *Normalizer) read(ctx context.Context, call Call) (ev rules.Event, st *state) {
	st = n.state.fork()
	r := &run{n: n, facts: n.forCall(), ctx: ctx, st: st, ev: &ev, start: time.Now(), states: map[string]PathState{}}
	defer func() {
		if r.cancel != nil {
			r.cancel()
		}
	}()
	ev.Call = rules.CallFacts{Tool: call.Tool, Cwd: st.cwd}
	defer func() {
		if p := recover(); p != nil {
			ev.Opaque = true
			ev.Notes = append(ev.Notes, fmt.Sprintf("normaliser: %v", p))
		}
	}()
	switch call.Tool {
	case "bash":
		ev.Call.Text = call.Command
		r.shell(call.Command)
	case "bash_input":
		ev.Call.Text = r.input(call)
	default:
		r.tool(call)
	}
	r.carryOwn()
	return ev, st
}

// forCall gives the facts for the questions about one call, which may keep answers.
func (n *Normalizer) forCall() Facts {
	if f, ok := n.facts.(interface{ PerCall() Facts }); ok {
		return f.PerCall()
	}
	return n.facts
}

// noFacts knows nothing.
type noFacts struct{}

func (noFacts) Ref(context.Context, string, string) rules.Standing         { return rules.Unknown }
func (noFacts) Path(context.Context, string) PathState                     { return PathUnknown }
func (noFacts) Real(_ context.Context, p string) string                    { return p }
func (noFacts) Read(context.Context, string, int64) (b []byte, found bool) { return nil, false }
