package monitor

import (
	"context"
	"fmt"
	"log/slog"

	"proctor/judge"
	"proctor/sandbox"
)

// Dry is a Gate that concludes and never acts: for explaining a call, for reading a patch, for
// scoring a corpus. It is in mode Shadow, every call ends at once with status 0, and nothing is kept
// but the last record. Not safe for concurrent use.
type Dry struct {
	Gate  Gate
	awake wakeable
	last  *Record
	calls int
}

// NewDry makes a Dry from what decides: the task, the normaliser, the matcher and its digest, the
// judge. Policy and Log may be set on its Gate.
func NewDry(task judge.Task, n Normalizer, rules Matcher, packs string, j judge.Judge, policy Policy, log *slog.Logger) *Dry {
	d := &Dry{awake: wakeable{inner: j, on: true}}
	d.Gate = Gate{
		Mode: Shadow, Policy: policy, Task: task, Normalizer: n, Rules: rules, PacksID: packs, Judge: &d.awake,
		Box: dryBox{}, Record: (*dryRecord)(d), Log: log,
	}
	return d
}

// Do takes a call through the Gate and gives its record.
func (d *Dry) Do(ctx context.Context, call Call) (*Record, error) {
	if _, err := d.Gate.Do(ctx, call); err != nil {
		return nil, err
	}
	return d.last, nil
}

// Follow takes a call through the Gate for the state that it leaves: no judge is asked.
func (d *Dry) Follow(ctx context.Context, call Call) error {
	d.awake.on = false
	defer func() { d.awake.on = true }()
	_, err := d.Do(ctx, call)
	return err
}

// wakeable is a judge that finds everything benign until it is on.
type wakeable struct {
	inner judge.Judge
	on    bool
}

// Name is the inner judge's.
func (w *wakeable) Name() string { return w.inner.Name() }

// Digest is the inner judge's.
func (w *wakeable) Digest() string { return w.inner.Digest() }

// Judge asks the inner judge where it is on.
func (w *wakeable) Judge(ctx context.Context, c judge.Case) judge.Opinion {
	if !w.on {
		return judge.Opinion{By: w.Name(), Verdict: judge.Benign}
	}
	return w.inner.Judge(ctx, c)
}

// dryBox runs nothing.
type dryBox struct{}

func (dryBox) Do(context.Context, sandbox.Call) (sandbox.Result, error) {
	zero := 0
	return sandbox.Result{Exit: &zero}, nil
}

// dryRecord keeps the last record of a Dry.
type dryRecord Dry

// Intent numbers the record.
func (d *dryRecord) Intent(_ context.Context, rec *Record) error {
	d.calls++
	rec.Ordinal, rec.BoxID, d.last = d.calls, fmt.Sprint(d.calls), rec
	return nil
}

// Outcome keeps nothing more.
func (d *dryRecord) Outcome(context.Context, *Record) error { return nil }
