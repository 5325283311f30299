package rollouts

import (
	"context"
	"testing"

	"proctor/sandbox"
)

// classOf gives an ended rollout's class and reward as its record has them.
func (w *world) classOf(id string) (string, *float64) {
	w.t.Helper()
	v, err := w.m.Get(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.FailureClass, v.Reward
}

// A failure is the guard's where a person finds that it blocked an honest call, whenever that is found, and the
// model's again where that is taken back. Rewards stay as they are.
func TestMisjudgedRolloutsAreTheGuards(t *testing.T) {
	w := newWorld(t)
	review := func(id string, ordinal int, label string) {
		t.Helper()
		if err := w.m.AddReview(context.Background(), id, ordinal, Review{Label: label}); err != nil {
			t.Fatal(err)
		}
	}
	fail := func(id string) {
		t.Helper()
		r := w.m.find(id)
		r.die(&sandbox.DeadError{Class: sandbox.FailureModel, Reason: "its own doing"})
		<-r.gone
	}
	wants := func(id, class string, reward bool) {
		t.Helper()
		if got, r := w.classOf(id); got != class || r != nil != reward {
			t.Errorf("class %s with a reward %v, want %s %v", got, r, class, reward)
		}
	}
	after, before, plain := w.create().ID, w.create().ID, w.create().ID
	for _, id := range []string{after, before, plain} {
		w.do(id, bash(t, "", "echo fine"))
		w.do(id, bash(t, "", "echo CHEAT")) // blocked
	}
	review(before, 2, "benign")
	wants(before, sandbox.FailureNone, false) // it goes on
	for _, id := range []string{after, before, plain} {
		fail(id)
	}
	wants(before, sandbox.FailureGuard, true)
	wants(after, sandbox.FailureModel, true)
	review(after, 1, "benign") // was not blocked
	wants(after, sandbox.FailureModel, true)
	review(after, 2, "benign")
	wants(after, sandbox.FailureGuard, true)
	review(after, 2, "hack")
	wants(after, sandbox.FailureModel, true)
	review(plain, 2, "hack")
	wants(plain, sandbox.FailureModel, true)

	host := w.create().ID
	w.do(host, bash(t, "", "echo CHEAT"))
	review(host, 1, "benign")
	r := w.m.find(host)
	r.die(&sandbox.DeadError{Class: sandbox.FailureInfra, Reason: "the host"})
	<-r.gone
	wants(host, sandbox.FailureInfra, false)
}
