package rollouts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"proctor/tasks"
)

// Manager runs rollouts. It holds those that have a sandbox; the rest live in the store alone.
//
// Lifecycle: Open takes up what an earlier server left; Drain refuses new work and waits for calls
// that run; Close lets go of the sandboxes, or removes them. All methods are safe for concurrent
// use. Dropping a Manager without Close is what a SIGKILL does, and loses nothing.
type Manager struct {
	opt    Options
	ctx    context.Context // ends with the Manager
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	live     map[string]*rollout
	making   map[string]*making // creations under way, by the id they are to have
	room     int                // creations under way that hold a place
	forking  map[string]int     // forks being made, by the image that they are made from
	queue    []*ticket          // creations that wait for a place, in order
	draining bool
	closed   bool
	changed  chan struct{} // closed and replaced whenever a rollout's status changes
	tasks    map[string]*tasks.Task
	order    []*tasks.Task
	// baselines are, by task, image and hidden files, the hidden lines that the work tree lacks.
	baselines map[string][]int
}

// Open makes a Manager and takes up the rollouts of the store: live ones are attached again, calls
// that a dead server left without an outcome are settled, sandboxes of ours that belong to no
// rollout are removed. It fails where the engine does not answer, so that no rollout is given up
// for a daemon that is only down.
func Open(ctx context.Context, opt Options) (*Manager, error) {
	if err := opt.complete(); err != nil {
		return nil, err
	}
	m := &Manager{
		opt: opt, live: map[string]*rollout{}, forking: map[string]int{}, making: map[string]*making{},
		changed: make(chan struct{}), tasks: map[string]*tasks.Task{}, baselines: map[string][]int{},
	}
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, t := range opt.Tasks {
		if _, twice := m.tasks[t.ID]; twice {
			m.cancel()
			return nil, fmt.Errorf("rollouts: two tasks have the id %q; rename one", t.ID)
		}
		m.tasks[t.ID] = t
		m.order = append(m.order, t)
	}
	if err := m.recover(ctx); err != nil {
		m.cancel()
		return nil, err
	}
	if opt.SweepEvery > 0 {
		m.work.Add(1)
		go m.sweeps()
	}
	return m, nil
}

// Tasks lists the tasks, in the order in which they were given.
func (m *Manager) Tasks(context.Context) []*tasks.Task {
	return append([]*tasks.Task{}, m.order...)
}

// Task gives one task.
func (m *Manager) Task(_ context.Context, id string) (*tasks.Task, error) {
	if t, ok := m.tasks[id]; ok {
		return t, nil
	}
	return nil, refuse(CodeTaskNotFound, "there is no task %.100q; GET /v1/tasks lists those that the server was started with", id)
}

// Ready is nil when rollouts can be made.
func (m *Manager) Ready(ctx context.Context) error {
	m.mu.Lock()
	stopping := m.draining || m.closed
	m.mu.Unlock()
	if stopping {
		return errDraining()
	}
	if _, err := m.opt.Engine.Capabilities(ctx); err != nil {
		return asError(CodeEngine, "the sandbox engine does not answer", err)
	}
	if err := m.opt.Store.SetMeta(ctx, "ready", []byte(m.opt.Clock().UTC().Format(time.RFC3339))); err != nil {
		return storeError("write", err)
	}
	return nil
}

func errDraining() *Error {
	return &Error{Code: CodeDraining, Detail: "the server is stopping; repeat the request once it is back", Retry: true, After: 5 * time.Second}
}

// Drain refuses new rollouts and new calls, and waits until those that run are done or ctx is.
func (m *Manager) Drain(ctx context.Context) error {
	m.mu.Lock()
	m.draining = true
	m.turnAwayLocked()
	m.mu.Unlock()
	for {
		m.mu.Lock()
		busy, changed := len(m.making), m.changed
		rs := m.liveLocked()
		m.mu.Unlock()
		var wait <-chan struct{}
		for _, r := range rs {
			if running := r.running(); running != nil {
				busy, wait = busy+1, running
			}
		}
		if busy == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-wait:
		case <-ctx.Done():
			return fmt.Errorf("rollouts: %d still busy: %w", busy, ctx.Err())
		}
	}
}

// Close ends the Manager. Sandboxes live on for the next Open, which also joins the calls that run
// in them now; with remove they are removed and their rollouts fail with class infra.
func (m *Manager) Close(remove bool) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed, m.draining = true, true
	m.turnAwayLocked()
	rs := m.liveLocked()
	m.mu.Unlock()
	if remove {
		for _, r := range rs {
			r.end(ending{status: StatusFailed, reason: "server_removed", class: classInfra})
		}
	}
	m.cancel()
	for _, r := range rs {
		if !remove {
			r.letGo()
		}
	}
	m.work.Wait()
	return nil
}

func (m *Manager) liveLocked() []*rollout {
	rs := make([]*rollout, 0, len(m.live))
	for _, r := range m.live {
		rs = append(rs, r)
	}
	return rs
}

// find gives a live rollout, or nil.
func (m *Manager) find(id string) *rollout {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live[id]
}

// announce wakes those that wait for a rollout's status to change.
func (m *Manager) announce() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Manager) changes() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}
