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
func Build(calls []*ModelCall) []*Segment {
	b := builder{keys: map[string]msgKey{}, parsed: map[msgKey]Message{}, conts: map[*ModelCall]bool{}}
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

type msgKey [16]byte

// head is a segment that may go on.
type head struct {
	seg   *Segment
	pool  string // calls of other pools never go on with it
	calls []*ModelCall
	asked [][]msgKey // the messages of each call
	tools msgKey
}

func (h *head) last() *ModelCall { return h.calls[len(h.calls)-1] }
func (h *head) msgs() []msgKey   { return h.asked[len(h.asked)-1] }

type builder struct {
	heads  []*head
	keys   map[string]msgKey
	parsed map[msgKey]Message
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
	msgs := b.keysOf(c.Messages)
	if h := b.continued(c, msgs); h != nil {
		b.conts[h.last()] = true
		h.extend(c, msgs)
		return
	}
	h := &head{pool: poolOf(c), tools: b.key(c.Tools)}
	cause, parent := b.cause(c, msgs, h)
	h.seg = &Segment{
		ID: fmt.Sprintf("s%d", len(b.heads)), Order: len(b.heads), Kind: kindOf(c, cause), Cause: cause, TextOnly: c.TextOnly,
		Tokens: []int32{}, Logprobs: []float64{}, ActionMask: []int8{}, LossMask: []int8{}, Turns: []Turn{}, BlockedTurns: []int{},
	}
	if parent != nil {
		h.seg.Parent = &parent.seg.ID
		if cause == CauseDrift {
			b.conts[parent.last()] = true
		}
	}
	h.extend(c, msgs)
	b.heads = append(b.heads, h)
}

func kindOf(c *ModelCall, cause string) string {
	if cause == CauseSubagent && !c.Declared {
		return KindSubagent
	}
	return c.Kind
}

// continued gives the head that c goes on from, nil for none.
func (b *builder) continued(c *ModelCall, msgs []msgKey) *head {
	var best *head
	longest := -1
	for _, h := range slices.Backward(b.heads) {
		if h.pool != poolOf(c) || (c.TextOnly == "") != h.seg.HasTokens() {
			continue
		}
		if c.TextOnly != "" {
			if len(h.msgs()) > longest && b.extends(msgs, h.msgs()) {
				best, longest = h, len(h.msgs())
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
func (h *head) extend(c *ModelCall, msgs []msgKey) {
	s := h.seg
	t := Turn{Index: len(s.Turns), ModelCall: c.Ordinal, Kind: c.Kind, FinishReason: c.FinishReason,
		VersionStart: c.VersionStart, VersionEnd: c.VersionEnd, ToolCalls: []string{}}
	if s.Kind == KindSubagent {
		t.Kind = KindSubagent
	}
	if m, err := ParseMessage(c.Output); err == nil {
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
	h.calls, h.asked = append(h.calls, c), append(h.asked, msgs)
}

// grow appends ids; those that were not sampled have no logprobs.
func (s *Segment) grow(ids []int32, logprobs []float64, action int8) {
	s.Tokens = append(s.Tokens, ids...)
	if logprobs == nil {
		logprobs = make([]float64, len(ids))
	}
	s.Logprobs = append(s.Logprobs, logprobs...)
	for range ids {
		s.ActionMask = append(s.ActionMask, action)
	}
}

// supersede marks the turns whose answers the agent never acted on: the client hung up before it had
// the whole answer and no later prompt holds it, or the same prompt was sampled again and another
// answer was taken. Where none was taken yet, the last whole one counts.
func (b *builder) supersede() {
	type place struct {
		h *head
		i int
	}
	same := map[msgKey][]place{}
	for _, h := range b.heads {
		for i, c := range h.calls {
			key := promptKey(h.pool, c, h.asked[i])
			same[key] = append(same[key], place{h, i})
		}
	}
	for _, places := range same {
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

func (b *builder) keysOf(messages []json.RawMessage) []msgKey {
	keys := make([]msgKey, len(messages))
	for i, m := range messages {
		keys[i] = b.key(m)
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
