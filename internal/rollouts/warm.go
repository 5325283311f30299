package rollouts

import (
	"context"

	"proctor/sandbox"
	"proctor/tasks"
)

// Expecter is what an engine may also be that keeps sandboxes ready before they are asked for.
type Expecter interface {
	// Expect says that n sandboxes of spec's kind will be asked for soon.
	Expect(ctx context.Context, spec sandbox.Spec, n int) error
}

// WarmRequest is the body of POST /v1/tasks/{id}/warm: what rollouts of a task will be created with.
type WarmRequest struct {
	N         int           `json:"n"`                   // 0 to 512; 0 makes the image ready and no sandbox
	Hardening *bool         `json:"hardening,omitempty"` // default true
	Limits    *tasks.Limits `json:"limits,omitempty"`
}

// Warmed answers it.
type Warmed struct {
	TaskID string `json:"task_id"`
	Digest string `json:"digest"` // of the image that was made ready
	// Expected is how many sandboxes are being made ready; 0 where the server has no pool. There may be room
	// for fewer.
	Expected int `json:"expected"`
}

// Warm makes a task's image ready and announces n rollouts of it to the pool.
func (m *Manager) Warm(ctx context.Context, taskID string, req WarmRequest) (Warmed, error) {
	if req.N < 0 || req.N > maxGroup {
		return Warmed{}, refuse(CodeInvalidField, "field n: %d is out of range; use 0 to %d", req.N, maxGroup)
	}
	create := CreateRequest{TaskID: taskID, Hardening: req.Hardening, Limits: req.Limits}
	task, err := m.check(&create)
	if err != nil {
		return Warmed{}, err
	}
	d, spec, err := m.design(ctx, plan{req: create, task: task})
	if err != nil {
		return Warmed{}, err
	}
	w := Warmed{TaskID: task.ID, Digest: d.Image.Digest}
	if e, ok := m.opt.Engine.(Expecter); ok && req.N > 0 {
		if err := e.Expect(ctx, spec, req.N); err != nil {
			return Warmed{}, asError(CodeEngine, "the sandboxes could not be announced", err)
		}
		w.Expected = req.N
	}
	return w, nil
}

// announceGroup tells a pool of a group's members, as far as they are not asked for at once. That it cannot be
// told hurts nobody.
func (m *Manager) announceGroup(ctx context.Context, p plan, n int) {
	e, ok := m.opt.Engine.(Expecter)
	if !ok || p.fork != nil || n <= groupParallel {
		return
	}
	if _, spec, err := m.design(ctx, p); err == nil {
		_ = e.Expect(ctx, spec, n)
	}
}
