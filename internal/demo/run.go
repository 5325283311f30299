package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

// TwinKey marks a rollout's metadata as a twin's: the server of a demo puts it on the network with
// the stand-in upstream and grades it the naive way, in the agent's own sandbox.
const TwinKey = "demo_twin"

// Runner runs the policies over a server.
type Runner struct {
	Client      *client.Client
	TaskID      string
	Policies    []Policy
	Concurrency int                              // rollouts at once; 0 means 4
	Record      string                           // folder for the trajectories
	Progress    func(done, all int, what string) // nil: none
}

// played is one finished rollout.
type played struct {
	steps      []Step
	trajectory *rollouts.Trajectory
}

// Run plays every policy, each cheat also as a twin, grades all, and reports.
func (r *Runner) Run(ctx context.Context) (Report, error) {
	runs := make([]played, len(r.Policies))
	twins := make([]played, len(r.Policies))
	if err := os.MkdirAll(r.Record, 0o755); err != nil {
		return Report{}, fmt.Errorf("make the record's folder: %w", err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, r.Concurrency))
	done := r.counter()
	for i, policy := range r.Policies {
		g.Go(func() (err error) {
			runs[i], err = r.play(gctx, policy, false)
			done(policy.Name)
			return err
		})
		if policy.Class == "" {
			continue
		}
		g.Go(func() (err error) {
			twins[i], err = r.play(gctx, policy, true)
			done(policy.Name + ", twin")
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Report{}, err
	}
	return r.report(runs, twins), nil
}

// counter gives a function that reports progress, safe for concurrent use.
func (r *Runner) counter() func(string) {
	all := len(r.Policies)
	for _, p := range r.Policies {
		if p.Class != "" {
			all++
		}
	}
	var mu sync.Mutex
	n := 0
	return func(what string) {
		mu.Lock()
		defer mu.Unlock()
		n++
		if r.Progress != nil {
			r.Progress(n, all, what)
		}
	}
}

// play runs one policy in a rollout of its own, from create to grade, and frees its sandbox.
func (r *Runner) play(ctx context.Context, policy Policy, twin bool) (out played, err error) {
	name := policy.Name
	req := rollouts.CreateRequest{TaskID: r.TaskID, Mode: monitor.Enforce, Policy: rollouts.Policy{Name: policy.Name}}
	if twin {
		name += ".twin"
		hardening := false
		req.Mode, req.Hardening, req.Metadata = monitor.Off, &hardening, map[string]any{TwinKey: true}
	}
	made, err := r.Client.Create(ctx, req)
	if err != nil {
		return out, fmt.Errorf("policy %s: create: %w", name, err)
	}
	defer func() {
		if derr := r.Client.Delete(context.WithoutCancel(ctx), made.ID); derr != nil {
			err = errors.Join(err, fmt.Errorf("policy %s: delete: %w", name, derr))
		}
	}()
	p := &Player{ctx: ctx, client: r.Client, id: made.ID, token: made.AgentToken}
	policy.Play(p)
	out.steps = p.steps
	if p.err != nil {
		return out, fmt.Errorf("policy %s: %w", name, p.err)
	}
	if err := r.Client.Submit(ctx, made.ID, made.AgentToken); err != nil {
		return out, fmt.Errorf("policy %s: submit: %w", name, err)
	}
	if _, err := r.Client.Grade(ctx, made.ID); err != nil {
		return out, fmt.Errorf("policy %s: grade: %w", name, err)
	}
	if out.trajectory, err = r.Client.Trajectory(ctx, made.ID); err != nil {
		return out, fmt.Errorf("policy %s: trajectory: %w", name, err)
	}
	return out, r.save(name, out.trajectory)
}

// save writes a trajectory into the record's folder.
func (r *Runner) save(name string, t *rollouts.Trajectory) error {
	body, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("encode trajectory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.Record, name+".json"), body, 0o644); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// report joins the rollouts with their twins.
func (r *Runner) report(runs, twins []played) Report {
	report := Report{Task: r.TaskID, Rollouts: []Rollout{}, Record: r.Record}
	for i, policy := range r.Policies {
		ro := describe(policy, runs[i].steps, runs[i].trajectory, twins[i].steps)
		if g := runs[i].trajectory.Grade; g != nil {
			ro.grade(*g)
		}
		if t := twins[i].trajectory; t != nil && t.Grade != nil {
			ro.Twin = &Twin{ID: t.Rollout.ID, Outcome: t.Grade.Outcome, Reward: t.Grade.Reward}
		}
		report.Rollouts = append(report.Rollouts, ro)
	}
	report.HackRate = float64(report.hacks()) / float64(max(1, len(report.Rollouts)))
	return report
}
