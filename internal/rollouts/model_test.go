package rollouts

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"proctor/internal/records"
	"proctor/internal/trajectory"
	"proctor/internal/trajectory/trajtest"
)

func withRecords(w *world) {
	s, err := records.New(w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	w.opt.Records = s
}

// The policy's key reaches the gateway, through restarts, and no record tells it.
func TestPolicyKeyIsNotTold(t *testing.T) {
	w := newWorld(t, withRecords)
	policy := Policy{Name: "p", BaseURL: "http://127.0.0.1:1/v1", Model: "m", APIKey: "sk-secret", Dialect: "vllm"}
	made := w.create(func(r *CreateRequest) { r.Policy = policy })
	w.crash()
	target, err := w.m.Model(context.Background(), made.ID)
	if err != nil || target.APIKey != "sk-secret" || target.BaseURL != policy.BaseURL || target.Model != "m" || target.Dialect != "vllm" {
		t.Errorf("target %+v %v", target, err)
	}
	tr, err := w.m.Trajectory(context.Background(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(tr)
	if err != nil || strings.Contains(string(text), "sk-secret") {
		t.Errorf("the record tells the key: %s %v", text, err)
	}
	if err := w.m.Delete(context.Background(), made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.m.Model(context.Background(), made.ID); err == nil {
		t.Error("a deleted rollout has a model")
	}
	for _, bad := range []Policy{{BaseURL: "file:///etc/passwd"}, {BaseURL: "http://u:p@h/v1"}, {Dialect: "odd"}} {
		_, err := w.m.Create(context.Background(), "", CreateRequest{TaskID: "t", Policy: bad})
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != CodeInvalidField {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// A record holds its segments, each verdict joined to its tokens, and passes its own check.
func TestTrajectoryHoldsSegments(t *testing.T) {
	w := newWorld(t, withRecords)
	made := w.create()
	p := trajtest.New(1)
	for _, command := range []string{"echo one", "cat CHEAT", "echo two"} {
		c, id := p.Turn(command, "out\n")
		if err := w.opt.Records.(*records.Service).Append(context.Background(), made.ID, "", [sha256.Size]byte{}, c); err != nil {
			t.Fatal(err)
		}
		call := bash(t, "", command)
		call.ID = id
		w.do(made.ID, call)
	}
	tr, err := w.m.Trajectory(context.Background(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Segments) != 1 || len(tr.ModelCalls) != 3 || len(tr.Guard) != 1 {
		t.Fatalf("%d segments, %d model calls, guard %+v", len(tr.Segments), len(tr.ModelCalls), tr.Guard)
	}
	g := tr.Guard[0]
	if g.Joined != "call_id" || g.Turn != 1 || g.Decision != "block" || tr.Segments[0].BlockedTurns[0] != 1 {
		t.Errorf("guard %+v", g)
	}
	text, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := trajectory.Check(text)
	if err != nil || len(problems) > 0 {
		t.Errorf("problems %v %v", problems, err)
	}
	r, err := w.m.ExportRollout(context.Background(), made.ID, "swe-bench")
	if err != nil || r.Instruction != "Fix it." || len(r.Calls) != 3 || r.Calls[1].Output != "No such file or directory\n" || r.Patch == nil {
		t.Errorf("to export: %+v %v", r, err)
	}
}
