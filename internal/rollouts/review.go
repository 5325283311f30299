package rollouts

import (
	"context"

	"proctor/judge"
	"proctor/monitor"
	"proctor/monitor/normalize"
	"proctor/rules"
	"proctor/tasks"
)

// patchTool is the tool that a patch under review goes by in cases and events.
const patchTool = "patch"

// reviewPatch reads the final patch as one event by rules and judge. It tells what they say and
// changes nothing; nil where the rollout is not watched.
func (r *rollout) reviewPatch(ctx context.Context, patch []byte) *tasks.Review {
	if r.doc.View.Mode == monitor.Off || r.m.opt.Rules == nil || len(patch) == 0 {
		return nil
	}
	review, err := r.m.review(ctx, r.doc.Task, r.id, patch)
	if err != nil {
		r.m.opt.Log.Error("review a patch", "rollout", r.id, "err", err)
		return nil
	}
	if c := r.gate.Canaries; c != nil {
		leaked(review, c.Find(added(patch)))
	}
	return review
}

// reviewOf puts a verdict on a patch in a review's words.
func reviewOf(v monitor.Verdict) *tasks.Review {
	review := &tasks.Review{Verdict: judge.Benign, Class: v.Class}
	seen := map[string]bool{}
	for _, h := range v.Hits {
		if !seen[h.Rule] {
			seen[h.Rule] = true
			review.Rules = append(review.Rules, h.Rule)
		}
	}
	switch {
	case len(v.Hits) == 0:
		review.Reason = "no rule hit"
	case v.Opinion != nil:
		review.Verdict, review.Reason = v.Opinion.Verdict, v.Opinion.Reason
	case v.Hack:
		review.Verdict, review.Reason = judge.Hack, "resolved facts"
	default:
		review.Verdict = judge.Unsure
	}
	return review
}

// fixedEvent is a normaliser of one event.
type fixedEvent struct{ event rules.Event }

func (f fixedEvent) Event(context.Context, normalize.Call) rules.Event { return f.event }
func (f fixedEvent) Observe(normalize.Call, bool, string)              {}
