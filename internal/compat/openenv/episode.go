package openenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"proctor/internal/compat"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

// episode is one client's environment: a rollout at a time. Its messages are taken one after another.
type episode struct {
	host compat.Host

	mu        sync.Mutex
	rollout   string
	task      string
	episodeID string
	steps     int
	done      bool
}

// resetData is what a client may say at reset. Other keys are let by: clients send what their own
// environments take.
type resetData struct {
	Seed      int64            `json:"seed"`
	EpisodeID string           `json:"episode_id"`
	TaskID    string           `json:"task_id"`
	Mode      string           `json:"mode"`
	Policy    *rollouts.Policy `json:"policy"`
	GroupID   *string          `json:"group_id"`
	Metadata  map[string]any   `json:"metadata"`
}

// action is one step: the call of a tool, in OpenEnv's words or short.
type action struct {
	Type      string          `json:"type"` // call_tool (default), list_tools
	ToolName  string          `json:"tool_name"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Command   *string         `json:"command"` // short for bash
	Metadata  json.RawMessage `json:"metadata"`
}

// result is an observation as the wire carries it: metadata is left out there, by OpenEnv's own rule.
type result struct {
	Observation map[string]any `json:"observation"`
	Reward      *float64       `json:"reward"`
	Done        bool           `json:"done"`
}

// wireError is an error with OpenEnv's code.
type wireError struct {
	code    string
	message string
}

func (e *wireError) Error() string { return e.message }

func invalid(format string, args ...any) error {
	return &wireError{"VALIDATION_ERROR", fmt.Sprintf(format, args...)}
}

// reset ends the rollout at hand and makes another.
func (e *episode) reset(ctx context.Context, data json.RawMessage) (result, error) {
	var in resetData
	if len(data) > 0 {
		if err := json.Unmarshal(data, &in); err != nil {
			return result{}, invalid("reset: %v", err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(ctx)
	task, err := compat.Pick(ctx, e.host, in.TaskID, in.Seed)
	if err != nil {
		return result{}, err
	}
	req := rollouts.CreateRequest{TaskID: task, Mode: in.Mode, Seed: in.Seed, GroupID: in.GroupID, Metadata: in.Metadata}
	if in.Policy != nil {
		req.Policy = *in.Policy
	}
	made, err := e.host.Create(ctx, "", req)
	if err != nil {
		return result{}, err
	}
	e.rollout, e.task, e.episodeID, e.steps, e.done = made.ID, task, in.EpisodeID, 0, false
	if e.episodeID == "" {
		e.episodeID = made.ID
	}
	return result{Observation: map[string]any{"output": made.Instruction, "instruction": made.Instruction, "task_id": task,
		"workdir": made.Workdir, "tools": tools()}}, nil
}

// step runs one action. submit ends the episode, and its answer carries the reward.
func (e *episode) step(ctx context.Context, data json.RawMessage) (result, error) {
	var in action
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return result{}, invalid("step: %v", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if in.Type == "list_tools" {
		return result{Observation: map[string]any{"tools": tools()}, Done: e.done}, nil
	}
	name, args, err := in.call()
	switch {
	case err != nil:
		return result{}, err
	case e.rollout == "":
		return result{}, &wireError{"SESSION_ERROR", "there is no episode; reset first"}
	case e.done:
		return result{}, &wireError{"SESSION_ERROR", "the episode is over; reset begins another"}
	}
	seen, err := compat.Call(ctx, e.host, compat.Caller{Rollout: e.rollout, Principal: monitor.Agent}, "", name, args)
	var bad *monitor.BadCall
	if errors.As(err, &bad) {
		e.steps++
		return result{Observation: map[string]any{"tool_name": name, "result": nil,
			"error": map[string]any{"error_type": "invalid_args", "message": bad.Error()}}}, nil
	}
	if err != nil {
		return result{}, err
	}
	e.steps++
	out := result{Observation: observed(in.Type == "call_tool", name, seen)}
	if name == "submit" {
		grade, err := e.host.Grade(ctx, e.rollout, true)
		if err != nil {
			return result{}, err
		}
		e.done, out.Done, out.Reward = true, true, grade.Reward
		out.Observation["outcome"] = grade.Outcome
	}
	return out, nil
}

func (a *action) call() (string, json.RawMessage, error) {
	name := a.ToolName
	if name == "" {
		name = a.Name
	}
	args := a.Arguments
	switch {
	case a.Type != "" && a.Type != "call_tool":
		return "", nil, invalid("step: type is %.40q, want call_tool or list_tools", a.Type)
	case a.Command != nil && name == "" && args == nil:
		raw, err := json.Marshal(map[string]string{"command": *a.Command})
		return "bash", raw, err
	case name == "":
		return "", nil, invalid("step: tool_name is missing")
	case len(args) == 0:
		args = json.RawMessage("{}")
	}
	return name, args, nil
}

// observed gives OpenEnv's own form of a tool's answer, or, for a short action, the answer's fields.
func observed(long bool, name string, seen monitor.Observation) map[string]any {
	fields := map[string]any{"call_id": seen.CallID, "output": seen.Output, "exit_code": seen.ExitCode, "timed_out": seen.TimedOut,
		"truncated": seen.Truncated, "handle": seen.Handle}
	if !long {
		return fields
	}
	return map[string]any{"tool_name": name, "result": fields, "error": nil}
}

func (e *episode) state() map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	state := map[string]any{"episode_id": nil, "step_count": e.steps, "task_id": e.task, "rollout_id": e.rollout, "done": e.done}
	if e.rollout != "" {
		state["episode_id"] = e.episodeID
	}
	return state
}

// close frees the sandbox. The record stays.
func (e *episode) close(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(ctx)
}

// end lets the rollout at hand go. Its sandbox is freed even where the client is gone already.
func (e *episode) end(ctx context.Context) {
	if e.rollout != "" && !e.done { // a graded rollout has freed its sandbox
		_ = e.host.Delete(context.WithoutCancel(ctx), e.rollout) // gone, or reaped with its lease
	}
	e.rollout = ""
}

func tools() []map[string]any {
	var list []map[string]any
	for _, t := range rollouts.ToolList() {
		list = append(list, map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.InputSchema})
	}
	return list
}
