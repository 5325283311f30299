package main

import (
	"context"
	"encoding/json"
	"fmt"

	"proctor/judge"
	"proctor/monitor"
	"proctor/monitor/normalize"
	"proctor/rules"
	"proctor/sandbox"
)

// judgeScene puts a case's calls through a Gate in shadow mode, so that what is measured is what a
// server does. Nothing runs: every call ends at once with status 0. Setup calls are followed, and
// not judged.
func judgeScene(ctx context.Context, set *rules.Set, packs string, j judge.Judge, task judge.Task, c rules.Case) (monitor.Record, error) {
	workdir := task.Workdir
	if workdir == "" {
		workdir = "/testbed"
	}
	awake := &wakeable{inner: j}
	last := &lastRecord{}
	gate := &monitor.Gate{
		Mode: monitor.Shadow, Task: task, Rules: set.Session(), PacksID: packs, Judge: awake, Box: idleBox{}, Record: last,
		Normalizer: normalize.New(normalize.Task{Workdir: workdir, Vars: c.Vars}, normalize.NewCorpusFacts(c.Facts.Refs, c.Facts.Paths, c.Facts.Before, workdir)),
	}
	calls := append(append([]rules.ToolCall{}, c.Setup...), c.Call)
	for i, tc := range calls {
		awake.on = i == len(calls)-1
		args, err := json.Marshal(tc.Arguments)
		if err != nil {
			return last.rec, err
		}
		call, err := monitor.ParseCall("c", "", tc.Tool, args, "")
		if err != nil {
			return last.rec, fmt.Errorf("call %d: %w", i+1, err)
		}
		if _, err := gate.Do(ctx, call); err != nil {
			return last.rec, fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	return last.rec, ctx.Err()
}

// sceneTask gives a judge what a case says of its task.
func sceneTask(id string, vars rules.Vars) judge.Task {
	return judge.Task{ID: id, Instruction: vars.One("instruction"), Workdir: vars.One("workdir"), Vars: vars}
}

// wakeable is a judge that finds everything benign until it is on.
type wakeable struct {
	inner judge.Judge
	on    bool
}

func (w *wakeable) Name() string   { return w.inner.Name() }
func (w *wakeable) Digest() string { return w.inner.Digest() }

func (w *wakeable) Judge(ctx context.Context, c judge.Case) judge.Opinion {
	if !w.on {
		return judge.Opinion{By: w.Name(), Verdict: judge.Benign}
	}
	return w.inner.Judge(ctx, c)
}

// idleBox runs nothing.
type idleBox struct{}

func (idleBox) Do(context.Context, sandbox.Call) (sandbox.Result, error) {
	zero := 0
	return sandbox.Result{Exit: &zero}, nil
}

// lastRecord keeps the last record.
type lastRecord struct {
	rec monitor.Record
	n   int
}

func (l *lastRecord) Intent(_ context.Context, rec *monitor.Record) error {
	l.n++
	rec.Ordinal, rec.BoxID = l.n, fmt.Sprint(l.n)
	return nil
}

func (l *lastRecord) Outcome(_ context.Context, rec *monitor.Record) error {
	l.rec = *rec
	return nil
}
