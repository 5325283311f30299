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

// callFacts counts for how many calls it was asked.
type callFacts struct {
	*normalize.CorpusFacts
	calls *int
}

func (f callFacts) PerCall() normalize.Facts {
	*f.calls++
	return f.CorpusFacts
}

func TestFactsAreTakenAnewForEachCall(t *testing.T) {
	calls := 0
	n := normalize.New(testTask(), callFacts{normalize.NewCorpusFacts(nil, map[string]string{"/x": "hidden"}, nil, "/testbed"), &calls})
	for range 3 {
		if ev := n.Event(t.Context(), normalize.Call{Tool: "bash", Command: "cat /x"}); !hasHidden(ev) {
			t.Error("the facts for the call were not asked")
		}
	}
	if calls != 3 {
		t.Errorf("facts were taken %d times for 3 calls", calls)
	}
}
