package rollouts

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"proctor/internal/trajectory/export"
)

// ExportRollout gives a rollout as the forms of package export take it. The patch is made where the
// form holds one, and nil where it cannot be made any more.
func (m *Manager) ExportRollout(ctx context.Context, id, form string) (*export.Rollout, error) {
	t, err := m.trajectory(ctx, id, false)
	if err != nil {
		return nil, err
	}
	v := t.Rollout
	r := &export.Rollout{
		ID: v.ID, TaskID: v.TaskID, PolicyName: v.Policy.Name, PolicyVersion: v.Policy.Version, Model: v.Policy.Model, Status: v.Status,
		StopReason: v.StopReason, FailureClass: v.FailureClass, Outcome: v.Outcome, Reward: v.Reward, Seed: v.Seed, Metadata: v.Metadata,
		CreatedAt: v.CreatedAt, EndedAt: v.EndedAt, Tools: openAITools(), Calls: t.toolRecords(), Segments: t.Segments, ModelCalls: t.modelCalls, Guard: t.Guard,
		Digests: map[string]string{"image": v.Digests.Image, "packs": v.Digests.Packs, "prompt": v.Digests.Prompt, "judge": v.Digests.Judge},
	}
	if v.GroupID != nil {
		r.GroupID = *v.GroupID
	}
	row, err := m.opt.Store.RolloutByID(ctx, id)
	if err != nil {
		return nil, storeError("read the rollout", err)
	}
	if d, err := readDocument(row); err == nil && d.Task != nil {
		r.Instruction = d.Task.Instruction
	}
	if form == export.SWEBench || form == export.SWEAgent {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		if patch, err := m.Patch(ctx, id); err == nil {
			r.Patch = append([]byte{}, patch...)
		}
	}
	return r, nil
}

// openAITools gives the agent's tools as OpenAI's clients take them. They do not change while a process runs.
var openAITools = sync.OnceValue(func() json.RawMessage {
	var list []any
	for _, t := range ToolList() {
		list = append(list, map[string]any{"type": "function", "function": map[string]any{"name": t.Name, "description": t.Description, "parameters": t.InputSchema}})
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return raw
})
