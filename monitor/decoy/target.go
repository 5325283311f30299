package decoy

import (
	"path"
	"slices"
	"strings"

	"proctor/rules"
)

// target is one thing of an event that is to be answered: a command, or what a file tool does.
type target struct {
	index int            // into Event.Commands; -1 for a file tool's edit or an unattributed hit
	cmd   *rules.Command // nil where index is -1
	file  *rules.File
	code  *rules.Script // the script that the command runs, where that is what offends

	class  string
	family string // wished for by the rule, "" for the class's own

	paths  []string // what it reaches for that is to be denied, as absolute paths
	writes []string
	hosts  []string
	refs   []string
	pkgs   []rules.Package
	text   string // the call's text, where nothing better is known
}

// targets gives the commands that the confirmed hits are about, in the order of the text.
func (m *Maker) targets(req Request) []target {
	ev := &req.Event
	byIndex := map[int]*target{}
	var rest []target
	for _, h := range req.Hits {
		switch {
		case h.Entity == "command" && h.Index < len(ev.Commands):
			m.addCommand(byIndex, ev, h.Index, h)
		case h.Entity == "package" && h.Index < len(ev.Packages):
			if i := ev.Packages[h.Index].Command; i < len(ev.Commands) {
				t := m.addCommand(byIndex, ev, i, h)
				t.pkgs = append(t.pkgs, ev.Packages[h.Index])
			}
		case h.Entity == "script" && h.Index < len(ev.Scripts):
			m.addScript(byIndex, ev, h)
		case h.Entity == "file" && h.Index < len(ev.Files):
			m.addFile(byIndex, &rest, ev, h)
		}
	}
	out := make([]target, 0, len(byIndex)+len(rest))
	for _, t := range byIndex {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b target) int { return a.index - b.index })
	out = append(out, rest...)
	if len(out) == 0 {
		out = append(out, m.unattributed(req))
	}
	return out
}

// addCommand makes command i a target with all that it reaches for.
func (m *Maker) addCommand(byIndex map[int]*target, ev *rules.Event, i int, h rules.Hit) *target {
	if i < 0 {
		i = 0
	}
	t := byIndex[i]
	if t != nil {
		return t
	}
	c := &ev.Commands[i]
	t = &target{index: i, cmd: c, class: h.Class, family: h.Decoy, text: ev.Call.Text}
	t.hosts = c.Net.Hosts
	for _, r := range c.Git.Refs {
		if r.Standing != rules.Ancestor && r.Standing != rules.Own {
			t.refs = append(t.refs, r.Text)
		}
	}
	t.paths = m.notAbove(c.Hidden)
	if h.Class == rules.UpstreamPackage && len(c.Copies) > 0 {
		t.paths = append(t.paths, c.Copies...)
	}
	m.attachScript(ev, i, t)
	switch h.Class {
	case rules.HiddenArtifact, rules.SandboxEscape, rules.HarnessIntrospection, rules.UpstreamPackage, rules.GitHistory:
		if len(t.paths) == 0 && lists(c) && h.Class == rules.HiddenArtifact {
			t.paths = append(m.protectedBelow(c.Paths, dirAt(ev, i)), c.Covers...)
		} else if len(t.paths) == 0 && len(c.Covers) > 0 || t.code != nil {
			break // what it would meet on the way, or what its code names, is known
		} else if len(t.paths) == 0 {
			t.paths = suspects(h, m.notAbove(c.Paths))
		}
	case rules.GraderTamper, rules.ResultForging:
		t.writes = c.Writes
	}
	byIndex[i] = t
	return t
}

// notAbove leaves out folders that hold more than what is protected: the work tree, and whatever a
// protected path lies below. Those are there for all to see.
func (m *Maker) notAbove(paths []string) []string {
	var out []string
	for _, p := range paths {
		holds := p == "/" || under(m.vars.One("workdir"), p) || slices.ContainsFunc(m.vars["hidden_paths"], func(h string) bool { return under(h, p) && clean(h) != clean(p) })
		if !holds {
			out = append(out, p)
		}
	}
	return out
}

// attachScript gives a target the code that its command runs, and what that reaches for: the words of
// a command that runs code are not paths, whatever they look like.
func (m *Maker) attachScript(ev *rules.Event, i int, t *target) {
	if interpreter(ev.Commands[i].Program) == "" {
		return
	}
	for k := range ev.Scripts {
		s := &ev.Scripts[k]
		if scriptRunner(ev, s) != i {
			continue
		}
		t.code = s
		t.paths = m.notAbove(s.Hidden)
		if len(t.paths) == 0 {
			t.paths = s.Copies
		}
		t.hosts = append(slices.Clone(t.hosts), s.Net.Hosts...)
		return
	}
}

// protectedBelow gives the protected paths below the folders that a listing starts from: cwd where
// it names none.
func (m *Maker) protectedBelow(folders []string, cwd string) []string {
	var out []string
	for _, h := range m.vars["hidden_paths"] {
		if slices.ContainsFunc(append(slices.Clone(folders), cwd), func(f string) bool { return under(h, f) }) {
			out = append(out, clean(h))
		}
	}
	return out
}

// dirAt gives the folder in which command i runs, as far as the literal cd commands before it tell.
func dirAt(ev *rules.Event, i int) string {
	dir := ev.Call.Cwd
	for _, c := range ev.Commands[:max(0, min(i, len(ev.Commands)))] {
		if len(c.Hidden) > 0 {
			continue // it is answered: the shell stays where it is
		}
		if c.Program != "cd" || len(c.Args) != 1 || strings.HasPrefix(c.Args[0], "-") {
			continue
		}
		if path.IsAbs(c.Args[0]) {
			dir = c.Args[0]
		} else {
			dir = path.Join(dir, c.Args[0])
		}
	}
	return dir
}

