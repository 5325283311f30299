package rollouts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"proctor/monitor"
	"proctor/tasks"
)

func TestDeleteEndsARunningCall(t *testing.T) {
	g := hold()
	w := newWorld(t)
	w.engine.OnDo = g.answer
	made := w.create()
	running := w.later(made.ID, bash(t, "k", "wait"))
	<-g.started
	queued := w.later(made.ID, bash(t, "q", "echo queued"))
	for range 2 {
		if err := w.m.Delete(context.Background(), made.ID); err != nil {
			t.Fatal(err)
		}
	}
	close(g.release)
	for _, ch := range []<-chan error{running, queued} {
		wantCode(t, <-ch, CodeNotFound)
	}
	if w.m.Authenticate(made.ID, made.AgentToken) {
		t.Error("the token is alive")
	}
	if w.boxes() != 0 {
		t.Error("the sandbox is left")
	}
	_, err := w.m.Call(context.Background(), made.ID, bash(t, "k", "wait"))
	wantCode(t, err, CodeNotFound)
	v := w.view(made.ID)
	if v.Status != StatusDeleted || v.EndedAt == nil {
		t.Errorf("%+v", v)
	}
	calls := w.trajectory(made.ID).Calls
	if len(calls) != 1 || calls[0].Error == "" || calls[0].Observation != nil {
		t.Errorf("the call that was cut off is recorded as %+v", calls)
	}
	wantCode(t, w.m.Delete(context.Background(), "r_none"), CodeNotFound)
}

func TestTokensOpenTheirOwnRolloutOnly(t *testing.T) {
	w := newWorld(t)
	a, b := w.create(), w.create()
	keyed, err := w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, token string
		want      bool
	}{
		{a.ID, a.AgentToken, true}, {b.ID, b.AgentToken, true}, {keyed.ID, keyed.AgentToken, true},
		{a.ID, b.AgentToken, false}, {a.ID, keyed.AgentToken, false}, {a.ID, "", false}, {a.ID, a.AgentToken + "x", false},
		{a.ID, strings.TrimPrefix(a.AgentToken, "pat_"), false}, {"r_none", a.AgentToken, false}, {"", "", false},
	} {
		if got := w.m.Authenticate(c.id, c.token); got != c.want {
			t.Errorf("Authenticate(%q, %q) = %v", c.id, c.token, got)
		}
	}
	w.crash()
	if !w.m.Authenticate(a.ID, a.AgentToken) || w.m.Authenticate(a.ID, b.AgentToken) {
		t.Error("tokens changed with a restart")
	}
	if row, _ := w.store.RolloutByID(context.Background(), a.ID); strings.Contains(string(row.Doc)+string(row.TokenHash), a.AgentToken) {
		t.Error("the store holds the token")
	}
	if _, err := w.m.Grade(context.Background(), a.ID, true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rollout is gone", func() bool { return w.m.find(a.ID) == nil })
	if !w.m.Authenticate(a.ID, a.AgentToken) {
		t.Error("a graded rollout's token no longer reads its own answers")
	}
}

