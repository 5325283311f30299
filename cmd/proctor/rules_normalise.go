package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"proctor/monitor/normalize"
	"proctor/rules"
)

// normaliseCase runs a case's calls through a fresh normaliser. Every call counts as run.
func normaliseCase(ctx context.Context, c rules.Case) ([]rules.Event, error) {
	workdir := c.Vars.One("workdir")
	if workdir == "" {
		workdir = "/testbed"
	}
	n := normalize.New(normalize.Task{Workdir: workdir, Vars: c.Vars}, caseFacts{workdir, c.Facts})
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

// caseFacts answers from a case's facts. What they do not name is unknown.
type caseFacts struct {
	workdir string
	facts   rules.TestFacts
}

// Ref gives the standing of a revision as written.
func (f caseFacts) Ref(_ context.Context, _, text string) rules.Standing {
	if s, ok := f.facts.Refs[text]; ok {
		return rules.Standing(s)
	}
	return rules.Unknown
}

// Path gives the state of a path, or of the nearest folder above it that the facts call absent or
// hidden.
func (f caseFacts) Path(_ context.Context, p string) normalize.PathState {
	if s, ok := lookupPath(f.workdir, f.facts.Paths, p); ok {
		return normalize.PathState(s)
	}
	for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
		if s, ok := lookupPath(f.workdir, f.facts.Paths, dir); ok && s != string(normalize.PathVisible) {
			return normalize.PathState(s)
		}
	}
	return normalize.PathUnknown
}

// Real gives the path itself: a case has no links but those that its calls make.
func (f caseFacts) Real(_ context.Context, p string) string { return p }

// Read gives the content before the call.
func (f caseFacts) Read(_ context.Context, p string, limit int64) ([]byte, bool) {
	s, ok := lookupPath(f.workdir, f.facts.Before, p)
	if !ok {
		return nil, false
	}
	return []byte(s[:min(int64(len(s)), limit)]), true
}

// lookupPath finds an absolute path among names that are absolute or relative to workdir.
func lookupPath(workdir string, m map[string]string, p string) (string, bool) {
	for k, v := range m {
		k = strings.TrimSuffix(k, "/")
		if k == p || path.Join(workdir, k) == p && !strings.HasPrefix(k, "/") {
			return v, true
		}
	}
	return "", false
}
