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
	t.paths = append(t.paths, c.Hidden...)
	switch h.Class {
	case rules.HiddenArtifact, rules.SandboxEscape, rules.HarnessIntrospection, rules.UpstreamPackage, rules.GitHistory:
		if len(t.paths) == 0 {
			t.paths = suspects(h, c.Paths)
		}
	case rules.GraderTamper, rules.ResultForging:
		t.writes = c.Writes
	}
	byIndex[i] = t
	return t
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
	t.code = s
	t.hosts = append(slices.Clone(t.hosts), s.Net.Hosts...)
	t.paths = append(slices.Clone(t.paths), s.Hidden...)
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
			if !slices.Contains(t.writes, f.Path) {
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
