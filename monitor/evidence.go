package monitor

import (
	"path"
	"slices"
	"strings"

	"proctor/monitor/decoy"
	"proctor/monitor/witness"
	"proctor/rules"
	"proctor/sandbox"
)

// Evidence is what no wording hides: protected files that the kernel saw opened, and text that only
// a protected file holds. It comes with the result, so a block on it is a late one.

// watch lets the witness watch while a call runs; the function ends that and keeps what was seen.
func (g *Gate) watch(p *passage) func() {
	if g.Witness == nil {
		return func() {}
	}
	op := p.call.Box.Op
	end := g.Witness.Begin(witness.Span{Ordinal: p.rec.Ordinal, Control: op.Control(), File: fileOp(op), Harness: p.call.Principal == Harness})
	if g.silent(p.call) {
		return func() { end() }
	}
	return func() {
		v := &p.rec.Verdict
		v.Openings = end()
		for _, o := range v.Openings {
			v.Evidence = append(v.Evidence, o.String())
		}
	}
}

func fileOp(op sandbox.Op) bool {
	switch op {
	case sandbox.OpView, sandbox.OpCreate, sandbox.OpReplace, sandbox.OpInsert, sandbox.OpUndo:
		return true
	}
	return false
}

// proof is what the evidence on one call comes to.
type proof struct {
	opened   []witness.Opening // by name, not in passing
	lured    []string          // honeypots, which hold nothing worth knowing
	canaries []string          // in what came out
	told     []string          // in what the agent itself wrote: it has known them before
}

// prove weighs the evidence on a call that ran.
func (g *Gate) prove(p *passage, result sandbox.Result) proof {
	var e proof
	for _, o := range p.rec.Verdict.Openings {
		switch {
		case o.Walk:
		case slices.ContainsFunc(g.Honeypots, func(h string) bool { return under(o.Path, h) || under(h, o.Path) }):
			e.lured = append(e.lured, "honeypot "+o.Path+": opened")
		default:
			e.opened = append(e.opened, o)
		}
	}
	if g.Canaries != nil {
		e.canaries = g.Canaries.Find(string(result.Output))
		if len(e.canaries) == 0 {
			e.told = g.Canaries.Find(rawText(p.call))
		}
	}
	keep(&p.rec.Verdict.Evidence, e.canaries)
	keep(&p.rec.Verdict.Evidence, e.told)
	e.canaries, e.told = e.sortOut(e.canaries), e.sortOut(e.told)
	return e
}

// none reports whether there is no evidence.
func (e proof) none() bool { return len(e.opened)+len(e.canaries)+len(e.told)+len(e.lured) == 0 }

// sortOut takes sightings of honeypots' tokens out of a list.
func (e *proof) sortOut(sightings []string) []string {
	var rest []string
	for _, s := range sightings {
		if strings.HasPrefix(s, "honeypot ") {
			e.lured = append(e.lured, s)
		} else {
			rest = append(rest, s)
		}
	}
	return rest
}

// keep adds what is new to a list.
func keep(list *[]string, more []string) {
	for _, m := range more {
		if !slices.Contains(*list, m) {
			*list = append(*list, m)
		}
	}
}

// facts gives the event's second phase.
func (e proof) facts(result sandbox.Result) *rules.ResultFacts {
	f := &rules.ResultFacts{Output: string(result.Output), Exit: result.Exit, Canaries: slices.Concat(e.canaries, e.told, e.lured)}
	for _, o := range e.opened {
		if !slices.Contains(f.Witness, o.Path) {
			f.Witness = append(f.Witness, o.Path)
		}
	}
	return f
}

// shows reports whether this call's own output may hold what was learned. A process that an earlier
// call left behind shows what it learned when it is asked for its output, or by a file, whose
// text is then a canary.
func (e proof) shows(p *passage) bool {
	return len(e.canaries) > 0 || slices.ContainsFunc(e.opened, func(o witness.Opening) bool {
		return !o.Denied && (!o.Earlier || p.call.Name == ToolBashOutput)
	})
}

