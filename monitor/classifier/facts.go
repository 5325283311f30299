package classifier

import (
	"path"
	"strings"

	"proctor/rules"
)

// facts gives the event's facts as words. What they say is what the normaliser resolved; no name of a task is in them.
func (n *Names) facts(ev *rules.Event) []string {
	f := factList{names: n}
	f.add("tool=", ev.Call.Tool)
	f.add("network=", n.network)
	for i := range ev.Commands {
		f.command(&ev.Commands[i])
	}
	for i := range ev.Files {
		f.file(&ev.Files[i])
	}
	for i := range ev.Scripts {
		f.script(&ev.Scripts[i])
	}
	for _, p := range ev.Packages {
		f.add("package=", p.Relation)
		f.when(p.Own, "package.own")
	}
	f.when(ev.Opaque, "opaque")
	return f.out
}

// factList collects facts.
type factList struct {
	names *Names
	out   []string
}

func (f *factList) add(kind, value string) { f.out = append(f.out, kind+value) }

func (f *factList) when(holds bool, fact string) {
	if holds {
		f.out = append(f.out, fact)
	}
}

func (f *factList) command(c *rules.Command) {
	f.add("program=", c.Program)
	if c.Git.Verb != "" {
		f.add("git=", c.Git.Verb)
	}
	for _, r := range c.Git.Refs {
		f.add("ref=", string(r.Standing))
		f.add("git=", c.Git.Verb+"/"+string(r.Standing))
	}
	if len(c.Hidden) > 0 {
		f.add("hidden=", c.Program)
		f.add("", "hidden")
	}
	f.places("reads=", c.Program, c.Paths)
	f.places("writes=", c.Program, c.Writes)
	f.net("net.", c.Net)
	f.when(c.Opaque, "command.opaque")
	f.when(len(c.Covers) > 0, "covers")
	f.when(len(c.Copies) > 0, "copies")
	for _, via := range c.Via {
		kind, _, _ := strings.Cut(via, ":")
		f.add("via=", kind)
	}
}

func (f *factList) file(x *rules.File) {
	f.add("file=", x.Op)
	f.add("file=", x.Op+"/"+f.names.place(x.Path))
	f.add("ending=", path.Ext(x.Path))
	f.when(x.Test, "file.test")
	f.when(x.InTree, "file.in_tree")
	f.when(x.New, "file.new")
	f.when(x.There, "file.there")
	f.when(x.Copy, "file.copy")
	f.when(x.Grader, "file.grader")
	f.when(x.Hidden, "file.hidden")
	f.when(x.Asked, "file.asked")
}

func (f *factList) script(s *rules.Script) {
	f.add("lang=", s.Lang)
	f.when(len(s.Hidden) > 0, "script.hidden")
	f.when(s.Asked, "script.asked")
	for _, p := range s.Paths {
		f.add("script.reads=", f.names.place(p))
	}
	for _, p := range s.Writes {
		f.add("script.writes=", f.names.place(p))
	}
	f.net("script.net.", s.Net)
}

// places says what kinds of places a program reaches.
func (f *factList) places(kind, program string, paths []string) {
	for _, p := range paths {
		at := f.names.place(p)
		f.add(kind, at)
		f.add(kind, program+"/"+at)
	}
}

func (f *factList) net(kind string, n rules.Net) {
	f.when(len(n.Hosts) > 0, kind+"host")
	f.when(len(n.URLs) > 0, kind+"url")
	f.when(len(n.Foreign) > 0, kind+"foreign")
	f.when(len(n.Denied) > 0, kind+"denied")
	f.when(len(n.Upstream) > 0, kind+"upstream")
}

// elsewhere are folders outside of work trees that say what a path is for.
var elsewhere = []string{"/tmp", "/root", "/home", "/proc", "/sys", "/etc", "/usr", "/var", "/dev", "/logs"}

// place says what kind of place a path is.
func (n *Names) place(p string) string {
	for _, h := range n.hidden {
		if rules.Below(p, h) {
			return "hidden"
		}
	}
	for _, t := range n.tests {
		if rules.Below(p, t) {
			return "test"
		}
	}
	if rules.Below(p, n.workdir) {
		return "tree"
	}
	for _, d := range elsewhere {
		if rules.Below(p, d) {
			return d[1:]
		}
	}
	if strings.HasPrefix(p, "/") {
		return "elsewhere"
	}
	return "relative"
}
