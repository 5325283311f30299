package rollouts

import (
	"context"
	"testing"

	"proctor/sandbox"
	"proctor/tasks"
)

// expecting is an engine that is told what is to come.
type expecting struct {
	*cutEngine
	specs []sandbox.Spec
	ns    []int
}

func (e *expecting) Expect(_ context.Context, spec sandbox.Spec, n int) error {
	e.specs, e.ns = append(e.specs, spec), append(e.ns, n)
	return nil
}

func TestWarmAnnouncesWhatACreateAsksFor(t *testing.T) {
	w := newWorld(t)
	pool := &expecting{cutEngine: w.cut}
	w.m.opt.Engine = pool
	limits := &tasks.Limits{Limits: sandbox.Limits{MemoryMB: 64}}
	got, err := w.m.Warm(context.Background(), "t", WarmRequest{N: 3, Limits: limits})
	if err != nil || got != (Warmed{TaskID: "t", Digest: "sha256:img", Expected: 3}) {
		t.Errorf("%+v %v", got, err)
	}
	made := w.create(func(r *CreateRequest) { r.Limits = limits })
	asked, told := w.session(made.ID).Spec, pool.specs[0]
	asked.Name, told.Name = "", ""
	if len(pool.ns) != 1 || pool.ns[0] != 3 || !sameSpec(asked, told) {
		t.Errorf("announced %v %+v, asked for %+v", pool.ns, told, asked)
	}
	if _, err := w.m.CreateGroup(context.Background(), "", GroupRequest{N: groupParallel + 1, CreateRequest: CreateRequest{TaskID: "t"}}); err != nil {
		t.Fatal(err)
	}
	if len(pool.ns) != 2 || pool.ns[1] != groupParallel+1 {
		t.Errorf("a large group announces its members: %v", pool.ns)
	}
	_, err = w.m.Warm(context.Background(), "t", WarmRequest{N: 513})
	wantCode(t, err, CodeInvalidField)
	_, err = w.m.Warm(context.Background(), "none", WarmRequest{})
	wantCode(t, err, CodeTaskNotFound)
	w.m.opt.Engine = w.cut
	if got, err := w.m.Warm(context.Background(), "t", WarmRequest{N: 3}); err != nil || got.Expected != 0 {
		t.Errorf("without a pool: %+v %v", got, err)
	}
}

// sameSpec compares what sandboxes are made from.
func sameSpec(a, b sandbox.Spec) bool {
	return a.Image == b.Image && a.Workdir == b.Workdir && a.User == b.User && a.Limits == b.Limits && a.Network.Mode == b.Network.Mode &&
		len(a.Env) == len(b.Env) && len(a.Labels) == len(b.Labels)
}
