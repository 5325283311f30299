package trajectory

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

// Build cuts the model calls of a rollout, in their order, into segments.
//
// A call goes on with a segment if its prompt begins with all of that segment's tokens, sampled ones
// included; the longest such segment wins. Any other call begins a new one, in which what came before
// is prompt: its tokens are sampled, and trained, where they were sampled and nowhere else. Why a
// segment begins is read from the messages (cause.go); no wrong guess there can touch a mask.
//
// Calls without token ids are joined by their messages and give segments without arrays. Calls that
// were not answered (no output) give none.
func Build(calls []*ModelCall) []*Segment { return build(calls, false) }

// build is Build; eager reads every message, needed or not, for a test that holds one against the other.
func build(calls []*ModelCall, eager bool) []*Segment {
	b := builder{eager: eager, longest: longest(calls), keys: map[string]msgKey{}, parsed: map[msgKey]Message{}, asked: map[*ModelCall][]msgKey{}, conts: map[*ModelCall]bool{}}
	for _, c := range calls {
		if len(c.Output) == 0 && len(c.OutputIDs) == 0 {
			continue
		}
		b.add(c)
	}
	b.supersede()
	segments := make([]*Segment, 0, len(b.heads))
	for _, h := range b.heads {
		h.mask()
		segments = append(segments, h.seg)
	}
	count(segments)
	return segments
}

// longest gives how many tokens the longest call has, answer included.
func longest(calls []*ModelCall) int {
	n := 0
	for _, c := range calls {
		n = max(n, len(c.PromptIDs)+len(c.OutputIDs))
	}
	return n
}

type msgKey [16]byte

// head is a segment that may go on.
type head struct {
	seg   *Segment
	pool  string // calls of other pools never go on with it
	calls []*ModelCall
}

func (h *head) last() *ModelCall { return h.calls[len(h.calls)-1] }

// builder names messages only where it compares them: a rollout whose prompts go on token by token, which
// nearly all do, never reads its messages, and those are most of its bytes.
type builder struct {
	eager   bool
	longest int // tokens of the longest call
	heads   []*head
	keys    map[string]msgKey
	parsed  map[msgKey]Message
	asked   map[*ModelCall][]msgKey // the messages of those calls that were compared
	// conts are the calls whose sampled tokens a later prompt holds.
	conts map[*ModelCall]bool
}

// poolOf keeps declared sub-agents and aux calls apart from the agent's own.
func poolOf(c *ModelCall) string {
	if c.Kind == KindSubagent || c.Kind == KindAux {
		return c.Kind
	}
	return ""
}

func (b *builder) add(c *ModelCall) {
	if b.eager {
		b.msgs(c)
	}
	if h := b.continued(c); h != nil {
		b.conts[h.last()] = true
		h.extend(c)
		return
	}
	h := &head{pool: poolOf(c)}
	cause, parent := b.cause(c, h)
	h.seg = &Segment{
		ID: fmt.Sprintf("s%d", len(b.heads)), Order: len(b.heads), Kind: kindOf(c, cause), Cause: cause, TextOnly: c.TextOnly,
		Tokens: []int32{}, Logprobs: []float64{}, ActionMask: []int8{}, LossMask: []int8{}, Turns: []Turn{}, BlockedTurns: []int{},
	}
	if len(b.heads) == 0 { // the root mostly grows to be the whole
		h.seg.room(b.longest)
	}
	if parent != nil {
		h.seg.Parent = &parent.seg.ID
		if cause == CauseDrift {
			b.conts[parent.last()] = true
		}
	}
	h.extend(c)
	b.heads = append(b.heads, h)
}

func kindOf(c *ModelCall, cause string) string {
	if cause == CauseSubagent && !c.Declared {
		return KindSubagent
	}
	return c.Kind
}

// continued gives the head that c goes on from, nil for none.
func (b *builder) continued(c *ModelCall) *head {
	var best *head
	longest := -1
	for _, h := range slices.Backward(b.heads) {
		if h.pool != poolOf(c) || (c.TextOnly == "") != h.seg.HasTokens() {
			continue
		}
		if c.TextOnly != "" {
			if n := len(h.last().Messages); n > longest && b.extends(b.msgs(c), b.msgs(h.last())) {
				best, longest = h, n
			}
			continue
		}
		if n := len(h.seg.Tokens); n > longest && n <= len(c.PromptIDs) && slices.Equal(h.seg.Tokens, c.PromptIDs[:n]) {
			best, longest = h, n
		}
	}
	return best
}

// extends says whether c's messages begin with those of an earlier prompt and go on with an answer to it.
func (b *builder) extends(msgs, earlier []msgKey) bool {
	n := len(earlier)
	return len(msgs) > n && slices.Equal(msgs[:n], earlier) && b.parsed[msgs[n]].Role == "assistant"
}

