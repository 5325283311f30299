package evalrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"proctor/internal/client"
	"proctor/internal/rollouts"
)

// beatEvery keeps a lease of 15 minutes with room for two lost beats.
const beatEvery = 4 * time.Minute

// attempt is one attempt under way.
type attempt struct {
	run  *Runner
	task string
	k    int
	try  int
	res  *Result
}

// AttemptDir gives the folder of a task's attempts in a run folder.
func AttemptDir(dir, task string) string { return filepath.Join(dir, "attempts", SafeName(task)) }

// SafeName gives a task's id as a file name: itself where it is one, else with a hash that keeps two
// ids apart.
func SafeName(id string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, id)
	if safe == id && len(id) < 120 && id != "" && !strings.HasPrefix(id, ".") {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "_" + cut(safe, 80) + "_" + hex.EncodeToString(sum[:6])
}

func (a *attempt) path(end string) string {
	name := fmt.Sprint(a.k)
	if a.try > 0 {
		name += fmt.Sprintf(".try%d", a.try)
	}
	return filepath.Join(AttemptDir(a.run.Dir, a.task), name+end)
}

// key names the attempt for the server.
func (a *attempt) key() string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%s\x00%s\x00%d\x00%d", a.run.plan.ID, a.task, a.k, a.try)))
	return "run-" + hex.EncodeToString(sum[:16])
}

// do makes the attempt. The error is ctx's, or of the run folder; all else is in the result.
func (a *attempt) do(ctx context.Context) error {
	began := time.Now()
	if err := os.MkdirAll(AttemptDir(a.run.Dir, a.task), 0o755); err != nil {
		return err
	}
	if err := a.abandon(ctx); err != nil {
		return err
	}
	a.res = &Result{TaskID: a.task, Attempt: a.k, Try: a.try, StartedAt: time.Now().UTC()}
	err := a.work(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.failed(ctx, err)
	}
	a.res.Seconds = time.Since(began).Seconds()
	return nil
}

// work takes an attempt from create to grade.
func (a *attempt) work(ctx context.Context) error {
	p, srv := &a.run.plan, a.run.server
	made, err := srv.create(ctx, a.key(), rollouts.CreateRequest{TaskID: a.task, Mode: p.Mode, Preset: p.Preset, Policy: rollouts.Policy{Name: p.policy(), Model: p.Model},
		Metadata: map[string]any{"run": p.ID, "attempt": a.k}})
	if err != nil {
		return err
	}
	a.res.RolloutID = made.ID
	a.run.say(Progress{Task: a.task, Attempt: a.k, Event: "started"})
	alive, stop := context.WithCancel(ctx)
	defer stop()
	go srv.beat(alive, made.ID, beatEvery)
	if a.res.Stop, err = a.play(ctx, made); err != nil {
		return err
	}
	if p.NoGrade {
		return a.ungraded(ctx, made.ID)
	}
	a.run.say(Progress{Task: a.task, Attempt: a.k, Event: "grading", Turn: a.res.Turns})
	if _, err := srv.grade(ctx, made.ID); err != nil {
		return fmt.Errorf("grade: %w", err)
	}
	return a.keep(ctx, made.ID, true)
}

// ungraded keeps the record of an attempt that is not to be graded, and frees its sandbox.
func (a *attempt) ungraded(ctx context.Context, id string) error {
	if err := a.keep(ctx, id, !a.run.NoPatches); err != nil {
		return err
	}
	a.res.Reward, a.res.FailureClass = nil, Ungraded
	return a.run.server.again(ctx, func() error { return a.run.server.Delete(ctx, id) })
}

// start is a line of an outside agent's list of starts.
type start struct {
	Rollout string `json:"rollout"`
}

// starts names the file that lists the rollouts on which an outside agent was started.
func (a *attempt) starts() string {
	return filepath.Join(AttemptDir(a.run.Dir, a.task), fmt.Sprintf("%d.starts.jsonl", a.k))
}