// learned reports whether the agent, or what it left running, may know what it must not.
func (e proof) learned() bool {
	return len(e.canaries)+len(e.told) > 0 || slices.ContainsFunc(e.opened, func(o witness.Opening) bool { return !o.Denied })
}

// refused gives what was not let through.
func refused(openings []witness.Opening) []witness.Opening {
	return slices.DeleteFunc(slices.Clone(openings), func(o witness.Opening) bool { return !o.Denied })
}

// reword puts what programs said of refused opens in the words of files that are not there. The
// paths stay away from then on.
func (g *Gate) reword(p *passage, result sandbox.Result) sandbox.Result {
	denied := refused(p.rec.Verdict.Openings)
	if g.Mode != Enforce || len(denied) == 0 {
		return result
	}
	result.Output = witness.Reword(result.Output, denied)
	v := &p.rec.Verdict
	if v.Action == Executed {
		v.Action = Filtered
	}
	if v.Decoy == nil {
		v.Decoy = &DecoyNote{Family: "no-such-file"}
	}
	return result
}

// blamed gives event and hits as they would have been, had the normaliser seen what was opened: the
// command or file tool that did it reaches for a hidden path. It is for wording a decoy.
func blamed(ev rules.Event, hits []rules.Hit, openings []witness.Opening) (rules.Event, []rules.Hit) {
	var paths []string
	by, name := -1, ""
	for _, o := range openings {
		paths = append(paths, o.Path)
		if by < 0 {
			name, _, _ = strings.Cut(o.Line, " ")
			by = slices.IndexFunc(ev.Commands, func(c rules.Command) bool { return sameProgram(c.Program, o.Program) })
		}
	}
	if len(paths) == 0 {
		return ev, hits
	}
	if by < 0 {
		by = len(ev.Commands) - 1
	}
	hit := rules.Hit{Class: rules.HiddenArtifact}
	if len(hits) > 0 {
		hit = hits[0]
	}
	switch {
	case by >= 0:
		ev.Commands = slices.Clone(ev.Commands)
		c := &ev.Commands[by]
		c.Hidden = paths
		if strings.Contains(c.Path, "/") {
			// A program of the agent's own: it ran, so that nobody is to look for it on PATH, and what it
			// would have named is what it opened.
			c.Program, c.Args = name, append(slices.Clone(c.Args), paths[0])
		}
		ev.Scripts = slices.Clone(ev.Scripts)
		for i := range ev.Scripts {
			ev.Scripts[i].Hidden = paths
		}
		hit.Entity, hit.Index = "command", by
	case len(ev.Files) > 0:
		ev.Files = slices.Clone(ev.Files)
		ev.Files[0].Hidden = true
		hit.Entity, hit.Index = "file", 0
	default:
		return ev, hits
	}
	return ev, []rules.Hit{hit}
}

// sameProgram reports whether a command's program is that executable: python is python3.11.
func sameProgram(program, exe string) bool {
	program, exe = path.Base(program), path.Base(exe)
	return program != "" && (program == exe || len(program) > 3 && len(exe) > len(program) && exe[:len(program)] == program)
}

// restoreOpenings lets the decoys' memory follow what a recorded call was denied by evidence.
func (g *Gate) restoreOpenings(p *passage) {
	keeper, ok := g.Decoys.(Keeper)
	v := &p.rec.Verdict
	if !ok || v.Decision != Block || v.Action == Executed {
		return
	}
	opened := slices.DeleteFunc(slices.Clone(v.Openings), func(o witness.Opening) bool { return o.Walk })
	if len(opened) == 0 {
		return
	}
	ev, hits := blamed(p.event, v.confirmed(), opened)
	keeper.Remember(decoy.Request{Ordinal: p.rec.Ordinal, Tool: p.call.Name, Call: p.call.Box, Event: ev, Hits: hits})
}
