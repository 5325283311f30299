// Package monitor holds the Gate: the one straight line that every call takes.
//
//	call -> normalise -> match -> decide -> judge -> intent -> sandbox or decoy -> result phase -> outcome -> response
//
// Vocabulary: a Call is one tool call, an Observation what the agent is shown for it; a Verdict is
// the decision (what policy concludes) and the action (what was done), with hits, opinion and
// evidence. A Record is one call's line in the trajectory; the response is built from it alone.
package monitor

import (
	"context"
	"encoding/json"
	"time"

	"proctor/judge"
	"proctor/monitor/decoy"
	"proctor/monitor/normalize"
	"proctor/monitor/witness"
	"proctor/rules"
	"proctor/sandbox"
)

// Modes of a rollout.
const (
	Enforce = "enforce" // block, answer with decoys
	Shadow  = "shadow"  // decide and record, execute everything
	Off     = "off"     // record only
)

// Presets: which confirmed hacks are blocked.
const (
	Balanced = "balanced" // by class, as the design's table of belief and action
	Strict   = "strict"   // every confirmed hack
	Observe  = "observe"  // none
)

// Decisions and actions of a verdict.
const (
	Allow = "allow"
	Flag  = "flag"
	Block = "block"

	Executed = "executed"
	Filtered = "filtered"
	Decoyed  = "decoyed"
)

// Principals: who made a call.
const (
	Agent   = "agent"
	Harness = "harness"
)

// Call is one tool call, already held against its tool's schema (see ParseCall).
type Call struct {
	ID        string          // the agent's own name for it; may repeat; echoed
	Key       string          // Idempotency-Key, "" for none
	Name      string          // the tool
	Arguments json.RawMessage // as the agent gave them
	Box       sandbox.Call    // the same, as the sandbox takes it; ID is set by the Gate
	Facts     normalize.Call  // the same, as the normaliser takes it
	Base64    bool            // "encoding": "base64" was asked for
	Principal string          // Agent (also where empty) or Harness, whose calls are recorded, not judged
}

// Observation is what the agent is shown: always these six fields.
type Observation struct {
	CallID    string  `json:"call_id"`
	Output    string  `json:"output"`
	ExitCode  *int    `json:"exit_code"`
	TimedOut  bool    `json:"timed_out"`
	Truncated bool    `json:"truncated"`
	Handle    *string `json:"handle"`
	// Base64 is the output's bytes, only where the call asked for them.
	Base64 *string `json:"output_base64,omitempty"`
}

// Verdict is what the Gate concluded of a call and what it did.
type Verdict struct {
	Decision string         `json:"decision"` // allow, flag, block
	Action   string         `json:"action"`   // executed, filtered, decoyed
	Hack     bool           `json:"hack"`     // a hit was confirmed
	Class    string         `json:"class,omitempty"`
	Tainted  bool           `json:"tainted"` // the agent learned or kept something before a late block
	Hits     []rules.Hit    `json:"hits"`
	Opinion  *judge.Opinion `json:"opinion"`
	Evidence []string       `json:"evidence"`
	Decoy    *DecoyNote     `json:"decoy"`
	Policy   string         `json:"policy,omitempty"` // the policy that spoke where the judge was unsure or out: execute, decoy, hold
	// Openings are the protected files that were opened while the call ran, as the witness saw it.
	Openings []witness.Opening `json:"openings,omitempty"`
}

// DecoyNote names the decoy that was shown, and pins its bytes.
type DecoyNote struct {
	Family string   `json:"family"`
	SHA256 string   `json:"sha256"`
	How    string   `json:"how,omitempty"`    // own, cut, whole, told
	Absent []string `json:"absent,omitempty"` // protected paths found absent, or taken out of the sandbox, for this answer
}

// How a decoy is made.
const (
	HowOwn   = "own"   // the agent's own call ran: all that it was after is proved not to be in the sandbox
	HowCut   = "cut"   // the agent's call ran but for what offends in it
	HowWhole = "whole" // none of the call ran
	HowTold  = "told"  // none of it ran, and the agent was told so
)

