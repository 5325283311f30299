package rollouts

import (
	"context"
	"encoding/json"
	"log/slog"

	"proctor/judge"
	"proctor/monitor"
	"proctor/tasks"
)

// Reviewer gives a function that reads patches by rules and judge, outside of any rollout, as the final
// patch of a rollout is read. It gives nil where a patch could not be read.
func Reviewer(set RuleSet, j judge.Judge, policy monitor.Policy, log *slog.Logger) func(ctx context.Context, task *tasks.Task, patch []byte) *tasks.Review {
	m := &Manager{opt: Options{Rules: func() RuleSet { return set }, Judge: j, Policy: policy, Log: log}}
	return func(ctx context.Context, task *tasks.Task, patch []byte) *tasks.Review {
		if len(patch) == 0 {
			return nil
		}
		review, err := m.review(ctx, task, "", patch)
		if err != nil {
			log.Error("review a patch", "task", task.ID, "err", err)
			return nil
		}
		return review
	}
}

// review reads a patch as one event.
func (m *Manager) review(ctx context.Context, t *tasks.Task, rollout string, patch []byte) (*tasks.Review, error) {
	event := patchEvent(t, patch)
	dry, err := m.dry(t, fixedEvent{event}, m.opt.Judge)
	if err != nil {
		return nil, err
	}
	dry.Gate.RolloutID = rollout
	arguments, err := json.Marshal(map[string]string{"patch": event.Call.Text})
	if err != nil {
		return nil, err
	}
	rec, err := dry.Do(ctx, monitor.Call{Name: patchTool, Arguments: arguments})
	if err != nil {
		return nil, err
	}
	return reviewOf(rec.Verdict), nil
}