// abandon lets go of rollouts on which an outside agent was started and that came to no good end. Unlike
// our own loop it cannot be taken up where it stood, so that it starts anew on a rollout of its own.
func (a *attempt) abandon(ctx context.Context) error {
	if a.run.plan.Agent == "" {
		return nil
	}
	var ids []string
	log, err := openLog(a.starts(), func(line []byte) error {
		var s start
		err := json.Unmarshal(line, &s)
		ids = append(ids, s.Rollout)
		return err
	})
	if err != nil {
		return fmt.Errorf("the attempt's starts: %w", err)
	}
	a.try = len(ids)
	if len(ids) > 0 {
		_ = a.run.server.Delete(ctx, ids[len(ids)-1]) // its lease ends it in any case
	}
	return log.Close()
}

// started notes that an outside agent is about to start on a rollout.
func (a *attempt) started(rollout string) error {
	log, err := openLog(a.starts(), func([]byte) error { return nil })
	if err != nil {
		return err
	}
	return errors.Join(log.Append(start{rollout}), log.Close())
}

// policy names who attempts, in the server's records.
func (p *Plan) policy() string {
	if p.Agent != "" {
		return "agent"
	}
	return cut(p.Model, 100)
}

// play lets the model or the outside agent work.
func (a *attempt) play(ctx context.Context, made *rollouts.Created) (string, error) {
	p := &a.run.plan
	if p.Agent != "" {
		if err := a.started(made.ID); err != nil {
			return "", err
		}
		o := &outside{plan: p, url: a.run.server.URL, made: made, attempt: a.k, dir: AttemptDir(a.run.Dir, a.task), deadline: time.Duration(p.Budget.Seconds * float64(time.Second))}
		return o.run(ctx)
	}
	protocol := p.Protocol
	if protocol == Auto {
		protocol = Tools
	}
	t, err := openTalk(a.path(".jsonl"), protocol, head(made))
	if err != nil {
		return "", err
	}
	defer func() { _ = t.log.Close() }()
	g := &agent{plan: p, endpoint: a.run.Endpoint, server: a.run.server, made: made, talk: t,
		say: func(turn int) { a.run.say(Progress{Task: a.task, Attempt: a.k, Event: "turn", Turn: turn}) }}
	stop, err := g.run(ctx)
	a.res.Turns, a.res.TokensIn, a.res.TokensOut, a.res.Compactions = t.turn, t.in, t.out, t.compactions
	a.res.Cost = p.Prices.Of(t.in, t.out)
	return stop, err
}

// keep writes down what the server knows of a rollout, with its patch where that is wanted.
func (a *attempt) keep(ctx context.Context, id string, withPatch bool) error {
	body, err := a.run.server.record(ctx, id)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	var t rollouts.Trajectory
	if err := json.Unmarshal(body, &t); err != nil {
		return fmt.Errorf("the record does not decode: %w", err)
	}
	a.res.fromRecord(&t)
	if err := writeWhole(a.path(".trajectory.json"), body); err != nil {
		return err
	}
	if !withPatch {
		return nil
	}
	patch, err := a.run.server.patch(ctx, id)
	var p *client.Problem
	if errors.As(err, &p) { // a sandbox that died has no patch
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the patch: %w", err)
	}
	return writeWhole(a.path(".patch"), patch)
}

// failed classes an attempt without a grade, keeps what there is of its record, and frees its sandbox.
func (a *attempt) failed(ctx context.Context, err error) {
	r := a.res
	if r.RolloutID != "" {
		if kerr := a.keep(ctx, r.RolloutID, false); kerr != nil {
			err = errors.Join(err, kerr)
		}
		if derr := a.run.server.Delete(ctx, r.RolloutID); derr != nil {
			err = errors.Join(err, fmt.Errorf("delete the rollout: %w", derr))
		}
	}
	r.Reward, r.Outcome, r.Stop, r.Error = nil, "", StopFailed, cut(err.Error(), 1000)
	var e *EndpointError
	var o *AgentError
	var p *client.Problem
	switch {
	case errors.As(err, &e):
		r.FailureClass = FailEndpoint
	case errors.As(err, &o):
		r.FailureClass = FailAgent
	case errors.As(err, &p) && p.Status < 500 && p.Status != 429:
		r.FailureClass = "task"
	default:
		r.FailureClass = "infra"
	}
}