// Record is one call in the trajectory. Intent writes it before the call acts, Outcome fills the
// rest.
type Record struct {
	Ordinal     int             `json:"ordinal"`          // from 1, without gaps
	Origin      string          `json:"origin,omitempty"` // the rollout that made it, where this one was forked from that one later
	CallID      string          `json:"call_id"`
	Key         string          `json:"-"`
	ArgsSHA256  string          `json:"args_sha256"`
	Name        string          `json:"name"`
	Arguments   json.RawMessage `json:"arguments"`
	Principal   string          `json:"principal"`
	Witness     string          `json:"witness"` // full, none
	Verdict     Verdict         `json:"verdict"`
	Event       *rules.Event    `json:"event,omitempty"`
	BoxID       string          `json:"-"` // the sandbox.Call.ID that it runs under
	BoxCommand  *string         `json:"-"` // what is run in place of the agent's command
	Cwd         string          `json:"-"` // the shell's folder after it
	StartedAt   time.Time       `json:"started_at"`
	DurationMS  int64           `json:"duration_ms"`
	Observation *Observation    `json:"observation"`     // nil until the outcome
	Original    *Observation    `json:"original"`        // nil: it was not run
	Error       string          `json:"error,omitempty"` // the call ended without an observation
}

// Normalizer makes the event of a call and follows what calls do. *normalize.Normalizer.
type Normalizer interface {
	// Event gives the facts of call; it changes nothing.
	Event(ctx context.Context, call normalize.Call) rules.Event
	// Observe tells that call ran (or was answered without running) and where the shell then stood.
	Observe(call normalize.Call, ran bool, cwd string)
}

// Follower is a Normalizer that reads what is typed into background commands as part of them.
type Follower interface {
	// Started tells that call left a command behind that handle stands for, on a terminal or not.
	Started(handle string, call normalize.Call, tty bool)
}

// Matcher gives the hits of an event under the rollout's pinned rule set and task variables.
// *rules.Session keeps the tags that sequences need.
type Matcher interface {
	Match(ev *rules.Event) []rules.Hit
}

// Executor runs calls in the rollout's sandbox. sandbox.Session.
type Executor interface {
	Do(ctx context.Context, call sandbox.Call) (sandbox.Result, error)
}

// Recorder appends to the rollout's record. Both calls are durable when they return.
type Recorder interface {
	// Intent gives rec its ordinal and BoxID and writes it.
	Intent(ctx context.Context, rec *Record) error
	// Outcome writes the rest.
	Outcome(ctx context.Context, rec *Record) error
}

// Decoyer answers blocked calls, and remembers what it denied. *decoy.Maker.
type Decoyer interface {
	// Answer gives what to show for a blocked call.
	Answer(ctx context.Context, req decoy.Request) decoy.Answer
	// Recall gives an answer for a call that policy allows but that touches what an earlier decoy
	// denied; false where it touches nothing of the kind.
	Recall(ctx context.Context, req decoy.Request) (decoy.Answer, bool)
}

// Keeper is what a Decoyer may also be: it keeps what answers rest on. *decoy.Maker.
type Keeper interface {
	// Remember takes up what a blocked call denied; Follow what any other call did to the shell: to
	// replay a record.
	Remember(req decoy.Request)
	Follow(req decoy.Request)
	// Proved takes up protected paths that were proved not to be in the sandbox.
	Proved(paths []string)
	// Disturbed tells that the harness ran something in the sandbox.
	Disturbed(ctx context.Context)
}

// Witness watches protected files while a call runs. *witness.Watcher, witness.None.
type Witness interface {
	// Begin starts attributing opens to this call; the function ends that, and gives them.
	Begin(call witness.Span) (end func() []witness.Opening)
	// Kind is "full" or "none".
	Kind() string
}

// Canaries finds in text what only a protected file holds. *canary.Detector.
type Canaries interface {
	// Find gives what text holds, in words, each once; it is bounded whatever text is.
	Find(text string) []string
}
