// Package judge decides whether a call that a rule hit is cheating: a Case goes in, an Opinion
// comes out. Judges are an OpenAI-compatible endpoint, the built-in heuristic, and compositions of
// them (quorum, cache, second opinion, circuit breaker).
//
// This package imports nothing of ours: a Case carries the facts of the event as JSON.
package judge

import (
	"context"
	"encoding/json"
)

// Judge gives an opinion on a case. Safe for concurrent use. It never panics and never returns an
// opinion of Benign because something failed: a failure is Unsure with Failure set.
type Judge interface {
	// Judge decides c within ctx.
	Judge(ctx context.Context, c Case) Opinion
	// Name is the judge's word in records: "heuristic", "openai:<model>".
	Name() string
	// Digest pins what decides: prompt, model, sampling. "sha256:...".
	Digest() string
}

// Case is what a judge is asked. It holds parsed facts and the task, never the agent's prose.
type Case struct {
	RolloutID string          `json:"-"`
	Ordinal   int             `json:"-"`
	Task      Task            `json:"task"`
	Tool      string          `json:"tool"`
	Call      json.RawMessage `json:"call"`  // the tool's arguments as the agent gave them
	Event     json.RawMessage `json:"event"` // rules.Event as JSON
	Hits      []Hit           `json:"hits"`
	History   []string        `json:"history,omitempty"` // canonical lines of earlier calls, oldest first
	Packs     string          `json:"-"`                 // digest of the rule set, for the cache key
}

// Task is what a judge knows of the task.
type Task struct {
	ID          string              `json:"id"`
	Instruction string              `json:"instruction"`
	Workdir     string              `json:"workdir"`
	Vars        map[string][]string `json:"vars"`
}

// Hit is a rule's hit as a judge sees it.
type Hit struct {
	Rule           string          `json:"rule"`
	Title          string          `json:"title"`
	Class          string          `json:"class"`
	Severity       string          `json:"severity"`
	Why            string          `json:"why"`
	Question       string          `json:"question,omitempty"`
	FalsePositives []string        `json:"false_positives,omitempty"`
	Span           string          `json:"span"`
	Kind           string          `json:"kind"`   // command, file, script, package, call, result
	Entity         json.RawMessage `json:"entity"` // the entity that hit, as in the event
	Resolved       bool            `json:"resolved"`
	Wording        bool            `json:"wording,omitempty"` // by what the call reads like alone
}

// Verdicts of an opinion.
const (
	Hack   = "hack"
	Benign = "benign"
	Unsure = "unsure"
)

// Opinion is what a judge answers.
type Opinion struct {
	By         string    `json:"by"`
	Verdict    string    `json:"verdict"` // hack, benign, unsure
	Class      string    `json:"class"`
	Confidence float64   `json:"confidence"` // 0 to 1
	Evidence   string    `json:"evidence"`   // a substring of the call, else the opinion is unsure
	Reason     string    `json:"reason"`
	Failure    string    `json:"failure,omitempty"` // timeout, outage, garbage, refused, rate_limited; "" for none
	Cached     bool      `json:"cached,omitempty"`
	TokensIn   int       `json:"tokens_in,omitempty"`
	TokensOut  int       `json:"tokens_out,omitempty"`
	Cost       float64   `json:"cost,omitempty"`  // in the price's currency
	Votes      []Opinion `json:"votes,omitempty"` // where several were asked
}

// Failures of an opinion: why it is unsure though nobody weighed the case.
const (
	FailTimeout     = "timeout"      // no answer in time
	FailOutage      = "outage"       // the endpoint is down, or the breaker is open
	FailRateLimited = "rate_limited" // 429 to the last try
	FailGarbage     = "garbage"      // an answer that is not an opinion
	FailRefused     = "refused"      // the model would not answer
)
