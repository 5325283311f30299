package main

import (
	"context"
	"encoding/json"
	"fmt"

	"proctor/judge"
	"proctor/monitor"
	"proctor/monitor/classifier"
	"proctor/monitor/normalize"
	"proctor/rules"
)

// judgeScene puts a case's calls through a Gate in shadow mode, so that what is measured is what a
// server does. Nothing runs: every call ends at once with status 0. Setup calls are followed, and
// not judged. A nil classifier is the built-in one.
func judgeScene(ctx context.Context, set *rules.Set, packs string, j judge.Judge, m *classifier.Model, task judge.Task, c rules.Case) (monitor.Record, error) {
	workdir := task.Workdir
	if workdir == "" {
		workdir = "/testbed"
	}
	n := normalize.New(normalize.Task{Workdir: workdir, Vars: c.Vars, Classifier: m}, normalize.NewCorpusFacts(c.Facts.Refs, c.Facts.Paths, c.Facts.Before, workdir))
	dry := monitor.NewDry(task, n, set.Session(), packs, j, monitor.Policy{}, nil)
	for i, tc := range c.Setup {
		call, err := sceneCall(tc)
		if err == nil {
			err = dry.Follow(ctx, call)
		}
		if err != nil {
			return monitor.Record{}, fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	call, err := sceneCall(c.Call)
	if err != nil {
		return monitor.Record{}, fmt.Errorf("call %d: %w", len(c.Setup)+1, err)
	}
	rec, err := dry.Do(ctx, call)
	if err != nil {
		return monitor.Record{}, fmt.Errorf("call %d: %w", len(c.Setup)+1, err)
	}
	return *rec, ctx.Err()
}

// sceneCall holds a case's call against its tool.
func sceneCall(tc rules.ToolCall) (monitor.Call, error) {
	args, err := json.Marshal(tc.Arguments)
	if err != nil {
		return monitor.Call{}, err
	}
	return monitor.ParseCall("c", "", tc.Tool, args, "")
}

// sceneTask gives a judge what a case says of its task.
func sceneTask(id string, vars rules.Vars) judge.Task {
	return judge.Task{ID: id, Instruction: vars.One("instruction"), Workdir: vars.One("workdir"), Vars: vars}
}
