package trajtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"proctor/internal/trajectory"
)

// Random plays n steps, each drawn: turns, retries, hang-ups, compactions, sub-agents, rewrites,
// drift, aux calls. Expect says how each call must come out.
func Random(seed uint64, n int) *Play {
	p := New(seed)
	fresh := trajectory.CauseRoot // why the next turn begins a segment, "" where it goes on
	turn := func(trained bool, change ...func(*trajectory.ModelCall)) {
		c, _ := p.Turn(fmt.Sprintf("ls %d", p.rng.IntN(1000)), strings.Repeat("file\n", 1+p.rng.IntN(4)), change...)
		p.Expect[c.Ordinal] = Want{fresh, trained}
		fresh = ""
	}
	turn(true)
	for range n {
		switch p.rng.IntN(12) {
		case 0:
			p.hangUp(fresh)
			fresh = trajectory.CauseRetry
		case 1:
			p.summarise(fresh)
			fresh = trajectory.CauseCompaction
		case 2:
			p.subagent(1 + p.rng.IntN(3))
		case 3:
			if fresh == "" && p.rewrite() {
				fresh = trajectory.CauseRewrite
			}
		case 4:
			if fresh == "" && len(p.Messages) > 3 {
				p.Drift()
				fresh = trajectory.CauseDrift
				turn(true) // the next one goes on with the segment before: its tokens are right again
			}
		case 5:
			p.aux()
		default:
			turn(true)
			continue
		}
		turn(true)
	}
	return p
}

// hangUp samples an answer that the client never takes.
func (p *Play) hangUp(cause string) {
	answer, _ := p.Bash("Never seen.", "true")
	c := p.Sample(answer, func(c *trajectory.ModelCall) {
		c.Disconnected, c.FinishReason = true, ""
		cut := 1 + p.rng.IntN(len(c.OutputIDs)-1)
		c.OutputIDs, c.Logprobs = c.OutputIDs[:cut], c.Logprobs[:cut]
	})
	p.Expect[c.Ordinal] = Want{cause, false}
}

// summarise asks for a summary and begins the history anew with it.
func (p *Play) summarise(cause string) {
	kept := p.Messages[:2]
	p.Messages = append(slices.Clone(p.Messages), Msg("user", "Summarise the work so far."))
	summary := fmt.Sprintf("Summary %d of the work: merge.py was read and %d tests fail.", len(p.Calls), p.rng.IntN(50))
	c := p.Sample(Msg("assistant", summary))
	p.Expect[c.Ordinal] = Want{cause, true}
	p.Messages = []json.RawMessage{kept[0], kept[1], Msg("user", "So far: "+summary)}
}

// subagent plays another conversation beside this one.
func (p *Play) subagent(turns int) {
	history := p.Messages
	p.Messages = []json.RawMessage{Msg("system", "You search files."), Msg("user", fmt.Sprintf("Find where %d is used.", len(p.Calls)))}
	for i := range turns {
		c, _ := p.Turn(fmt.Sprintf("grep -rn %d .", i), "none\n")
		want := Want{"", true}
		if i == 0 {
			want.Cause = trajectory.CauseSubagent
		}
		p.Expect[c.Ordinal] = want
	}
	p.Messages = history
}

// rewrite edits a tool output in the history, as harnesses do that drop old outputs. False where there
// is none that the model has seen.
func (p *Play) rewrite() bool {
	p.Messages = slices.Clone(p.Messages)
	for i, m := range p.Messages {
		old, err := trajectory.ParseMessage(m)
		if err != nil {
			panic(err)
		}
		if old.Role != "tool" || i == len(p.Messages)-1 {
			continue
		}
		p.Messages[i], err = json.Marshal(map[string]string{"role": "tool", "tool_call_id": old.ToolCallID, "content": fmt.Sprintf("(output %d left out, as it is long)", len(p.Calls))})
		if err != nil {
			panic(err)
		}
		return true
	}
	return false
}

// aux asks for a title, which never trains.
func (p *Play) aux() {
	history := p.Messages
	p.Messages = []json.RawMessage{Msg("user", fmt.Sprintf("Title of step %d, please.", len(p.Calls)))}
	c := p.Sample(Msg("assistant", "A title."), func(c *trajectory.ModelCall) { c.Kind, c.Declared = trajectory.KindAux, true })
	p.Expect[c.Ordinal] = Want{trajectory.CauseSubagent, false}
	p.Messages = history
}
