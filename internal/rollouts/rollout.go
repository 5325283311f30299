package rollouts

import (
	"context"
	"errors"
	"sync"
	"time"

	"proctor/monitor"
	"proctor/sandbox"
)

// closeTimeout bounds the removal of a sandbox.
const closeTimeout = 30 * time.Second

// rollout is a rollout that has a sandbox. It lives from its creation, or from the Open that took
// it up, to its end; what is to outlive it is in the store.
//
// Calls are serial in the order of arrival: each waits for the done channel of the one before.
// Control calls and the harness's one-shots do not queue.
type rollout struct {
	m    *Manager
	id   string
	gate *monitor.Gate
	rec  *recorder
	box  *boxHold
	// watch is the witness; closed with the rollout's hold on its sandbox.
	watch *watch

	ctx    context.Context // ends with the rollout; calls run under it, not under their callers'
	cancel context.CancelFunc

	mu      sync.Mutex
	doc     document
	token   []byte // hash
	keys    map[callKey]*keyed
	tail    <-chan struct{}      // done of the last serial call
	flights map[*flight]struct{} // calls that run or wait
	pending map[int]bool         // ordinals without an outcome that nobody is settling
	seen    time.Time            // of the last call, heartbeat, or end of a call
	over    bool                 // it has ended; the document says how
	grading *grading
	relayer sandbox.Relayer // carries what the task's allowlist names; nil where nothing is carried
	changed chan struct{}   // closed and replaced at each event
	gone    chan struct{}   // closed once the rollout has ended and its sandbox is removed
}

type callKey struct{ principal, key string }

// keyed is what a rollout knows of an Idempotency-Key.
type keyed struct {
	args    string
	flight  *flight // nil: nobody is at it
	ordinal int     // 0: no intent was written
	done    bool    // it has an outcome
}

// flight is one call on its way, and its answer for all that wait for it.
type flight struct {
	key       callKey
	serial    bool
	ordinal   int  // set once the intent is written; or that of a call to be resumed
	resume    bool // the intent is there already
	recorded  bool // the outcome is written
	done      chan struct{}
	obs       monitor.Observation
	exec      sandbox.ExecResult
	err       error
	arguments string
}

type flightKey struct{}

// flightOf gives the flight that ctx belongs to, or nil.
func flightOf(ctx context.Context) *flight {
	f, _ := ctx.Value(flightKey{}).(*flight)
	return f
}

// newRollout makes the live rollout of a document, with its Gate.
func (m *Manager) newRollout(d *document, token []byte, sess sandbox.Session) (*rollout, error) {
	watch := m.watch(d, sess)
	sess = watch.around(sess)
	r := &rollout{
		watch: watch,
		m:     m, id: d.View.ID, doc: *d, token: token, keys: map[callKey]*keyed{}, flights: map[*flight]struct{}{},
		pending: map[int]bool{}, seen: m.opt.Clock(), changed: make(chan struct{}), gone: make(chan struct{}), box: &boxHold{sess: sess},
	}
	r.ctx, r.cancel = context.WithCancel(m.ctx)
	r.rec = &recorder{store: m.opt.Store, rollout: r.id, box: r.box, appended: r.count}
	var err error
	if r.gate, err = m.newGate(d, sess, watch, r.box, r.rec); err != nil {
		watch.close()
		r.cancel()
		return nil, err
	}
	return r, nil
}

// count keeps the rollout's figures as outcomes are written. The recorder's lock is held.
func (r *rollout) count(rec *monitor.Record, interrupted bool) {
	r.mu.Lock()
	tally(&r.doc.View, rec)
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	r.m.opt.Observer.called(rec, interrupted)
}

// tally adds a call to a rollout's figures.
func tally(v *View, rec *monitor.Record) {
	if rec.Principal != monitor.Agent {
		return
	}
	v.Calls++
	switch rec.Verdict.Decision {
	case monitor.Block:
		v.Blocked++
	case monitor.Flag:
		v.Flagged++
	}
	if rec.Verdict.Hack {
		v.Hacks++
	}
}

// view gives the rollout as it stands.
func (r *rollout) view() View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doc.View
}

// touch renews the lease.
func (r *rollout) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = r.m.opt.Clock()
}

// running gives the done channel of some call that is on its way, or nil.
func (r *rollout) running() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := range r.flights {
		return f.done
	}
	return nil
}

// letGo detaches from the sandbox; running calls go on in it and are joined by the next Open.
func (r *rollout) letGo() {
	r.cancel()
	for running := r.running(); running != nil; running = r.running() {
		<-running
	}
	r.endReach()
	r.watch.close()
	if err := r.box.sess.Detach(); err != nil && !errors.Is(err, sandbox.ErrGone) {
		r.m.opt.Log.Warn("detach from a sandbox", "rollout", r.id, "err", err)
	}
}
