// Package compat holds what the servers of other people's protocols share: each subpackage speaks one
// protocol to clients that its own authors wrote, and does everything through a Host, so that a call is
// gated, recorded and answered alike whichever way it came.
//
//	mcptools  the Model Context Protocol, streamable HTTP
//	swerex    SWE-ReX's remote runtime
//	openenv   OpenEnv's WebSocket and HTTP environment server
//	nemogym   a NeMo-Gym resources server
//
// Nothing in an answer tells whether a call was run or answered with a decoy; these packages see
// observations only.
package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"
)

// Host is what the servers need of *rollouts.Manager. Errors are *rollouts.Error.
type Host interface {
	Create(ctx context.Context, key string, req rollouts.CreateRequest) (rollouts.Created, error)
	Call(ctx context.Context, id string, call monitor.Call) (monitor.Observation, error)
	Exec(ctx context.Context, id string, e sandbox.Exec) (sandbox.ExecResult, error)
	Submit(ctx context.Context, id string) error
	Grade(ctx context.Context, id string, wait bool) (*tasks.Grade, error)
	Delete(ctx context.Context, id string) error
	Tasks(ctx context.Context) []*tasks.Task
}

// Pick gives the task that a client asked for by id, or, where it named none, the one that a seed picks:
// seed modulo the number of tasks, in order of id. Protocols whose clients know of seeds only reach every
// task that way.
func Pick(ctx context.Context, h Host, id string, seed int64) (string, error) {
	if id != "" {
		return id, nil
	}
	list := h.Tasks(ctx)
	if len(list) == 0 {
		return "", &rollouts.Error{Code: rollouts.CodeTaskNotFound, Detail: "the server has no task; start it with --tasks"}
	}
	ids := make([]string, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	sort.Strings(ids)
	n := int64(len(ids))
	return ids[((seed%n)+n)%n], nil
}

// Caller is who speaks: which rollout, and whether as its agent or its harness.
type Caller struct {
	Rollout   string
	Principal string // monitor.Agent or monitor.Harness
}

// Call takes one tool call through the rollout's Gate. key makes a repeat answer the same; "" for none. A
// call that does not fit its tool is a *monitor.BadCall.
func Call(ctx context.Context, h Host, who Caller, key, name string, args any) (monitor.Observation, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return monitor.Observation{}, fmt.Errorf("encode arguments: %w", err)
	}
	call, err := monitor.ParseCall("", key, name, raw, "")
	if err != nil {
		return monitor.Observation{}, err
	}
	call.Principal = who.Principal
	return h.Call(ctx, who.Rollout, call)
}

// Words gives what a client may be told of an error: the words that were made for it, and of anything
// else only that it happened.
func Words(err error) string {
	var refused *rollouts.Error
	var bad *monitor.BadCall
	switch {
	case errors.As(err, &bad):
		return bad.Error()
	case errors.As(err, &refused):
		return refused.Detail
	}
	return "the server could not answer"
}
