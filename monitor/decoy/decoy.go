// Package decoy answers a blocked call with what the cleanest environment would have said: in that
// program's own words and exit code, and consistently for the rest of the rollout.
package decoy

import (
	"time"

	"proctor/rules"
	"proctor/sandbox"
)

// Request is a call that is to be blocked, or one that touches what an earlier decoy denied.
type Request struct {
	Ordinal int
	Tool    string
	Call    sandbox.Call
	Event   rules.Event
	Hits    []rules.Hit // those that were confirmed; empty where only the memory speaks
	Late    bool        // the call has run already: nothing may be run for the answer
}

// Answer is what the agent is to be shown. Exactly one of two kinds:
//
//   - Run is true: Command is typed into the persistent shell in place of the agent's, and its
//     result, passed through Rewrite where that is set, is the observation. So are surgical decoys
//     and filtered real runs made; shell state ($?, cwd, variables) stays true. Where Command is
//     empty the agent's own call runs as it is (a folder viewed with a file tool), and only its
//     result is rewritten. Result is what to show if it is too late to run anything.
//   - Run is false: Result is the observation; nothing is run.
type Answer struct {
	Family  string // "no-such-file", "bad-revision", "network-unreachable", ...: recorded, never shown
	Action  string // "decoyed" or "filtered"
	Run     bool
	Own     bool // what runs is the agent's own call: all that it was after is proved not to be there
	Kept    bool // what runs is the agent's call but for what offends in it, so that its other effects are real
	Command string
	Rewrite func(sandbox.Result) sandbox.Result
	Result  sandbox.Result
	Delay   time.Duration // how long such a program would have run; added where nothing is run
	Absent  []string      // protected paths that were proved absent, or taken out, for this answer
}
