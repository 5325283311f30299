package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Problem is what a document of an export does not hold.
type Problem struct {
	Line   int    `json:"line"` // of the file, from 1; the number of the row in parquet
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// String gives the problem in one line, with its place.
func (p Problem) String() string { return fmt.Sprintf("line %d: %s: %s", p.Line, p.Field, p.Detail) }

// Report is what a check found.
type Report struct {
	Forms     map[string]int `json:"forms"` // documents by form
	Documents int            `json:"documents"`
	Rollouts  int            `json:"rollouts"`
	Problems  []Problem      `json:"problems"`
}

// maxProblems bounds a report; what comes after is counted as the last one.
const maxProblems = 1000

// maxDocument bounds one document, in bytes.
const maxDocument = 1 << 30

// Check reads an export, one document a line, and holds each against its form and its stamp: the
// schema's version, arrays of equal length, masks, finite logprobs, reward null iff nobody can say what
// was earned, guard spans inside the tokens, and that a blocked call's observation stands there as it
// was shown. Reading stops at an error of r alone.
func Check(r io.Reader) (*Report, error) {
	rep := &Report{Forms: map[string]int{}, Problems: []Problem{}}
	seen := map[string]bool{}
	br := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		text, err := readLine(br)
		if len(bytes.TrimSpace(text)) > 0 {
			rep.check(n, text, seen)
		}
		if err == io.EOF {
			rep.Rollouts = len(seen)
			return rep, nil
		}
		if err != nil {
			return rep, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func readLine(br *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		part, err := br.ReadSlice('\n')
		text = append(text, part...)
		if err != bufio.ErrBufferFull {
			return text, err
		}
		if len(text) > maxDocument {
			return nil, fmt.Errorf("a document is longer than %d bytes", maxDocument)
		}
	}
}

func (rep *Report) say(n int, field, format string, args ...any) {
	if len(rep.Problems) < maxProblems {
		rep.Problems = append(rep.Problems, Problem{n, field, fmt.Sprintf(format, args...)})
	}
}

// document is what Check reads of any form.
type document struct {
	Proctor  *Stamp `json:"proctor"`
	Metadata *held  `json:"metadata"`
	Extra    *held  `json:"extra"`
	Fields   *held  `json:"extra_fields"`
	Info     *held  `json:"info"`
	Samples  []struct {
		ID       string `json:"id"`
		Metadata *held  `json:"metadata"`
	} `json:"samples"`

	// slime
	Tokens         []int32   `json:"tokens"`
	LossMask       []int     `json:"loss_mask"`
	Logprobs       []float64 `json:"rollout_log_probs"`
	ResponseLength *int      `json:"response_length"`
	Status         string    `json:"status"`
	// verl
	PromptIDs    []int32   `json:"prompt_ids"`
	ResponseIDs  []int32   `json:"response_ids"`
	ResponseMask []int     `json:"response_mask"`
	ResponseLP   []float64 `json:"response_logprobs"`
	// openai
	Messages []json.RawMessage `json:"messages"`
	// swe-bench
	Instance string  `json:"instance_id"`
	Model    string  `json:"model_name_or_path"`
	Patch    *string `json:"model_patch"`
	// atif
	Version json.RawMessage `json:"schema_version"`
	Steps   []atifStep      `json:"steps"`
	// swe-agent
	Trajectory []json.RawMessage `json:"trajectory"`
	History    []json.RawMessage `json:"history"`
	// verifiers
	Nodes []traceNode `json:"nodes"`
	// inspect, verifiers
	LogVersion int `json:"version"`
}

type held struct {
	Proctor    *Stamp      `json:"proctor"`
	ActionMask []int       `json:"action_mask"`
	Paths      []tracePath `json:"paths"`
}

type atifStep struct {
	ID     int    `json:"step_id"`
	Source string `json:"source"`
	Calls  []struct {
		ID string `json:"tool_call_id"`
	} `json:"tool_calls"`
	Observation *struct {
		Results []struct {
			Call    string `json:"source_call_id"`
			Content string `json:"content"`
		} `json:"results"`
	} `json:"observation"`
}

// stamp finds a document's stamp, wherever its form keeps it.
func (d *document) stamp() (*Stamp, *held) {
	for _, h := range []*held{d.Metadata, d.Extra, d.Fields, d.Info} {
		if h != nil && h.Proctor != nil {
			return h.Proctor, h
		}
	}
	for _, s := range d.Samples {
		if s.Metadata != nil && s.Metadata.Proctor != nil {
			return s.Metadata.Proctor, s.Metadata
		}
	}
	return d.Proctor, nil
}

func (rep *Report) check(n int, text []byte, seen map[string]bool) {
	rep.Documents++
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		rep.say(n, "(document)", "does not decode: %v", err)
		return
	}
	st, h := d.stamp()
	if st == nil {
		rep.say(n, "proctor", "there is no stamp: this is no export of proctor, or its stamp was cut out")
		return
	}
	form, version, ok := strings.Cut(strings.TrimPrefix(st.Schema, "proctor.export."), "/")
	if !ok || !slices.Contains(Forms(), form) {
		rep.say(n, "proctor.schema", "%.60q is none; want proctor.export.FORM/1", st.Schema)
		return
	}
	if version != versionOf(form) {
		rep.say(n, "proctor.schema", "version %.20s of %s is not known to this program, which reads %s", version, form, versionOf(form))
		return
	}
	rep.Forms[form]++
	seen[st.RolloutID] = true
	c := docCheck{rep: rep, n: n, d: &d, st: st, held: h}
	c.stamped()
	map[string]func(){ATIF: c.atif, OpenAI: c.openai, SWEAgent: c.sweAgent, SWEBench: c.sweBench, Slime: c.slime, Verl: c.verl,
		Verifiers: c.verifiers, Inspect: c.inspect}[form]()
}

type docCheck struct {
	rep  *Report
	n    int
	d    *document
	st   *Stamp
	held *held
}

func (c *docCheck) say(field, format string, args ...any) { c.rep.say(c.n, field, format, args...) }

// stamped checks the stamp itself.
func (c *docCheck) stamped() {
	st := c.st
	if st.RolloutID == "" {
		c.say("proctor.rollout_id", "is empty")
	}
	void := st.FailureClass == "infra" || st.FailureClass == "verifier" || st.FailureClass == "task"
	if void && st.Reward != nil {
		c.say("proctor.reward", "is %g with failure_class %s, want null", *st.Reward, st.FailureClass)
	}
	if st.Reward != nil && (math.IsNaN(*st.Reward) || *st.Reward < 0 || *st.Reward > 1) {
		c.say("proctor.reward", "is %g, want 0 to 1", *st.Reward)
	}
	for i, g := range st.Guard {
		if g.Decision == "allow" && g.Rule == "" {
			c.say(fmt.Sprintf("proctor.guard[%d]", i), "is of a call that was plainly allowed")
		}
		if g.Start > g.End || g.ObsStart > g.ObsEnd || g.Start < 0 {
			c.say(fmt.Sprintf("proctor.guard[%d]", i), "spans [%d, %d) and [%d, %d)", g.Start, g.End, g.ObsStart, g.ObsEnd)
		}
	}
}

// arrays checks the masks and logprobs of a response of n tokens, of a segment of all tokens.
func (c *docCheck) arrays(n, all int, names [2]string, mask []int, logprobs []float64) {
	for name, have := range map[string]int{names[0]: len(mask), names[1]: len(logprobs), "action_mask": len(c.held.ActionMask)} {
		if have != n {
			c.say(name, "has %d entries, the response has %d tokens", have, n)
			return
		}
	}
	action := 0
	for i, bit := range mask {
		a := c.held.ActionMask[i]
		action += a
		if bit < 0 || bit > 1 || a < 0 || a > 1 || bit > a {
			c.say(names[0], "is %d at %d where action_mask is %d: only sampled tokens train", bit, i, a)
			return
		}
		if math.IsNaN(logprobs[i]) || math.IsInf(logprobs[i], 0) || a == 0 && logprobs[i] != 0 {
			c.say(names[1], "is %g at %d", logprobs[i], i)
			return
		}
	}
	if action != c.st.NAction {
		c.say("proctor.n_action", "is %d, action_mask has %d ones", c.st.NAction, action)
	}
	for i, g := range c.st.Guard {
		if g.Segment == c.st.Segment && (g.End > all || g.ObsEnd > all) {
			c.say(fmt.Sprintf("proctor.guard[%d]", i), "ends at token %d of %d", max(g.End, g.ObsEnd), all)
			continue
		}
		c.policy(i, g, all-n, mask)
	}
}

// policy checks that a blocked turn came out as the stamp's policy says.
func (c *docCheck) policy(i int, g Guard, offset int, mask []int) {
	if g.Decision != "block" || g.Segment != c.st.Segment || g.Joined == "" {
		return
	}
	trained := 0
	for at := max(g.Start-offset, 0); at < g.End-offset; at++ {
		trained += mask[at]
	}
	field := fmt.Sprintf("proctor.guard[%d]", i)
	switch way, _, _ := strings.Cut(c.st.Blocked, ":"); way {
	case "mask":
		if trained > 0 {
			c.say(field, "trains %d tokens of a blocked turn, and blocked is mask", trained)
		}
	case "penalty":
		if g.End > g.Start && !slices.ContainsFunc(c.st.Rewards, func(r rewardEvent) bool { return r.Index == g.End-1 }) {
			c.say(field, "has no reward event at token %d, and blocked is penalty", g.End-1)
		}
	case "reject":
		c.say(field, "is of a blocked call, and blocked is reject")
	}
}

func (c *docCheck) slime() {
	d := c.d
	if d.ResponseLength == nil || *d.ResponseLength < 0 || *d.ResponseLength > len(d.Tokens) {
		c.say("response_length", "is missing, or more than the %d tokens", len(d.Tokens))
		return
	}
	if !slices.Contains([]string{"pending", "completed", "truncated", "aborted", "failed"}, d.Status) {
		c.say("status", "is %.40q", d.Status)
	}
	c.arrays(*d.ResponseLength, len(d.Tokens), [2]string{"loss_mask", "rollout_log_probs"}, d.LossMask, d.Logprobs)
}

func (c *docCheck) verl() {
	c.arrays(len(c.d.ResponseIDs), len(c.d.PromptIDs)+len(c.d.ResponseIDs), [2]string{"response_mask", "response_logprobs"}, c.d.ResponseMask, c.d.ResponseLP)
}

func (c *docCheck) sweBench() {
	if c.d.Instance == "" || c.d.Model == "" || c.d.Patch == nil {
		c.say("instance_id", "instance_id, model_name_or_path and model_patch must be there")
	}
}

func (c *docCheck) inspect() {
	if c.d.LogVersion != 2 || len(c.d.Samples) == 0 {
		c.say("version", "is %d with %d samples, want version 2 and a sample", c.d.LogVersion, len(c.d.Samples))
	}
}

func (c *docCheck) sweAgent() {
	if len(c.d.History) == 0 {
		c.say("history", "is empty")
	}
	for i, raw := range c.d.Trajectory {
		var step struct {
			Observation *string `json:"observation"`
			Action      *string `json:"action"`
			Extra       struct {
				Ordinal int `json:"ordinal"`
			} `json:"extra_info"`
		}
		if json.Unmarshal(raw, &step) != nil || step.Action == nil || step.Observation == nil {
			c.say(fmt.Sprintf("trajectory[%d]", i), "has no action or no observation")
			continue
		}
		c.shows(fmt.Sprintf("trajectory[%d].observation", i), func(g Guard) bool { return g.Ordinal == step.Extra.Ordinal }, *step.Observation)
	}
}

// shows checks that a guarded call is told with what was shown for it.
func (c *docCheck) shows(field string, of func(Guard) bool, text string) {
	for _, g := range c.st.Guard {
		if of(g) && g.Observation != nil && *g.Observation != text {
			c.say(field, "is not what call %d was shown", g.Ordinal)
		}
	}
}
