package export

import (
	"encoding/json"
	"strings"

	"proctor/internal/trajectory"
)

// split gives where a segment's response begins: at its first sampled token.
func split(s *trajectory.Segment) int {
	if len(s.Turns) == 0 {
		return len(s.Tokens)
	}
	return s.Turns[0].Start
}

// texts gives a segment's prompt, as messages, and what was sampled, as text.
func (w *writer) texts(s *trajectory.Segment) (prompt []json.RawMessage, response string) {
	if len(s.Turns) == 0 || w.byCall[s.Turns[0].ModelCall] == nil {
		return []json.RawMessage{enc(map[string]string{"role": "user", "content": w.Instruction})}, ""
	}
	var said []string
	for _, t := range s.Turns {
		if c := w.byCall[t.ModelCall]; c != nil {
			if m, err := c.Said(); err == nil {
				said = append(said, m.Content)
			}
		}
	}
	return w.byCall[s.Turns[0].ModelCall].Messages, strings.Join(said, "\n")
}

// lineFor gives a line with room for a segment: growing one of megabytes copies it many times over.
func lineFor(s *trajectory.Segment) *line {
	const perToken, rest = 16, 16 << 10 // an id, two mask bits, and a logprob where it was sampled
	return &line{b: make([]byte, 0, perToken*len(s.Tokens)+20*s.NAction+rest)}
}

func truncated(s *trajectory.Segment) bool {
	return len(s.Turns) > 0 && s.Turns[len(s.Turns)-1].FinishReason == "length"
}

// slimeStatus is the status of slime's Sample.
func (w *writer) slimeStatus(s *trajectory.Segment) string {
	switch {
	case w.Status == "deleted" || w.FailureClass == "infra":
		return "aborted"
	case truncated(s):
		return "truncated"
	case w.Reward == nil:
		return "failed"
	}
	return "completed"
}

// slime writes a Sample a segment. Its masks and logprobs are of the response alone.
func (w *writer) slime(each func(Document) error) error {
	for _, s := range w.Segments {
		at := split(s)
		prompt, response := w.texts(s)
		l := lineFor(s)
		l.value("group_index", nil).value("index", s.Order).raws("prompt", prompt).ids("tokens", s.Tokens)
		l.value("response", response).value("response_length", len(s.Tokens)-at).value("label", w.TaskID).value("reward", w.Reward)
		l.bits("loss_mask", s.LossMask[at:]).value("weight_versions", s.Versions).floats("rollout_log_probs", s.Logprobs[at:])
		l.value("remove_sample", w.Reward == nil).value("status", w.slimeStatus(s)).value("session_id", w.ID)
		l.object("metadata", func(m *line) {
			m.value("proctor", w.stamp(s)).bits("action_mask", s.ActionMask[at:])
		})
		if err := emit(each, w.ID+"."+s.ID+".json", l); err != nil {
			return err
		}
	}
	return nil
}

// verl writes an AgentLoopOutput a segment.
func (w *writer) verl(each func(Document) error) error {
	for _, s := range w.Segments {
		at := split(s)
		l := lineFor(s)
		l.value("uid", w.uid()).ids("prompt_ids", s.Tokens[:at]).ids("response_ids", s.Tokens[at:]).bits("response_mask", s.LossMask[at:])
		l.floats("response_logprobs", s.Logprobs[at:]).value("reward_score", w.Reward).value("num_turns", len(s.Turns))
		l.value("metrics", map[string]float64{"generate_sequences": w.seconds(s), "tool_calls": w.toolSeconds()})
		l.object("extra_fields", func(m *line) {
			m.value("proctor", w.stamp(s)).bits("action_mask", s.ActionMask[at:])
		})
		if err := emit(each, w.ID+"."+s.ID+".json", l); err != nil {
			return err
		}
	}
	return nil
}

// uid is what verl groups by.
func (w *writer) uid() string {
	if w.GroupID != "" {
		return w.GroupID
	}
	return w.ID
}

func (w *writer) seconds(s *trajectory.Segment) float64 {
	sum := int64(0)
	for _, t := range s.Turns {
		if c := w.byCall[t.ModelCall]; c != nil {
			sum += c.DurationMS
		}
	}
	return float64(sum) / 1000
}

func (w *writer) toolSeconds() float64 {
	sum := int64(0)
	for _, c := range w.Calls {
		if c.Agent {
			sum += c.DurationMS
		}
	}
	return float64(sum) / 1000
}

func (w *writer) figures() map[string]float64 {
	f := map[string]float64{"calls": 0, "blocked": 0, "flagged": 0, "hacks": 0}
	for _, c := range w.Calls {
		if !c.Agent {
			continue
		}
		f["calls"]++
		switch c.Decision {
		case "block":
			f["blocked"]++
		case "flag":
			f["flagged"]++
		}
		if c.Hack {
			f["hacks"]++
		}
	}
	return f
}

func failureText(class string) any {
	if class == "" || class == "none" || class == "model" {
		return nil
	}
	return class
}

// emit hands a finished document on.
func emit(each func(Document) error, name string, l *line) error {
	body, err := l.end()
	if err != nil {
		return err
	}
	return each(Document{name, body})
}
