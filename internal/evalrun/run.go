package evalrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"proctor/internal/client"
)

// Progress is something that happened to an attempt, for a reader's eyes.
type Progress struct {
	Task    string
	Attempt int
	Event   string  // started, turn, grading, done
	Turn    int     // of "turn"
	Result  *Result // of "done"
	Done    int     // attempts that have ended so far, earlier sittings included
	All     int
}

// Runner makes all attempts of a plan. Its fields are set before Run.
type Runner struct {
	Dir         string
	Client      *client.Client
	Endpoint    *Endpoint // nil with an outside agent
	Concurrency int       // attempts at once; 0: 4
	RetryFailed bool      // make attempts again that ended without a reward
	NoPatches   bool      // do not fetch the patches of attempts that are not graded: each takes a sandbox
	Patience    time.Duration
	Watch       func(Progress) // nil: none; called by one goroutine at a time

	plan   Plan
	server *server

	mu      sync.Mutex
	results map[attemptKey]*Result
	all     int
}

// errBusy says that a run folder is in use.
var errBusy = errors.New("another proctor works in this folder")

// Run makes the attempts that the folder's journal does not hold yet, and writes predictions and
// reports. An error means that the run could not go on: ctx ended, the folder holds another run, or the
// disk is full. What is done stays done.
func (r *Runner) Run(ctx context.Context, p Plan) (*Report, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lockDir(r.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r.plan, err = openPlan(r.Dir, p); err != nil {
		return nil, err
	}
	r.server = &server{Client: r.Client, patience: cmp.Or(r.Patience, 2*time.Minute)}
	results, journal, err := readResults(filepath.Join(r.Dir, "journal.jsonl"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = journal.Close() }()
	r.results, r.all = results, len(r.plan.Tasks)*r.plan.N
	err = r.attempts(ctx, journal)
	report, werr := Write(r.Dir, r.plan, results)
	return report, errors.Join(err, werr)
}

// attempts makes what is left, the first attempt at every task before the second at any, so that a
// run that is stopped early still says something of all tasks.
func (r *Runner) attempts(ctx context.Context, journal *appendLog) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(r.Concurrency, 4))
	for k := 1; k <= r.plan.N; k++ {
		for _, task := range r.plan.Tasks {
			a := r.next(task, k)
			if a == nil || gctx.Err() != nil {
				continue
			}
			g.Go(func() error {
				if err := a.do(gctx); err != nil {
					return err
				}
				if err := journal.Append(a.res); err != nil {
					return fmt.Errorf("journal: %w", err)
				}
				r.done(a.res)
				return nil
			})
		}
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// next gives the attempt to make, nil where it is made.
func (r *Runner) next(task string, k int) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.results[attemptKey{task, k}]
	switch {
	case old == nil:
		return &attempt{run: r, task: task, k: k}
	case !old.graded() && r.RetryFailed:
		return &attempt{run: r, task: task, k: k, try: old.Try + 1}
	}
	return nil
}

func (r *Runner) done(res *Result) {
	r.mu.Lock()
	r.results[attemptKey{res.TaskID, res.Attempt}] = res
	r.mu.Unlock()
	r.say(Progress{Task: res.TaskID, Attempt: res.Attempt, Event: "done", Result: res})
}

func (r *Runner) say(p Progress) {
	if r.Watch == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Done, p.All = len(r.results), r.all
	r.Watch(p)
}

// lockDir takes a run folder for this process; the kernel lets go when it dies.
func lockDir(dir string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", errBusy, dir), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
