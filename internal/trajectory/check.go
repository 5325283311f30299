package trajectory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Schema is the form that this package reads.
const Schema = "proctor.trajectory/1"

// document is the part of a record that rules are about.
type document struct {
	Schema   string      `json:"schema"`
	Rollout  *rollout    `json:"rollout"`
	Calls    []call      `json:"calls"`
	Segments []*Segment  `json:"segments"`
	Guard    []GuardSpan `json:"guard"`
}

type rollout struct {
	ID           string   `json:"id"`
	Mode         string   `json:"mode"`
	Status       string   `json:"status"`
	FailureClass string   `json:"failure_class"`
	Reward       *float64 `json:"reward"`
	Calls        int      `json:"calls"`
}

type call struct {
	Ordinal     int             `json:"ordinal"`
	Principal   string          `json:"principal"`
	Verdict     verdict         `json:"verdict"`
	Observation json.RawMessage `json:"observation"`
	Original    json.RawMessage `json:"original"`
	Error       string          `json:"error"`
}

type verdict struct {
	Decision string            `json:"decision"`
	Action   string            `json:"action"`
	Tainted  bool              `json:"tainted"`
	Hits     []json.RawMessage `json:"hits"`
	Decoy    *struct {
		SHA256 string `json:"sha256"`
	} `json:"decoy"`
}

// Check holds a document against what must hold in every record, and gives what does not, in words
// that name the call. An error means that it is no such document at all.
func Check(data []byte) ([]string, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("trajectory: %w", err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("trajectory: schema is %.60q, this program reads %q", d.Schema, Schema)
	}
	if d.Rollout == nil {
		return nil, fmt.Errorf("trajectory: field rollout is missing")
	}
	c := checker{doc: &d}
	c.rollout()
	for i := range d.Calls {
		c.call(i+1, &d.Calls[i])
	}
	for _, p := range CheckSegments(d.Segments) {
		c.say("%s", p)
	}
	c.guard()
	return c.problems, nil
}

type checker struct {
	doc      *document
	problems []string
}

func (c *checker) say(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// rollout checks that the reward is null exactly where nobody can say what the agent earned.
func (c *checker) rollout() {
	r := c.doc.Rollout
	if r.ID == "" {
		c.say("rollout.id is empty")
	}
	if c.doc.Segments == nil {
		c.say("segments is null, want a list")
	}
	agents := 0
	for _, call := range c.doc.Calls {
		if call.Principal == "agent" && (has(call.Observation) || call.Error != "") {
			agents++
		}
	}
	if agents != r.Calls {
		c.say("rollout.calls is %d, the agent finished %d", r.Calls, agents)
	}
	if r.Status != "graded" && r.Status != "failed" {
		return
	}
	void := r.FailureClass == "infra" || r.FailureClass == "verifier" || r.FailureClass == "task"
	switch {
	case void && r.Reward != nil:
		c.say("rollout.reward is %v with failure_class %s, want null", *r.Reward, r.FailureClass)
	case !void && r.Reward == nil:
		c.say("rollout.reward is null with failure_class %s", r.FailureClass)
	case r.Reward != nil && (*r.Reward < 0 || *r.Reward > 1):
		c.say("rollout.reward is %v, want 0 to 1", *r.Reward)
	}
}

// guard checks that each span is of a call that was not plainly allowed and lies inside its turn.
func (c *checker) guard() {
	byID := map[string]*Segment{}
	for _, s := range c.doc.Segments {
		if s != nil {
			byID[s.ID] = s
		}
	}
	for i, g := range c.doc.Guard {
		if g.Ordinal < 1 || g.Ordinal > len(c.doc.Calls) || c.doc.Calls[g.Ordinal-1].Verdict.Decision != g.Decision {
			c.say("guard[%d] is of call %d, which has another verdict or is not there", i, g.Ordinal)
			continue
		}
		if g.Joined == "" {
			continue
		}
		s := byID[g.Segment]
		if s == nil || g.Turn < 0 || g.Turn >= len(s.Turns) || s.Turns[g.Turn].Start != g.Start || s.Turns[g.Turn].End != g.End || g.ObsStart < g.End || g.ObsEnd < g.ObsStart || g.ObsEnd > len(s.Tokens) {
			c.say("guard[%d] does not span a turn of a segment", i)
		}
	}
}

func (c *checker) call(n int, call *call) {
	if call.Ordinal != n {
		c.say("call %d has ordinal %d: ordinals start at 1 and have no gap", n, call.Ordinal)
	}
	ended := c.doc.Rollout.Status == "graded" || c.doc.Rollout.Status == "failed" || c.doc.Rollout.Status == "deleted"
	switch {
	case has(call.Observation) && call.Error != "":
		c.say("call %d has an observation and an error", n)
	case !has(call.Observation) && call.Error == "" && ended:
		c.say("call %d has no outcome, although the rollout has ended", n)
	}
	v := &call.Verdict
	if call.Principal == "harness" && (v.Decision != "allow" || len(v.Hits) > 0) {
		c.say("call %d is the harness's and was judged", n)
	}
	if c.doc.Rollout.Mode != "enforce" && v.Action != "executed" {
		c.say("call %d was %s in mode %s", n, v.Action, c.doc.Rollout.Mode)
	}
	if has(call.Observation) {
		c.shown(n, call)
	}
}

// shown checks what the agent was shown against what was done.
func (c *checker) shown(n int, call *call) {
	v := &call.Verdict
	switch v.Action {
	case "executed":
		if v.Decoy != nil {
			c.say("call %d was executed and has a decoy", n)
		}
		if !same(call.Observation, call.Original) {
			c.say("call %d was executed, and its original is not what was shown", n)
		}
	case "decoyed", "filtered":
		if v.Decoy == nil {
			c.say("call %d was %s without a decoy", n, v.Action)
			return
		}
		if v.Action == "decoyed" && has(call.Original) && !v.Tainted {
			c.say("call %d was decoyed before it ran, and has an original", n)
		}
		var o struct {
			Output string `json:"output"`
		}
		_ = json.Unmarshal(call.Observation, &o) // a wrong type shows as a wrong hash
		sum := sha256.Sum256([]byte(o.Output))
		// Bytes that are not UTF-8 are replaced in the text, and the hash is of the bytes.
		if hex.EncodeToString(sum[:]) != v.Decoy.SHA256 && !strings.ContainsRune(o.Output, '\uFFFD') {
			c.say("call %d does not show its decoy: the hashes differ", n)
		}
	default:
		c.say("call %d has the unknown action %.40q", n, v.Action)
	}
}

func has(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
