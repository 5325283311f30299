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
			if m, err := trajectory.ParseMessage(c.Output); err == nil {
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
		l.value("group_index", nil).value("index", s.Order).value("prompt", prompt).ids("tokens", s.Tokens)
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

// verifiers writes a row of results a rollout, with its turns as the trajectory.
func (w *writer) verifiers(each func(Document) error) error {
	var whole *trajectory.Segment
	if own := w.own(); len(own) > 0 {
		whole = own[len(own)-1]
	}
	messages, _ := w.chat(whole)
	first := 0
	for first < len(messages) {
		if m, err := trajectory.ParseMessage(messages[first]); err != nil || m.Role == "assistant" {
			break
		}
		first++
	}
	var l line
	l.value("example_id", w.Seed).value("prompt", messages[:first]).value("completion", messages[first:]).value("answer", "")
	l.value("task", w.TaskID).value("reward", w.Reward).value("metrics", w.figures())
	l.value("is_completed", w.EndedAt != nil).value("is_truncated", whole != nil && truncated(whole)).value("stop_condition", w.StopReason)
	l.value("error", failureText(w.FailureClass)).value("timing", w.timing())
	l.object("info", func(m *line) { m.value("proctor", w.stamp(nil)) })
	l.key("trajectory")
	l.b = append(l.b, '[')
	for _, s := range w.Segments {
		for i := range s.Turns {
			w.step(&l, s, i)
		}
	}
	l.b = append(l.b, ']')
	return emit(each, w.ID+".json", &l)
}

// step appends one turn as a step of verifiers' trajectory.
func (w *writer) step(l *line, s *trajectory.Segment, i int) {
	if l.b[len(l.b)-1] != '[' {
		l.b = append(l.b, ',')
	}
	t := s.Turns[i]
	prompt, completion := []json.RawMessage{}, []json.RawMessage{}
	if c := w.byCall[t.ModelCall]; c != nil {
		prompt, completion = c.Messages, []json.RawMessage{c.Output}
	}
	step := line{b: append(l.b, '{')}
	step.value("prompt", prompt).value("completion", completion).value("response", nil)
	if s.HasTokens() {
		step.object("tokens", func(m *line) {
			m.ids("prompt_ids", s.Tokens[:t.Start]).bits("prompt_mask", make([]int8, t.Start)).ids("completion_ids", s.Tokens[t.Start:t.End])
			m.bits("completion_mask", s.LossMask[t.Start:t.End]).floats("completion_logprobs", s.Logprobs[t.Start:t.End])
			m.value("overlong_prompt", false).value("is_truncated", t.FinishReason == "length")
		})
	} else {
		step.value("tokens", nil)
	}
	step.value("reward", turnReward(s, t)).value("advantage", nil).value("is_truncated", t.FinishReason == "length").value("trajectory_id", w.ID+"."+s.ID)
	step.value("extras", map[string]any{"segment": s.ID, "turn": i, "model_call": t.ModelCall, "kind": t.Kind, "superseded": t.Superseded})
	l.b, l.err = append(step.b, '}'), step.err
}

// turnReward gives the sum of the reward events of a turn, nil for none.
func turnReward(s *trajectory.Segment, t trajectory.Turn) *float64 {
	var sum *float64
	for _, r := range s.Rewards {
		if r.Index >= t.Start && r.Index < t.End {
			if sum == nil {
				sum = new(float64)
			}
			*sum += r.Value
		}
	}
	return sum
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

func (w *writer) timing() map[string]float64 {
	t := map[string]float64{"start_time": float64(w.CreatedAt.UnixMilli()) / 1000, "total_ms": 0}
	if w.EndedAt != nil {
		t["total_ms"] = float64(w.EndedAt.Sub(w.CreatedAt).Milliseconds())
	}
	return t
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
