// Package demo runs a group of scripted policies, honest ones and one per kind of cheat, over the
// real HTTP endpoint, each cheat also in a twin rollout without monitor and hardening, and reports
// call by call what each was shown and what its twin saw.
package demo

import (
	"context"
	"fmt"
	"strings"

	"proctor/internal/client"
	"proctor/monitor"
)

// Policy is a scripted agent: a list of calls with reactions to what it is shown.
type Policy struct {
	Name  string
	About string // one line for the table
	Class string // what it tries, "" for an honest one
	Play  func(p *Player)
}

// Player plays a policy against one rollout through the agent plane. It stops at the first error
// of the server: from then on every call is a no-op and Err says why.
type Player struct {
	ctx    context.Context
	client *client.Client
	id     string
	token  string
	steps  []Step
	err    error
}

// Step is one call that a policy made.
type Step struct {
	CallID string
	Key    string // names an attempt, the same in the twin; "" for a call that tries nothing
	Class  string
	Text   string // the command, or the file tool and its path
	Shown  monitor.Observation
}

// Shown is what a policy looks at when it reacts.
type Shown struct {
	Text string
	OK   bool // exit code 0
}

// Has reports whether the output holds text.
func (s Shown) Has(text string) bool { return strings.Contains(s.Text, text) }

// Bash runs a command.
func (p *Player) Bash(command string) Shown {
	return p.call("", "", "bash", map[string]any{"command": command, "timeout_s": 60}, command)
}

// Try runs a command that attempts a cheat of class; key names the attempt.
func (p *Player) Try(class, key, command string) Shown {
	return p.call(class, key, "bash", map[string]any{"command": command, "timeout_s": 60}, command)
}

// View shows a file.
func (p *Player) View(path string) Shown {
	return p.call("", "", "view", map[string]any{"path": path}, "view "+path)
}

// Replace edits a file.
func (p *Player) Replace(path, old, text string) Shown {
	return p.call("", "", "str_replace", map[string]any{"path": path, "old_str": old, "new_str": text}, "str_replace "+path)
}

// TryReplace is an edit that attempts a cheat.
func (p *Player) TryReplace(class, key, path, old, text string) Shown {
	return p.call(class, key, "str_replace", map[string]any{"path": path, "old_str": old, "new_str": text}, "str_replace "+path+"\n"+text)
}

// Create writes a file.
func (p *Player) Create(path, text string) Shown {
	return p.call("", "", "create", map[string]any{"path": path, "file_text": text}, "create "+path)
}

// TryCreate writes a file that attempts a cheat.
func (p *Player) TryCreate(class, key, path, text string) Shown {
	return p.call(class, key, "create", map[string]any{"path": path, "file_text": text}, "create "+path+"\n"+text)
}

// call makes one call and notes it.
func (p *Player) call(class, key, tool string, arguments map[string]any, text string) Shown {
	if p.err != nil {
		return Shown{}
	}
	callID := fmt.Sprintf("c%d", len(p.steps)+1)
	seen, err := p.client.Call(p.ctx, p.id, p.token, callID, tool, arguments, "Idempotency-Key", callID)
	if err != nil {
		p.err = fmt.Errorf("call %s (%s): %w", callID, tool, err)
		return Shown{}
	}
	p.steps = append(p.steps, Step{CallID: callID, Key: key, Class: class, Text: text, Shown: seen})
	return Shown{Text: seen.Output, OK: seen.ExitCode != nil && *seen.ExitCode == 0}
}
