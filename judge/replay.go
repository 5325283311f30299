package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// FailNotRecorded is the failure of an opinion that a Replay was asked for and does not hold.
const FailNotRecorded = "not_recorded"

// Decision is one question and its answer, as files of recorded decisions hold them, one JSON object
// a line.
type Decision struct {
	Task    string          `json:"task"`
	Tool    string          `json:"tool"`
	Call    json.RawMessage `json:"call"`
	Event   json.RawMessage `json:"event"`
	Rules   []string        `json:"rules"`            // ids, sorted
	Digest  string          `json:"digest,omitempty"` // of the judge that decided
	Opinion Opinion         `json:"opinion"`
}

// DecisionOf gives a question with its answer.
func DecisionOf(c Case, digest string, o Opinion) Decision {
	d := Decision{Task: c.Task.ID, Tool: c.Tool, Call: c.Call, Event: c.Event, Digest: digest, Opinion: o}
	for _, h := range c.Hits {
		if !slices.Contains(d.Rules, h.Rule) {
			d.Rules = append(d.Rules, h.Rule)
		}
	}
	slices.Sort(d.Rules)
	return d
}

// key pins the question, the task aside: tool, call, facts and rules, whatever their spelling as JSON.
func (d Decision) key() (string, error) {
	call, err := canonical(d.Call)
	if err != nil {
		return "", fmt.Errorf("call: %w", err)
	}
	event, err := canonical(d.Event)
	if err != nil {
		return "", fmt.Errorf("event: %w", err)
	}
	return digest(append([]string{d.Tool, call, event}, d.Rules...)...), nil
}

// canonical spells JSON in one way: without spaces, keys sorted, numbers as written.
func canonical(raw json.RawMessage) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", err
	}
	out, err := json.Marshal(v)
	return string(out), err
}

// Recorder writes each decision of a judge to a file, for a Replay. A decision that failed is not
// written: nothing was decided. Safe for concurrent use.
type Recorder struct {
	inner Judge

	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewRecorder wraps inner.
func NewRecorder(inner Judge, w io.Writer) *Recorder { return &Recorder{inner: inner, w: w} }

// Name implements Judge.
func (r *Recorder) Name() string { return r.inner.Name() }

// Digest implements Judge: a recorder decides nothing.
func (r *Recorder) Digest() string { return r.inner.Digest() }

// Judge implements Judge.
func (r *Recorder) Judge(ctx context.Context, c Case) Opinion {
	o := r.inner.Judge(ctx, c)
	if o.Failure != "" {
		return o
	}
	line, err := json.Marshal(DecisionOf(c, r.Digest(), o))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	r.err = errors.Join(r.err, err)
	return o
}

// Err gives what kept decisions from being written.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Replay is a judge that answers from recorded decisions, without a model and always alike. What was
// not recorded is unsure, with FailNotRecorded, and is counted. Safe for concurrent use.
type Replay struct {
	sum  string
	held map[string][]Decision

	mu     sync.Mutex
	missed []string
}

// NewReplay gives a Replay of decisions. Two that contradict each other on one question of one task
// are an error: which of them to repeat would be a guess.
func NewReplay(decisions []Decision) (*Replay, error) {
	r := &Replay{held: map[string][]Decision{}}
	parts := []string{"replay"}
	for i, d := range decisions {
		key, err := d.key()
		if err != nil {
			return nil, fmt.Errorf("decision %d: %w", i+1, err)
		}
		for _, have := range r.held[key] {
			if have.Task == d.Task && have.Opinion.Verdict != d.Opinion.Verdict {
				return nil, fmt.Errorf("decision %d: %s on a call of task %q that another decision finds %s; keep one of them", i+1, d.Opinion.Verdict, d.Task, have.Opinion.Verdict)
			}
		}
		r.held[key] = append(r.held[key], d)
		parts = append(parts, key, d.Task, d.Opinion.Verdict, d.Opinion.Class)
	}
	r.sum = digest(parts...)
	return r, nil
}

// Name implements Judge.
func (r *Replay) Name() string { return "replay" }

// Digest implements Judge: it pins the decisions.
func (r *Replay) Digest() string { return r.sum }

// Judge implements Judge.
func (r *Replay) Judge(_ context.Context, c Case) Opinion {
	key, err := DecisionOf(c, "", Opinion{}).key()
	var why error
	if err == nil {
		var o Opinion
		if o, why = r.find(key, c.Task.ID); why == nil {
			return o
		}
		err = why
	}
	words := fmt.Sprintf("task %q, %s %.200s: %v", c.Task.ID, c.Tool, c.Call, err)
	r.mu.Lock()
	r.missed = append(r.missed, words)
	r.mu.Unlock()
	return Opinion{By: r.Name(), Verdict: Unsure, Failure: FailNotRecorded, Reason: cut(words, 400)}
}

var errNotRecorded = errors.New("there is no recorded decision on it, or the facts of the call read otherwise now")

// find gives the decision on the task's own question; one on the same question of other tasks where
// all of them agree.
func (r *Replay) find(key, task string) (Opinion, error) {
	held := r.held[key]
	if len(held) == 0 {
		return Opinion{}, errNotRecorded
	}
	for _, d := range held {
		if d.Task == task {
			return d.Opinion, nil
		}
	}
	for _, d := range held[1:] {
		if d.Opinion.Verdict != held[0].Opinion.Verdict {
			return Opinion{}, errors.New("decisions of other tasks contradict each other on it")
		}
	}
	return held[0].Opinion, nil
}

// Missed gives what was asked and not recorded, in words.
func (r *Replay) Missed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.missed)
}
