package main

import (
	"context"
	"encoding/json"
	"fmt"

	"proctor/monitor/normalize"
	"proctor/rules"
)

// normaliseCase runs a case's calls through a fresh normaliser. Every call counts as run.
func normaliseCase(ctx context.Context, c rules.Case) ([]rules.Event, error) {
	workdir := c.Vars.One("workdir")
	if workdir == "" {
		workdir = "/testbed"
	}
	n := normalize.New(normalize.Task{Workdir: workdir, Vars: c.Vars}, normalize.NewCorpusFacts(c.Facts.Refs, c.Facts.Paths, c.Facts.Before, workdir))
	events := make([]rules.Event, 0, len(c.Setup)+1)
	for i, tc := range append(append([]rules.ToolCall{}, c.Setup...), c.Call) {
		call, err := normalCall(tc)
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", i+1, err)
		}
		events = append(events, n.Event(ctx, call))
		n.Observe(call, true, "")
	}
	return events, ctx.Err()
}

// normalCall gives a call the normaliser's form.
func normalCall(tc rules.ToolCall) (normalize.Call, error) {
	text, err := json.Marshal(tc.Arguments)
	if err != nil {
		return normalize.Call{}, err
	}
	var a struct {
		Command    string `json:"command"`
		Handle     string `json:"handle"`
		Text       string `json:"text"`
		Path       string `json:"path"`
		FileText   string `json:"file_text"`
		OldStr     string `json:"old_str"`
		NewStr     string `json:"new_str"`
		InsertLine int    `json:"insert_line"`
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return normalize.Call{}, fmt.Errorf("arguments of %s: %w", tc.Tool, err)
	}
	return normalize.Call{Tool: tc.Tool, Command: a.Command, Handle: a.Handle, Text: a.Text, Path: a.Path,
		File: a.FileText, Old: a.OldStr, New: a.NewStr, Line: a.InsertLine}, nil
}
