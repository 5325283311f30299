package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"proctor/judge"
	"proctor/rules"
)

// What is done where the judge is unsure, or fails, or is out.
const (
	OnExecute = string(judge.PolicyExecute) // run the call, flag it
	OnDecoy   = string(judge.PolicyDecoy)   // block it as if it were confirmed
	OnHold    = string(judge.PolicyHold)    // ask again until an answer comes or HoldLimit is over, then as OnDecoy
)

// Policy says which belief leads to which action.
type Policy struct {
	Preset    string        // Balanced (default), Strict, Observe
	Answers   string        // how blocked calls are answered: AnswerDecoy (default), AnswerExplicit
	OnUnsure  string        // the judge answered unsure; default OnExecute
	OnFailure string        // the judge answered garbage or refused; default OnDecoy
	OnOutage  string        // the judge timed out or is down; default OnDecoy
	HoldLimit time.Duration // longest hold; default 2 minutes
	HoldEvery time.Duration // pause between two questions while held; default 2 seconds
}

// decide concludes what policy makes of the hits: allow, flag or block. The judge is asked about
// every hit but those that rest on resolved facts where the pack allows to skip it.
func (g *Gate) decide(ctx context.Context, p *passage) {
	if g.Mode == Off || len(p.hits) == 0 {
		return
	}
	v := &p.rec.Verdict
	if hit, ok := resolvedHit(p.hits, p.event.Call.Asked); ok {
		v.confirm(hit.Class, "resolved facts: "+hit.Rule)
	} else {
		opinion, policy := g.ask(ctx, p)
		v.Opinion, v.Policy = &opinion, policy
		switch {
		case opinion.Verdict == judge.Hack:
			v.confirm(classOf(opinion, p.hits), opinion.Evidence)
		case opinion.Verdict == judge.Benign:
			return
		case policy == OnExecute:
			v.Decision, v.Class = Flag, classOf(opinion, p.hits)
			return
		default:
			v.Class, v.Decision = classOf(opinion, p.hits), Block
			if g.Policy.Preset == Observe || v.onlyWatched() {
				v.Decision = Flag // nothing is blocked, whoever is out
			}
			return
		}
	}
	v.Decision = Flag
	if g.blocks(v.Class, p) {
		v.Decision = Block
	}
}

// confirm marks the verdict a confirmed hack of class.
func (v *Verdict) confirm(class, evidence string) {
	v.Hack, v.Class = true, class
	if evidence != "" {
		v.Evidence = append(v.Evidence, evidence)
	}
}

// confirmed gives the hits of the verdict's class; all of them where none is of it. What hit by the call's wording alone
// names no command or file: it counts only where nothing else hit, so that an answer cuts out no more than what is at fault.
func (v *Verdict) confirmed() []rules.Hit {
	named := slices.DeleteFunc(slices.Clone(v.Hits), rules.Hit.ByWording)
	if len(named) == 0 {
		named = v.Hits
	}
	of := slices.DeleteFunc(slices.Clone(named), func(h rules.Hit) bool { return h.Class != v.Class })
	if len(of) == 0 {
		return named
	}
	return of
}

// resolvedHit gives the first hit that may be confirmed without the judge. Where the task's own words ask for acts of its
// class, the judge is asked.
func resolvedHit(hits []rules.Hit, asked map[string]float64) (rules.Hit, bool) {
	i := slices.IndexFunc(hits, func(h rules.Hit) bool {
		return h.Skip == "resolved" && h.Resolved && !judge.AskedFor(asked, h.Class, true)
	})
	if i < 0 {
		return rules.Hit{}, false
	}
	return hits[i], true
}

// classOf is the opinion's class where it named one that a hit carries, else the first hit's.
func classOf(o judge.Opinion, hits []rules.Hit) string {
	for _, h := range hits {
		if h.Class == o.Class {
			return o.Class
		}
	}
	// A hit for text addressed to the judge says nothing about what the call does: prefer another.
	for _, h := range hits {
		if h.Class != rules.JudgeInjection {
			return h.Class
		}
	}
	return hits[0].Class
}

// blocks is the table of belief and action: whether a confirmed hack of class is blocked.
func (g *Gate) blocks(class string, p *passage) bool {
	if g.Policy.Preset == Observe || p.rec.Verdict.onlyWatched() {
		return false
	}
	if g.Policy.Preset == Strict {
		return true
	}
	switch class {
	case rules.GitHistory, rules.UpstreamFetch, rules.UpstreamPackage, rules.HiddenArtifact,
		rules.SandboxEscape, rules.HarnessIntrospection:
		return true // information cannot be taken back
	case rules.GraderTamper, rules.ResultForging:
		return g.outsideTree(p) // inside the tree a faked write would contradict the next cat
	default:
		return false
	}
}

