package rollouts

import (
	"context"
	"slices"
	"time"

	"proctor/monitor"
	"proctor/monitor/witness"
	"proctor/sandbox"
)

// watchTimeout bounds how long a rollout's start waits for its witness. Marking takes milliseconds.
const watchTimeout = 10 * time.Second

// WatchRequest is what a witness is asked to watch.
type WatchRequest struct {
	Session sandbox.Session
	Paths   []string // protected, absolute as the sandbox sees them
	Enforce bool     // the rollout's calls may be kept from what they want
}

// Watcher is a witness of one sandbox. *witness.Watcher.
type Watcher interface {
	monitor.Witness
	// Marked gives those of the paths that were there.
	Marked() []string
	// Harness says that the harness runs something of its own, until the function is called.
	Harness() func()
	Close() error
}

// watch is a rollout's witness, or the want of one.
type watch struct {
	Watcher // nil: none
	log     func(msg string, args ...any)
}

// watch starts a rollout's witness, before the agent's first call, and again after a restart. Where
// there can be none the record says so, call by call, and the rollout goes on: rules and decoys do
// not rest on it.
func (m *Manager) watch(d *document, sess sandbox.Session) *watch {
	none := &watch{log: m.opt.Log.Warn}
	if m.opt.Witness == nil || d.View.Mode == monitor.Off {
		return none
	}
	ctx, cancel := context.WithTimeout(m.ctx, watchTimeout)
	defer cancel()
	w, err := m.opt.Witness(ctx, WatchRequest{
		Session: sess, Paths: slices.Concat(d.Task.HiddenPaths, d.honeypotPaths()),
		Enforce: d.View.Mode == monitor.Enforce && d.View.Preset != monitor.Observe,
	})
	if err != nil {
		m.opt.Log.Warn("a rollout has no witness", "rollout", d.View.ID, "err", err)
		return none
	}
	marked := w.Marked()
	if gone := slices.DeleteFunc(slices.Clone(d.Watched), func(p string) bool { return slices.Contains(marked, p) }); len(gone) > 0 {
		m.opt.Log.Warn("a rollout has no witness any more: protected files were moved while nobody watched", "rollout", d.View.ID, "paths", gone)
		if err := w.Close(); err != nil {
			m.opt.Log.Warn("close a witness", "rollout", d.View.ID, "err", err)
		}
		return none
	}
	d.Watched = marked
	return &watch{Watcher: w, log: m.opt.Log.Warn}
}

// Begin implements monitor.Witness.
func (w *watch) Begin(s witness.Span) func() []witness.Opening {
	if w.Watcher == nil {
		return witness.None{}.Begin(s)
	}
	return w.Watcher.Begin(s)
}

// Kind implements monitor.Witness.
func (w *watch) Kind() string {
	if w.Watcher == nil {
		return witness.Off
	}
	return w.Watcher.Kind()
}

// harness says that the harness runs something of its own, until the function is called.
func (w *watch) harness() func() {
	if w.Watcher == nil {
		return func() {}
	}
	return w.Harness()
}

// close ends the watching. Closing twice is harmless.
func (w *watch) close() {
	if w.Watcher == nil {
		return
	}
	if err := w.Watcher.Close(); err != nil {
		w.log("close a witness", "err", err)
	}
}

// around gives a session whose one-shots, all of them the harness's, are none of the agent's doing.
func (w *watch) around(sess sandbox.Session) sandbox.Session {
	if w.Watcher == nil {
		return sess
	}
	return watchedSession{Session: sess, watch: w}
}

type watchedSession struct {
	sandbox.Session
	watch *watch
}

// Exec runs one argv of the harness.
func (s watchedSession) Exec(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error) {
	defer s.watch.Harness()()
	return s.Session.Exec(ctx, e)
}
