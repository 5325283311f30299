package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"proctor/internal/store"
	"proctor/judge"
	"proctor/monitor"
	"proctor/monitor/canary"
	"proctor/monitor/classifier"
	"proctor/monitor/decoy"
	"proctor/monitor/normalize"
	"proctor/rules"
	"proctor/sandbox"
	"proctor/tasks"

	"go.opentelemetry.io/otel/trace"
)

// Defaults of Options and of a CreateRequest.
const (
	DefaultLease       = 15 * time.Minute // design: a client that is gone for longer frees its sandbox
	DefaultMaxRollouts = 256              // live at once; 256 idle boxes of 8 MiB are 2 GiB of the host
	DefaultSweep       = 5 * time.Second  // how often leases and lifetimes are looked at
	maxGroup           = 512
	groupParallel      = 8 // creations of one group at once; the engine queues beyond its own cap
	maxKey             = 256
	maxLease           = 24 * time.Hour
)

// Lab makes the images that rollouts start from and grades what they leave. Its methods are safe
// for concurrent use.
type Lab interface {
	// Prepare gives the image of a task that rollouts start from: built where it must be, and with
	// hardened scrubbed of what would give the answer away, or an error. Results are kept.
	Prepare(ctx context.Context, task *tasks.Task, hardened bool) (Image, error)
	// Verify proves cheaply that a fresh sandbox of a hardened image is clean. It fails closed.
	Verify(ctx context.Context, task *tasks.Task, img Image, sess sandbox.Session) error
	// Facts answers what names in a rollout's calls stand for; nil where nothing can be told.
	Facts(task *tasks.Task, img Image, sess sandbox.Session) normalize.Facts
	// Patch gives the agent's work as a unified diff, made on the trusted side.
	Patch(ctx context.Context, task *tasks.Task, img Image, sess sandbox.Session) ([]byte, error)
	// Grade grades the agent's work in a fresh sandbox. An error means that there is no grade, and
	// that grading may be tried again.
	Grade(ctx context.Context, job GradeJob) (tasks.Grade, error)
}

// Image is a prepared image.
type Image struct {
	Ref    string          `json:"ref"`            // what the engine starts
	Digest string          `json:"digest"`         // of the image that it was made from
	Data   json.RawMessage `json:"data,omitempty"` // the Lab's own, kept with the rollout
}

// GradeJob is what a Lab grades.
type GradeJob struct {
	ID      string // the rollout's
	Task    *tasks.Task
	Image   Image
	Session sandbox.Session
	// Review reads the final patch with rules and judge; nil: no review.
	Review func(ctx context.Context, patch []byte) *tasks.Review
	// Patched is told the patch as soon as it is made, before it is applied anywhere.
	Patched func(patch []byte)
}

// RuleSet is a compiled set of packs; a rollout is pinned to the one that it started with.
type RuleSet interface {
	// Digest pins packs and engine: "sha256:...".
	Digest() string
	// Session gives a matcher for one rollout of a task with these variables. The error names what
	// does not compile under them.
	Session(vars rules.Vars) (monitor.Matcher, error)
}

// PinnedRules is what a RuleSet may also be, where packs are reloaded while rollouts run.
type PinnedRules interface {
	// At gives the set of a digest that was in use earlier in this process.
	At(digest string) (RuleSet, bool)
}

// DecoyEnv is what a decoy maker may need of its rollout.
type DecoyEnv struct {
	Hardened bool // the sandbox was proved clean before the agent got it
	Offline  bool // it reaches nothing but loopback
	Task     *tasks.Task
	Session  sandbox.Session
}

// Options are what a Manager is made from.
type Options struct {
	Store  *store.Store   // required; the Manager does not close it
	Engine sandbox.Engine // required
	Lab    Lab            // required
	Tasks  []*tasks.Task
	// Inline reads the task of a create request that brings its own; nil refuses such requests.
	Inline func(json.RawMessage) (*tasks.Task, error)

	Rules  func() RuleSet // the set that new rollouts are pinned to; nil: no rules
	Judge  judge.Judge    // required where Rules is set
	Policy monitor.Policy // Preset is the default of rollouts that name none

	Classifier *classifier.Model                                        // that normalisers ask; nil: the built-in one
	Normalizer func(normalize.Task, normalize.Facts) monitor.Normalizer // nil: normalize.New, with Classifier
	Decoys     func(DecoyEnv) monitor.Decoyer                           // nil: decoy.New
	Witness    func(context.Context, WatchRequest) (Watcher, error)     // nil: none

	// Egress carries the connections of tasks with an allowlist; nil refuses such tasks. *egress.Proxy.
	Egress tasks.Egress

	// Secrets gives the texts that only a task's grader has, to know them again in what comes out of a
	// sandbox; nil: none.
	Secrets func(*tasks.Task) []canary.File

	MaxRollouts int           // live at once; 0 means DefaultMaxRollouts
	Lease       time.Duration // 0 means DefaultLease
	SweepEvery  time.Duration // 0 means DefaultSweep; negative: only by hand, for tests
	Clock       func() time.Time
	uptime      func() uptime // of the machine's boot; nil: the kernel's, or none where Clock is given
	Log         *slog.Logger
	Records     Segmenter // nil: no segments
	Observer    Observer
	Tracer      trace.Tracer // nil: none
}

func (o *Options) complete() error {
	switch {
	case o.Store == nil:
		return errors.New("rollouts: Options.Store is missing")
	case o.Engine == nil:
		return errors.New("rollouts: Options.Engine is missing")
	case o.Lab == nil:
		return errors.New("rollouts: Options.Lab is missing")
	case o.Rules != nil && o.Judge == nil:
		return errors.New("rollouts: Options.Judge is missing")
	}
	if o.Classifier == nil {
		o.Classifier = classifier.Core()
	}
	if o.Normalizer == nil {
		o.Normalizer = func(t normalize.Task, f normalize.Facts) monitor.Normalizer {
			t.Classifier = o.Classifier
			return normalize.New(t, f)
		}
	}
	if o.Decoys == nil {
		o.Decoys = func(e DecoyEnv) monitor.Decoyer {
			return decoy.New(decoy.Options{Vars: rules.Vars(e.Task.RuleVars()), Run: e.Session.Exec, Stat: e.Session.Stat,
				Scrubbed: e.Hardened, Absent: e.Hardened, Offline: e.Offline})
		}
	}
	if o.MaxRollouts == 0 {
		o.MaxRollouts = DefaultMaxRollouts
	}
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = DefaultSweep
	}
	if o.uptime == nil {
		o.uptime = sinceBoot
		if o.Clock != nil {
			o.uptime = func() uptime { return uptime{} }
		}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noTracer()
	}
	return nil
}
