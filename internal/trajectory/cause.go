package trajectory

import (
	"slices"
	"strings"
)

// minSummary is the length in bytes from which an answer that a later prompt holds counts as the
// summary that it goes on from; shorter ones ("ok") are met by chance.
const minSummary = 24

// cause says why a call begins a segment of its own, and which it left, nil for none. It is a reading
// of the messages alone.
func (b *builder) cause(c *ModelCall, h *head) (string, *head) {
	recent := b.recent()
	if recent == nil {
		return CauseRoot, nil
	}
	msgs := b.msgs(c)
	if h.pool != "" {
		if twin := b.twin(h.pool, msgs); twin != nil {
			return CauseRetry, twin
		}
		return CauseSubagent, recent
	}
	if twin := b.twin(h.pool, msgs); twin != nil {
		return CauseRetry, twin
	}
	near, common := b.nearest(msgs)
	switch {
	case near != nil && b.extends(msgs, b.msgs(near.last())):
		return CauseDrift, near
	case b.summarised(msgs[common:]):
		return CauseCompaction, recent
	case near == nil || !b.sharesTask(msgs[:common]) || b.key(near.calls[0].Tools) != b.key(c.Tools):
		return CauseSubagent, recent
	case len(msgs) < len(near.last().Messages):
		return CauseCompaction, near
	}
	return CauseRewrite, near
}

// recent gives the head of the agent's own that grew last.
func (b *builder) recent() *head {
	var at *head
	for _, h := range b.heads {
		if h.pool == "" && h.seg.Kind != KindSubagent && (at == nil || h.last().Ordinal > at.last().Ordinal) {
			at = h
		}
	}
	return at
}

// twin gives the head that has a call with these very messages.
func (b *builder) twin(pool string, msgs []msgKey) *head {
	for _, h := range slices.Backward(b.heads) {
		if h.pool != pool {
			continue
		}
		for _, c := range slices.Backward(h.calls) {
			if len(msgs) > 0 && len(c.Messages) == len(msgs) && slices.Equal(b.msgs(c), msgs) {
				return h
			}
		}
	}
	return nil
}

// nearest gives the head of the agent's own whose prompt begins like msgs for longest, and how long;
// of equals the one that grew last.
func (b *builder) nearest(msgs []msgKey) (*head, int) {
	var near *head
	most := 0
	for _, h := range b.heads {
		if h.pool != "" {
			continue
		}
		n, theirs := 0, b.msgs(h.last())
		for n < len(msgs) && n < len(theirs) && msgs[n] == theirs[n] {
			n++
		}
		if n > most || n == most && near != nil && h.last().Ordinal > near.last().Ordinal {
			near, most = h, n
		}
	}
	return near, most
}

// sharesTask says whether the common beginning holds a message of the user: the same conversation.
// A system message alone may be shared by sub-agents.
func (b *builder) sharesTask(common []msgKey) bool {
	return slices.ContainsFunc(common, func(k msgKey) bool { return b.parsed[k].Role == "user" })
}

// summarised says whether new messages of a prompt hold the last answer of some segment, other than as an
// assistant's message: a summary. That turn is then marked as one.
func (b *builder) summarised(msgs []msgKey) bool {
	for _, h := range b.heads {
		last := h.last()
		if last.Kind == KindAux && last.Declared {
			continue
		}
		text := strings.TrimSpace(b.parsed[b.key(last.Output)].Content)
		if len(text) < minSummary {
			continue
		}
		for _, k := range msgs {
			m := b.parsed[k]
			if (m.Role == "user" || m.Role == "system") && strings.Contains(m.Content, text) {
				t := &h.seg.Turns[len(h.seg.Turns)-1]
				if t.Kind == KindAction {
					t.Kind = KindSummary
				}
				b.conts[last] = true // the agent goes on from it
				return true
			}
		}
	}
	return false
}
