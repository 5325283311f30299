package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"proctor/monitor/decoy"
	"proctor/rules"
	"proctor/sandbox"
)

// ResultMatcher is what a Matcher may also be: it matches the rules of the second phase, on what
// came out.
type ResultMatcher interface {
	MatchResult(ev *rules.Event) []rules.Hit
}

// review is the result phase: rules on what came out, then the observation. A late block replaces
// the observation and marks the rollout tainted, since variables and copies keep what was seen.
func (g *Gate) review(ctx context.Context, p *passage, result sandbox.Result) {
	rec := p.rec
	real := result
	result = g.reword(p, result)
	shown := observe(p.call, result)
	if rec.Verdict.Action == Executed || rec.Verdict.Action == Filtered {
		original := observe(p.call, real)
		rec.Original = &original
	}
	rec.Observation = &shown
	if note := rec.Verdict.Decoy; note != nil {
		note.SHA256 = hash(result.Output)
	}
	g.lateBlock(ctx, p, result)
}

// lateBlock asks the second-phase rules, and where one is confirmed in mode Enforce, answers anew.
func (g *Gate) lateBlock(ctx context.Context, p *passage, result sandbox.Result) {
	matcher, ok := g.Rules.(ResultMatcher)
	own := p.answer != nil && p.answer.Own
	if !ok || g.silent(p.call) || p.answer != nil && !p.answer.Run {
		return
	}
	proof := g.prove(p, result)
	if p.rec.Verdict.Action == Decoyed && !own && proof.none() {
		return
	}
	p.event.Result = proof.facts(result)
	defer func() { p.event.Result = nil }()
	hits := matcher.MatchResult(&p.event)
	if len(hits) == 0 {
		return
	}
	before := p.rec.Verdict.Decision
	if own || !proof.none() {
		before = Allow // its own words, and a decoy's, stand only while nothing speaks against them
	}
	p.hits = hits
	p.rec.Verdict.Hits = append(p.rec.Verdict.Hits, hits...)
	g.decide(ctx, p)
	if p.rec.Verdict.Decision != Block || before == Block {
		return
	}
	p.rec.Verdict.Tainted = proof.none() || proof.learned()
	if g.Mode != Enforce || g.Decoys == nil || !proof.none() && !proof.shows(p) {
		return
	}
	if p.rec.Original == nil {
		p.rec.Original = p.rec.Observation
	}
	answer, told := g.told(&p.rec.Verdict)
	if !told {
		ev, hits := blamed(p.event, hits, proof.opened)
		answer = g.Decoys.Answer(ctx, decoy.Request{Ordinal: p.rec.Ordinal, Tool: p.call.Name, Call: p.call.Box, Event: ev, Hits: hits, Late: true})
	}
	if answer.Result.Exit == nil { // too late to run anything: the output alone is replaced
		answer.Result.Exit = result.Exit
	}
	answer.Result.Started = result.Started
	command := p.rec.BoxCommand
	p.take(&answer)
	p.rec.BoxCommand, p.rec.Verdict.Decoy.How = command, HowWhole // what ran has run
	shown := observe(p.call, answer.Result)
	p.rec.Observation = &shown
	p.rec.Verdict.Decoy.SHA256 = hash(answer.Result.Output)
}

// observe gives the six fields that the agent is shown. Text is valid UTF-8: each invalid byte
// sequence becomes U+FFFD.
func observe(call Call, r sandbox.Result) Observation {
	o := Observation{CallID: call.ID, Output: text(r.Output), ExitCode: r.Exit, TimedOut: r.TimedOut, Truncated: r.Truncated}
	if r.Handle != "" {
		o.Handle = &r.Handle
	}
	if call.Base64 {
		enc := base64.StdEncoding.EncodeToString(r.Output)
		o.Base64 = &enc
	}
	return o
}

// text gives b as valid UTF-8.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// hash gives the SHA-256 of b in hex.
func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ArgsSHA256 pins what a call asked for (the tool, its arguments, the encoding), to tell a retry from
// another call under the same key; Record.ArgsSHA256 holds it.
func ArgsSHA256(call Call) string {
	enc := ""
	if call.Base64 {
		enc = "base64"
	}
	return hash([]byte(call.Name + "\x00" + string(call.Arguments) + "\x00" + enc))
}

// rawText is the call as text, for an event that could not be made.
func rawText(call Call) string {
	f := call.Facts
	return strings.Join([]string{f.Command, f.Text, f.Path, f.File, f.Old, f.New}, "\n")
}

// historyLine gives a call in one line, at most 400 bytes, for a judge's context.
func historyLine(call Call, ev rules.Event) string {
	var lines []string
	for _, c := range ev.Commands {
		lines = append(lines, c.Line)
	}
	line := strings.Join(lines, "; ")
	if line == "" {
		line = call.Name + " " + call.Facts.Path
	}
	if len(line) > 400 {
		line = strings.ToValidUTF8(line[:400], "") + "..."
	}
	return line
}