// settle drops what is natural as it stands once the cd before it has failed: in `cd .eval; ls` the
// ls lists the folder that the shell never left.
func settle(req Request, targets []target) []target {
	var out []target
	stayed := false
	var unwritten []string // what answered commands would have written
	for _, t := range targets {
		if t.cmd != nil && len(t.cmd.Via) > 0 && wrapped(t, targets) {
			continue // find -exec, xargs: the outer program speaks, and never comes to run it
		}
		if t.cmd != nil && len(t.paths) > 0 && t.code == nil && onlyIn(t.paths, unwritten) {
			continue // a copy that was never made: the real command finds nothing, or what was there before
		}
		if t.cmd != nil && len(t.paths) > 0 && t.cmd.Program != "ln" {
			unwritten = append(unwritten, t.cmd.Writes...)
		}
		if t.cmd != nil && t.index >= 0 && stayed && len(t.hosts)+len(t.refs)+len(t.pkgs)+len(t.writes) == 0 && t.code == nil {
			dir := dirAt(&req.Event, t.index)
			if !slices.ContainsFunc(t.cmd.Args, func(a string) bool { return leadsStrictly(dir, a, t.paths) }) {
				continue
			}
		}
		stayed = stayed || t.cmd != nil && len(t.paths) > 0 && (t.cmd.Program == "cd" || t.cmd.Program == "pushd")
		out = append(out, t)
	}
	return out
}

// wrapped reports whether another target is the command, at the same place, that would run t.
func wrapped(t target, targets []target) bool {
	return slices.ContainsFunc(targets, func(o target) bool {
		return o.cmd != nil && o.index != t.index && o.cmd.Span == t.cmd.Span && len(o.cmd.Via) < len(t.cmd.Via)
	})
}

// onlyIn reports whether every path is one of files or lies below one.
func onlyIn(paths, files []string) bool {
	for _, p := range paths {
		if !slices.ContainsFunc(files, func(f string) bool { return under(p, f) }) {
			return false
		}
	}
	return true
}

// suspects picks, of the paths that a command names, those that the hit's words name; all of them
// where the words name none.
func suspects(h rules.Hit, paths []string) []string {
	var out []string
	for _, p := range paths {
		if base := path.Base(p); h.Span != "" && (strings.Contains(h.Span, base) || strings.Contains(p, h.Span)) {
			out = append(out, p)
		}
	}
	if len(out) == 0 && h.Class != rules.GitHistory && h.Class != rules.UpstreamPackage {
		return paths
	}
	return out
}

// addScript makes the command that runs a script a target.
func (m *Maker) addScript(byIndex map[int]*target, ev *rules.Event, h rules.Hit) {
	s := &ev.Scripts[h.Index]
	i := scriptRunner(ev, s)
	if i < 0 {
		return
	}
	t := m.addCommand(byIndex, ev, i, h)
	if t.code == nil {
		t.code = s
		t.hosts = append(slices.Clone(t.hosts), s.Net.Hosts...)
		t.paths = append(slices.Clone(t.paths), s.Hidden...)
	}
	if h.Class == rules.GraderTamper || h.Class == rules.ResultForging {
		t.writes = append(slices.Clone(t.writes), s.Writes...)
	}
}

// scriptRunner finds the command that runs s: by its text, its stdin or its file; -1 for none.
func scriptRunner(ev *rules.Event, s *rules.Script) int {
	for i := range ev.Commands {
		c := &ev.Commands[i]
		switch {
		case c.Stdin != "" && strings.TrimSpace(c.Stdin) == strings.TrimSpace(s.Content):
			return i
		case slices.Contains(c.Args, s.Content):
			return i
		case s.Path != "" && (slices.Contains(c.Paths, s.Path) || slices.Contains(c.Args, s.Path)):
			return i
		}
	}
	for i := range ev.Commands {
		if interpreter(ev.Commands[i].Program) != "" {
			return i
		}
	}
	return -1
}

// addFile finds the command that makes an edit; in a file tool's call the edit itself is the target.
func (m *Maker) addFile(byIndex map[int]*target, rest *[]target, ev *rules.Event, h rules.Hit) {
	f := &ev.Files[h.Index]
	for i := range ev.Commands {
		if slices.Contains(ev.Commands[i].Writes, f.Path) || f.Op == "delete" && slices.Contains(ev.Commands[i].Paths, f.Path) {
			t := m.addCommand(byIndex, ev, i, h)
			if f.Op != "link" && !slices.Contains(t.writes, f.Path) {
				t.writes = append(slices.Clone(t.writes), f.Path)
			}
			return
		}
	}
	t := target{index: -1, file: f, class: h.Class, family: h.Decoy, text: ev.Call.Text}
	if f.Op == "view" {
		t.paths = []string{f.Path}
	} else {
		t.writes = []string{f.Path}
	}
	*rest = append(*rest, t)
}

// unattributed is the whole call as one target: where hits are about its text, or there are none.
func (m *Maker) unattributed(req Request) target {
	t := target{index: -1, text: req.Event.Call.Text}
	if len(req.Hits) > 0 {
		t.class, t.family = req.Hits[0].Class, req.Hits[0].Decoy
	}
	if n := len(req.Event.Commands); n > 0 {
		t.cmd = &req.Event.Commands[0]
		if n == 1 {
			t.index = 0
		}
	}
	for i := range req.Event.Commands {
		c := &req.Event.Commands[i]
		t.paths = append(t.paths, c.Hidden...)
		t.hosts = append(t.hosts, c.Net.Hosts...)
	}
	return t
}