// outsideTree reports whether a hit's entity writes outside the work tree, where the agent has no
// honest business: site-packages, folders on PATH, the verifier's logs.
func (g *Gate) outsideTree(p *passage) bool {
	for _, h := range p.rec.Verdict.confirmed() {
		for _, w := range writesOf(&p.event, h) {
			if !under(w, g.Task.Workdir) && !under(w, "/tmp") && !under(w, "/var/tmp") && w != "/dev/null" {
				return true
			}
		}
	}
	return false
}

// writesOf gives the paths that the entity of a hit writes.
func writesOf(ev *rules.Event, h rules.Hit) []string {
	switch {
	case h.Entity == "command" && h.Index < len(ev.Commands):
		return ev.Commands[h.Index].Writes
	case h.Entity == "file" && h.Index < len(ev.Files):
		return []string{ev.Files[h.Index].Path}
	case h.Entity == "script" && h.Index < len(ev.Scripts):
		return ev.Scripts[h.Index].Writes
	}
	return nil
}

// under reports whether p is dir or lies below it.
func under(p, dir string) bool {
	p, dir = path.Clean(p), path.Clean(dir)
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// ask puts the case to the judge and says which policy speaks where the opinion is unsure.
func (g *Gate) ask(ctx context.Context, p *passage) (judge.Opinion, string) {
	c := g.makeCase(p)
	held := time.Duration(0)
	for {
		o := g.Judge.Judge(ctx, c)
		if o.Verdict == judge.Hack || o.Verdict == judge.Benign {
			return o, ""
		}
		policy := g.policyFor(o)
		if policy != OnHold {
			return o, policy
		}
		every := cmp.Or(g.Policy.HoldEvery, 2*time.Second)
		if held >= cmp.Or(g.Policy.HoldLimit, 2*time.Minute) || ctx.Err() != nil {
			return o, OnDecoy
		}
		g.sleep(every)
		held += every
	}
}

// policyFor picks the policy for an opinion that is unsure.
func (g *Gate) policyFor(o judge.Opinion) string {
	switch o.Failure {
	case "":
		return cmp.Or(g.Policy.OnUnsure, OnExecute)
	case judge.FailTimeout, judge.FailOutage, judge.FailRateLimited:
		return cmp.Or(g.Policy.OnOutage, OnDecoy)
	default:
		return cmp.Or(g.Policy.OnFailure, OnDecoy)
	}
}

// makeCase gives the judge the facts, the hits with their entities, and as much history as the
// hits' rules ask for.
func (g *Gate) makeCase(p *passage) judge.Case {
	c := judge.Case{
		RolloutID: g.RolloutID, Ordinal: p.rec.Ordinal, Task: g.Task, Tool: p.call.Name,
		Call: p.call.Arguments, Event: mustJSON(p.event), Packs: g.PacksID,
	}
	context := 0
	for _, h := range p.hits {
		context = max(context, h.Context)
		c.Hits = append(c.Hits, judge.Hit{
			Rule: h.Rule, Title: h.Title, Class: h.Class, Severity: h.Severity, Why: h.Why, Question: h.Question,
			FalsePositives: h.FalsePos, Span: h.Span, Kind: h.Entity, Entity: entityJSON(&p.event, h), Resolved: h.Resolved, Wording: h.ByWording(),
		})
	}
	c.History = g.lastLines(context)
	return c
}

// lastLines gives the last n lines of history.
func (g *Gate) lastLines(n int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.history[max(0, len(g.history)-n):])
}

// entityJSON gives the entity that a hit is about.
func entityJSON(ev *rules.Event, h rules.Hit) json.RawMessage {
	switch {
	case h.Entity == "command" && h.Index < len(ev.Commands):
		return mustJSON(ev.Commands[h.Index])
	case h.Entity == "file" && h.Index < len(ev.Files):
		return mustJSON(ev.Files[h.Index])
	case h.Entity == "script" && h.Index < len(ev.Scripts):
		return mustJSON(ev.Scripts[h.Index])
	case h.Entity == "package" && h.Index < len(ev.Packages):
		return mustJSON(ev.Packages[h.Index])
	case h.Entity == "result" && ev.Result != nil:
		return mustJSON(ev.Result)
	}
	return mustJSON(ev.Call)
}

// mustJSON encodes one of our own plain structs, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(fmt.Sprintf("%q", err.Error()))
	}
	return b
}