// extend adds a call to its segment.
func (h *head) extend(c *ModelCall) {
	s := h.seg
	t := Turn{Index: len(s.Turns), ModelCall: c.Ordinal, Kind: c.Kind, FinishReason: c.FinishReason,
		VersionStart: c.VersionStart, VersionEnd: c.VersionEnd, ToolCalls: []string{}}
	if s.Kind == KindSubagent {
		t.Kind = KindSubagent
	}
	if m, err := c.Said(); err == nil {
		for _, call := range m.ToolCalls {
			t.ToolCalls = append(t.ToolCalls, call.ID)
		}
	}
	if s.HasTokens() {
		s.grow(c.PromptIDs[len(s.Tokens):], nil, 0)
		t.Start = len(s.Tokens)
		s.grow(c.OutputIDs, c.Logprobs, 1)
		t.End = len(s.Tokens)
	}
	s.Turns = append(s.Turns, t)
	h.calls = append(h.calls, c)
}

// grow appends ids; those that were not sampled have no logprobs.
func (s *Segment) grow(ids []int32, logprobs []float64, action int8) {
	s.Tokens = append(s.Tokens, ids...)
	n := len(s.ActionMask)
	s.ActionMask = slices.Grow(s.ActionMask, len(ids))[:n+len(ids)]
	for i := range ids {
		s.ActionMask[n+i] = action
	}
	if logprobs != nil {
		s.Logprobs = append(s.Logprobs, logprobs...)
		return
	}
	n = len(s.Logprobs)
	s.Logprobs = slices.Grow(s.Logprobs, len(ids))[:n+len(ids)]
	clear(s.Logprobs[n:])
}

// room makes room for a segment of n tokens, so that growing does not copy it over and over.
func (s *Segment) room(n int) {
	s.Tokens, s.Logprobs, s.ActionMask = make([]int32, 0, n), make([]float64, 0, n), make([]int8, 0, n)
}

// supersede marks the turns whose answers the agent never acted on: the client hung up before it had
// the whole answer and no later prompt holds it, or the same prompt was sampled again and another
// answer was taken. Where none was taken yet, the last whole one counts.
func (b *builder) supersede() {
	type place struct {
		h *head
		i int
	}
	// Prompts that are the same have the same pool and lengths: only those that share them are read.
	type size struct {
		pool          string
		messages, ids int
	}
	alike := map[size][]place{}
	for _, h := range b.heads {
		for i, c := range h.calls {
			k := size{h.pool, len(c.Messages), 0}
			if len(c.Messages) == 0 {
				k.ids = len(c.PromptIDs)
			}
			alike[k] = append(alike[k], place{h, i})
		}
	}
	same := map[msgKey][]place{}
	var groups [][]place
	for _, places := range alike {
		if len(places) == 1 && !b.eager {
			groups = append(groups, places)
			continue
		}
		for _, p := range places {
			key := promptKey(p.h.pool, p.h.calls[p.i], b.msgs(p.h.calls[p.i]))
			same[key] = append(same[key], p)
		}
	}
	for _, places := range same {
		groups = append(groups, places)
	}
	for _, places := range groups {
		taken := -1
		for i, p := range places {
			c := p.h.calls[p.i]
			if b.conts[c] || (!c.Disconnected && (taken < 0 || !b.conts[places[taken].h.calls[places[taken].i]])) {
				taken = i
			}
		}
		for i, p := range places {
			c := p.h.calls[p.i]
			tokens := p.i+1 < len(p.h.calls) // a later prompt holds them token by token
			p.h.seg.Turns[p.i].Superseded = i != taken && !tokens || c.Disconnected && !tokens
		}
	}
}

// promptKey names a prompt by its messages, or by its ids where it has none.
func promptKey(pool string, c *ModelCall, msgs []msgKey) msgKey {
	h := sha256.New()
	h.Write([]byte(pool))
	for _, k := range msgs {
		h.Write(k[:])
	}
	if len(msgs) == 0 {
		for _, id := range c.PromptIDs {
			h.Write([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
		}
	}
	return msgKey(h.Sum(nil)[:16])
}

// mask sets the loss mask.
func (h *head) mask() {
	s := h.seg
	s.LossMask = slices.Clone(s.ActionMask)
	if s.LossMask == nil {
		s.LossMask, s.ActionMask = []int8{}, []int8{}
	}
	for _, t := range s.Turns {
		if t.Superseded || t.Kind == KindAux {
			clear(s.LossMask[t.Start:t.End])
		}
	}
}

// msgs names the messages of a call.
func (b *builder) msgs(c *ModelCall) []msgKey {
	keys, ok := b.asked[c]
	if !ok {
		keys = make([]msgKey, len(c.Messages))
		for i, m := range c.Messages {
			keys[i] = b.key(m)
		}
		b.asked[c] = keys
	}
	return keys
}

// key names a message by meaning. Histories repeat, so that most are found by their bytes.
func (b *builder) key(m json.RawMessage) msgKey {
	if k, ok := b.keys[string(m)]; ok {
		return k
	}
	sum := sha256.Sum256(canonical(m))
	k := msgKey(sum[:16])
	b.keys[string(m)] = k
	if parsed, err := ParseMessage(m); err == nil {
		b.parsed[k] = parsed
	}
	return k
}
