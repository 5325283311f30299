// Package replay runs the calls of a recorded trajectory again in a sandbox, and tells where the
// observations differ from the recorded ones: to see whether a record can be believed, what a
// change of image or rules changes, or what the monitor would have shown.
package replay

import (
	"context"
	"fmt"
	"strings"

	"proctor/internal/client"
	"proctor/internal/traces"
	"proctor/monitor"
)

// Player replays on one rollout.
type Player struct {
	Client *client.Client
	ID     string // the rollout's
	Token  string // its agent token
	Masks  []Mask
	Fresh  bool // run every command in a shell of its own, as the trace's harness did
}

// Report is what a replay found. The keys are stable.
type Report struct {
	Trajectory string `json:"trajectory"`
	Rollout    string `json:"rollout"`
	Mode       string `json:"mode"`
	Calls      int    `json:"calls"`
	Same       int    `json:"same"`
	Different  int    `json:"different"`
	Blind      int    `json:"blind"`  // calls whose observation the record does not hold
	Failed     int    `json:"failed"` // calls that could not be made
	Detail     []Call `json:"detail"` // those that differ or failed
}

// Call is a call whose replay differs.
type Call struct {
	Ordinal  int    `json:"ordinal"`
	Tool     string `json:"tool"`
	Text     string `json:"text"`
	Recorded string `json:"recorded"`
	Shown    string `json:"shown"`
	Diff     string `json:"diff"` // recorded to shown, after masks
	Error    string `json:"error,omitempty"`
	Action   string `json:"action,omitempty"` // what the monitor did: executed, filtered, decoyed
	Class    string `json:"class,omitempty"`
}

// Play makes all calls of a trace, in order. The error is ctx's or the server's; a call that does not
// fit its tool is in the report.
func (p *Player) Play(ctx context.Context, t *traces.Trace, say func(done, all int)) (*Report, error) {
	out := &Report{Trajectory: t.ID, Rollout: p.ID, Detail: []Call{}}
	for i := range t.Calls {
		c := &t.Calls[i]
		out.Calls++
		seen, err := p.call(ctx, i, c)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		d := Call{Ordinal: i + 1, Tool: c.Tool, Text: text(c), Recorded: c.Output, Shown: seen.Output}
		switch {
		case err != nil:
			if fatal(err) {
				return out, err
			}
			out.Failed++
			d.Error = err.Error()
			out.Detail = append(out.Detail, d)
		case !c.Shown:
			out.Blind++
		case p.same(c, seen):
			out.Same++
		default:
			out.Different++
			d.Diff = Diff(mask(c.Output, p.Masks), mask(seen.Output, p.Masks))
			if d.Diff == "" && c.Exit != nil {
				d.Diff = fmt.Sprintf("exit status %d, now %s", *c.Exit, exit(seen))
			}
			out.Detail = append(out.Detail, d)
		}
		if say != nil {
			say(i+1, len(t.Calls))
		}
	}
	return out, p.verdicts(ctx, out)
}

// call makes one call: the agent's with its token, the harness's with the trainer's key.
func (p *Player) call(ctx context.Context, i int, c *traces.Call) (monitor.Observation, error) {
	token, args := p.Token, c.Arguments
	if c.Harness {
		token = ""
	}
	if command, ok := args["command"].(string); ok && p.Fresh && c.Tool == "bash" {
		args = map[string]any{"command": "(" + command + "\n)"}
	}
	return p.Client.Call(ctx, p.ID, token, fmt.Sprint(i+1), c.Tool, args, "Idempotency-Key", fmt.Sprintf("replay-%d", i+1))
}

func (p *Player) same(c *traces.Call, seen monitor.Observation) bool {
	if c.Exit != nil && (seen.ExitCode == nil || *seen.ExitCode != *c.Exit) {
		return false
	}
	return mask(c.Output, p.Masks) == mask(seen.Output, p.Masks)
}

// verdicts notes what the monitor did about the calls that differ.
func (p *Player) verdicts(ctx context.Context, out *Report) error {
	t, err := p.Client.Trajectory(ctx, p.ID)
	if err != nil {
		return err
	}
	out.Mode = t.Rollout.Mode
	for i := range out.Detail {
		for _, rec := range t.Calls {
			if rec.CallID == fmt.Sprint(out.Detail[i].Ordinal) {
				out.Detail[i].Action, out.Detail[i].Class = rec.Verdict.Action, rec.Verdict.Class
			}
		}
	}
	return nil
}

func exit(o monitor.Observation) string {
	if o.ExitCode == nil {
		return "none"
	}
	return fmt.Sprint(*o.ExitCode)
}

func text(c *traces.Call) string {
	if s, ok := c.Arguments["command"].(string); ok {
		return s
	}
	s, _ := c.Arguments["path"].(string)
	return strings.TrimSpace(c.Tool + " " + s)
}
