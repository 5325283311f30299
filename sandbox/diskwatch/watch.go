package diskwatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Times of a Watcher.
const (
	glance   = 500 * time.Millisecond // between looks at used space
	atMost   = 30 * time.Second       // between two measurings of a sandbox, while the walker keeps up
	atLeast  = time.Second            // between two measurings of a sandbox, however fast the disk fills
	restsFor = 9                      // times what a walk took: walking takes a tenth of a processor at most
)

// Target is a sandbox that is watched.
type Target struct {
	ID    string
	Dirs  []string   // folders of the host that hold what it writes, and nothing else
	Limit int64      // bytes
	Init  func() int // the pid on the host of its first process; nil, or 0, where there is none to look at
	// Over is called once, when it has more than its limit.
	Over func(used int64)
}

// Watcher watches sandboxes. Safe for concurrent use. Its goroutine runs while there is anything to watch.
type Watcher struct {
	log *slog.Logger

	mu      sync.Mutex
	targets map[string]*watched
	cancel  context.CancelFunc // of the goroutine; nil while none runs
	grown   map[uint64]*growth // by file system
}

// watched is what is known of a target.
type watched struct {
	Target
	dev      uint64
	used     int64     // when it was last measured
	at       time.Time // when that was; zero: never
	grownTo  int64     // the file system's growth before that
	picked   int64     // the file system's growth when measuring began
	overdone bool      // Over was called
}

// growth is how far a file system's used space ever grew, step by step.
type growth struct{ last, sum int64 }

// New makes a Watcher. log may be nil.
func New(log *slog.Logger) *Watcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{log: log, targets: map[string]*watched{}, grown: map[uint64]*growth{}}
}

// Watch watches a target until Forget. A target of the same ID takes the other's place. One without folders
// is not watched.
func (w *Watcher) Watch(t Target) {
	if len(t.Dirs) == 0 || t.Limit <= 0 {
		return
	}
	var st unix.Stat_t
	if err := unix.Stat(t.Dirs[0], &st); err != nil {
		w.log.Warn("a sandbox's disk cannot be watched", "sandbox", t.ID, "folder", t.Dirs[0], "err", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.targets[t.ID] = &watched{Target: t, dev: uint64(st.Dev)}
	if w.grown[uint64(st.Dev)] == nil {
		w.grown[uint64(st.Dev)] = &growth{last: -1}
	}
	if w.cancel == nil {
		ctx, cancel := context.WithCancel(context.Background())
		w.cancel = cancel
		go w.run(ctx)
	}
}

// Forget ends the watching of a target. A call of its Over may be on its way.
func (w *Watcher) Forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.targets, id)
	if len(w.targets) == 0 {
		w.stopLocked()
	}
}

// Close ends all watching.
func (w *Watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.targets)
	w.stopLocked()
}

func (w *Watcher) stopLocked() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
	clear(w.grown)
}

// run looks and measures until ctx ends.
func (w *Watcher) run(ctx context.Context) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.look()
		next := w.pick(time.Now())
		if next == nil {
			continue
		}
		began := time.Now()
		used, err := measure(ctx, next.Target)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Debug("a sandbox's disk could not be measured", "sandbox", next.ID, "err", err)
			}
			used = next.used
		}
		took := time.Since(began)
		w.note(next, used, took)
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(restsFor*took, atMost)):
		}
	}
}

// look adds up what file systems grew by.
func (w *Watcher) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for dev, g := range w.grown {
		var path string
		for _, t := range w.targets {
			if t.dev == dev {
				path = t.Dirs[0]
				break
			}
		}
		var fs unix.Statfs_t
		if path == "" || unix.Statfs(path, &fs) != nil {
			continue
		}
		used := int64(fs.Blocks-fs.Bfree) * fs.Bsize
		if g.last >= 0 && used > g.last {
			g.sum += used - g.last
		}
		g.last = used
	}
}

// pick gives the target that most needs measuring: the one that may be furthest over its limit, else the one
// whose turn it is; nil where none does.
func (w *Watcher) pick(now time.Time) *watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	var best *watched
	var bestOver int64
	for _, t := range w.targets {
		if t.overdone || !t.at.IsZero() && now.Sub(t.at) < atLeast {
			continue
		}
		over := t.used + w.grown[t.dev].sum - t.grownTo - t.Limit
		switch due := t.at.IsZero() || now.Sub(t.at) >= atMost; {
		case over > 0 && (best == nil || over > bestOver):
			best, bestOver = t, over
		case due && bestOver <= 0 && (best == nil || t.at.Before(best.at)):
			best = t
		}
	}
	if best != nil {
		best.picked = w.grown[best.dev].sum
	}
	return best
}

// note keeps what was measured, and tells who is over.
func (w *Watcher) note(t *watched, used int64, took time.Duration) {
	w.mu.Lock()
	if w.targets[t.ID] != t {
		w.mu.Unlock()
		return
	}
	t.used, t.at, t.grownTo = used, time.Now(), t.picked
	over := used > t.Limit
	t.overdone = over
	w.mu.Unlock()
	if over {
		w.log.Info("a sandbox has more than its disk limit", "sandbox", t.ID, "bytes", used, "limit", t.Limit, "measured_in", took)
		t.Over(used)
	}
}
