package normalize_test

import (
	"context"
	"strings"
	"testing"

	"proctor/monitor/normalize"
)

// slowFacts answers only when its context ends.
type slowFacts struct{ *normalize.CorpusFacts }

func (slowFacts) Path(ctx context.Context, _ string) normalize.PathState {
	<-ctx.Done()
	return normalize.PathUnknown
}

func TestSlowFacts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ev := normalize.New(testTask(), slowFacts{normalize.NewCorpusFacts(nil, nil, nil, "/testbed")}).Event(ctx, normalize.Call{Tool: "bash", Command: "cat /hidden/x"})
	if !hasHidden(ev) {
		t.Error("without an answer the task's own list was not used")
	}
}

// panicFacts breaks.
type panicFacts struct{ *normalize.CorpusFacts }

func (panicFacts) Path(context.Context, string) normalize.PathState { panic("no answer") }

func TestPanicIsOpaque(t *testing.T) {
	n := normalize.New(testTask(), panicFacts{normalize.NewCorpusFacts(nil, nil, nil, "/testbed")})
	ev := n.Event(t.Context(), normalize.Call{Tool: "bash", Command: "cat /hidden/x"})
	if !ev.Opaque || len(ev.Notes) == 0 || !strings.Contains(ev.Notes[0], "no answer") {
		t.Errorf("event %+v", ev)
	}
	n.Observe(normalize.Call{Tool: "bash", Command: "true"}, true, "")
}
