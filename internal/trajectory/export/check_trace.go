package export

import (
	"fmt"
	"math"

	"proctor/internal/trajectory"
)

// traceNode is what a check reads of a node of verifiers' Trace.
type traceNode struct {
	Parent  *int `json:"parent"`
	Message struct {
		Role  string `json:"role"`
		Call  string `json:"tool_call_id"`
		Calls []struct {
			ID string `json:"id"`
		} `json:"tool_calls"`
	} `json:"message"`
	Sampled  bool      `json:"sampled"`
	Tokens   []int32   `json:"token_ids"`
	Mask     []bool    `json:"mask"`
	Logprobs []float64 `json:"logprobs"`
}

// tracePath is a segment's path through a Trace.
type tracePath struct {
	Segment string                   `json:"segment"`
	Leaf    int                      `json:"leaf"`
	NAction int                      `json:"n_action"`
	Turns   []trajectory.Turn        `json:"turns"`
	Rewards []trajectory.RewardEvent `json:"rewards"`
}

// verifiers checks the graph of a Trace: parents before children, arrays of equal length, answers to calls
// that were made on the path, and for each segment's path what the stamp says of it.
func (c *docCheck) verifiers() {
	if c.d.LogVersion != traceVersion || len(c.d.Nodes) == 0 {
		c.say("version", "is %d with %d nodes, want version %d and a node", c.d.LogVersion, len(c.d.Nodes), traceVersion)
		return
	}
	for i, n := range c.d.Nodes {
		at := fmt.Sprintf("nodes[%d]", i)
		if n.Parent != nil && (*n.Parent < 0 || *n.Parent >= i) {
			c.say(at+".parent", "is %d, want an earlier node", *n.Parent)
			return
		}
		trains := 0
		for _, bit := range n.Mask {
			if bit {
				trains++
			}
		}
		if len(n.Mask) != len(n.Tokens) || len(n.Logprobs) != trains {
			c.say(at+".mask", "has %d entries and %d logprobs, with %d tokens of which %d train", len(n.Mask), len(n.Logprobs), len(n.Tokens), trains)
			return
		}
		if trains > 0 && !n.Sampled {
			c.say(at+".mask", "trains tokens that were not sampled")
		}
		for _, lp := range n.Logprobs {
			if math.IsNaN(lp) || math.IsInf(lp, 0) {
				c.say(at+".logprobs", "holds %g", lp)
			}
		}
		if n.Message.Role == "tool" && !c.called(i, n.Message.Call) {
			c.say(at+".message.tool_call_id", "%.60q answers no call before it", n.Message.Call)
		}
	}
	if c.d.Info == nil {
		return
	}
	for i, p := range c.d.Info.Paths {
		c.path(fmt.Sprintf("info.paths[%d]", i), p)
	}
}

// called says whether a node before i on its path called by this id.
func (c *docCheck) called(i int, id string) bool {
	for at := c.d.Nodes[i].Parent; at != nil; at = c.d.Nodes[*at].Parent {
		for _, t := range c.d.Nodes[*at].Message.Calls {
			if t.ID == id {
				return true
			}
		}
	}
	return false
}

// path checks one segment's path as its tokens in a row.
func (c *docCheck) path(field string, p tracePath) {
	if p.Leaf < 0 || p.Leaf >= len(c.d.Nodes) {
		c.say(field+".leaf", "is %d of %d nodes", p.Leaf, len(c.d.Nodes))
		return
	}
	var mask []int
	for at := &p.Leaf; at != nil; at = c.d.Nodes[*at].Parent {
		part := make([]int, len(c.d.Nodes[*at].Mask))
		for i, bit := range c.d.Nodes[*at].Mask {
			if bit {
				part[i] = 1
			}
		}
		mask = append(part, mask...)
	}
	if len(mask) == 0 { // of text alone
		return
	}
	action, trains := 0, 0
	for _, t := range p.Turns {
		if t.Start < 0 || t.End < t.Start || t.End > len(mask) {
			c.say(field+".turns", "spans [%d, %d) of %d tokens", t.Start, t.End, len(mask))
			return
		}
		action += t.End - t.Start
		for _, bit := range mask[t.Start:t.End] {
			trains += bit
		}
	}
	all := 0
	for _, bit := range mask {
		all += bit
	}
	if action != p.NAction || trains != all {
		c.say(field+".n_action", "is %d with %d tokens in turns, of which %d train; the path trains %d", p.NAction, action, trains, all)
	}
	st := *c.st
	st.Segment, st.Rewards = p.Segment, p.Rewards
	inner := docCheck{rep: c.rep, n: c.n, d: c.d, st: &st}
	for i, g := range st.Guard {
		if g.Segment == p.Segment && g.End > len(mask) {
			c.say(fmt.Sprintf("proctor.guard[%d]", i), "ends at token %d of %d", g.End, len(mask))
			continue
		}
		inner.policy(i, g, 0, mask)
	}
}