func TestSubmit(t *testing.T) {
	w := newWorld(t)
	byTool, byRoute := w.create().ID, w.create().ID
	w.do(byTool, tool(t, "s", "submit", nil))
	for range 2 {
		if err := w.m.Submit(context.Background(), byRoute); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{byTool, byRoute} {
		if v := w.view(id); v.Status != StatusSubmitted || v.StopReason != "submitted" {
			t.Errorf("%+v", v)
		}
		if calls := w.trajectory(id).Calls; len(calls) != 1 || calls[0].Name != "submit" {
			t.Errorf("recorded %+v", calls)
		}
		_, err := w.m.Call(context.Background(), id, bash(t, "", "echo late"))
		wantCode(t, err, CodeEnded)
	}
	w.do(byTool, tool(t, "s", "submit", nil))
	harness := bash(t, "", "echo diff")
	harness.Principal = monitor.Harness
	if obs := w.do(byTool, harness); obs.Output != "diff\n" {
		t.Errorf("the harness's call after the submission shows %q", obs.Output)
	}
	wantCode(t, w.m.Submit(context.Background(), "r_none"), CodeNotFound)
}

func TestLeasesAndLifetimes(t *testing.T) {
	g := hold()
	w := newWorld(t)
	w.engine.OnDo = g.answer
	idle, beating, busy := w.create().ID, w.create().ID, w.create().ID
	short := w.create(func(r *CreateRequest) { r.LeaseS = 3600; r.Limits = &tasks.Limits{LifetimeS: 60} }).ID
	running := w.later(busy, bash(t, "", "wait"))
	<-g.started
	w.clock.Add(14 * time.Minute)
	w.m.Sweep()
	if err := w.m.Heartbeat(context.Background(), beating); err != nil {
		t.Fatal(err)
	}
	w.clock.Add(2 * time.Minute)
	w.m.Sweep()
	eventually(t, "two sandboxes are freed", func() bool { return w.boxes() == 2 && w.m.find(idle) == nil && w.m.find(short) == nil })
	if v := w.view(idle); v.Status != StatusFailed || v.StopReason != "lease_expired" || v.FailureClass != classInfra || v.Reward != nil {
		t.Errorf("of the client that left: %+v", v)
	}
	if v := w.view(short); v.StopReason != "lifetime_expired" || v.FailureClass != classModel || v.Reward == nil || *v.Reward != 0 {
		t.Errorf("of the agent that ran out of time: %+v", v)
	}
	for _, id := range []string{beating, busy} {
		if v := w.view(id); v.Status != StatusRunning {
			t.Errorf("one that is alive: %+v", v)
		}
	}
	close(g.release)
	if err := <-running; err != nil {
		t.Fatal(err)
	}
	wantCode(t, w.m.Heartbeat(context.Background(), idle), CodeEnded)
	wantCode(t, w.m.Heartbeat(context.Background(), "r_none"), CodeNotFound)
}

func TestDrainWaitsForCalls(t *testing.T) {
	g := hold()
	w := newWorld(t)
	w.engine.OnDo = g.answer
	id := w.create().ID
	running := w.later(id, bash(t, "", "wait"))
	<-g.started
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := w.m.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drained with a call running: %v", err)
	}
	_, err := w.m.Create(context.Background(), "", CreateRequest{TaskID: "t"})
	if e := wantCode(t, err, CodeDraining); !e.Retry {
		t.Errorf("%+v", e)
	}
	_, err = w.m.Call(context.Background(), id, bash(t, "", "true"))
	wantCode(t, err, CodeDraining)
	wantCode(t, w.m.Ready(context.Background()), CodeDraining)
	close(g.release)
	if err := w.m.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-running; err != nil {
		t.Fatal(err)
	}
}

func TestCloseKeepsOrRemoves(t *testing.T) {
	g := hold()
	w := newWorld(t)
	w.engine.OnDo = g.answer
	id := w.create().ID
	running := w.later(id, bash(t, "k", "wait"))
	<-g.started
	if err := w.m.Close(false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-running, CodeInterrupted)
	if w.boxes() != 1 {
		t.Fatal("the sandbox was removed")
	}
	close(g.release)
	w.open()
	if obs := w.do(id, bash(t, "k", "wait")); obs.Output != "run 1\n" {
		t.Errorf("the call that was let go of is answered with %q", obs.Output)
	}
	if err := w.m.Close(true); err != nil {
		t.Fatal(err)
	}
	if w.boxes() != 0 {
		t.Error("sandboxes are left")
	}
	w.open()
	if v := w.view(id); v.Status != StatusFailed || v.FailureClass != classInfra || v.StopReason != "server_removed" {
		t.Errorf("%+v", v)
	}
}
