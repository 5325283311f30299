package decoy

import (
	"strings"

	"proctor/rules"
)

// famClean is the family of an answer that is the repository's own: there is nothing in it to deny.
const famClean = "clean-repository"

// onlyCleanStore reports whether a blocked call does no more than read the files of a repository
// that holds nothing but ancestors of the start commit and the agent's own work. What it was after
// is not there, so the call's real answer is what a clean environment says, to the byte; a word of
// ours could only contradict what git and ls show of the same files.
//
// Guarantee: no protected path, host, package or foreign revision stands anywhere in the event.
//
// When in doubt, no: a call that reaches for anything else as well is answered in another way.
func (m *Maker) onlyCleanStore(req Request) bool {
	if !m.scrubbed || len(req.Hits) == 0 || req.Event.Opaque {
		return false
	}
	for _, h := range req.Hits {
		if h.Class != rules.GitHistory || !m.readsStore(&req.Event, h) {
			return false
		}
	}
	ev := &req.Event
	if len(ev.Packages) > 0 {
		return false
	}
	for _, c := range ev.Commands {
		if len(c.Hidden)+len(c.Covers)+len(c.Net.Hosts)+len(c.Net.URLs)+len(c.Git.With(rules.Foreign))+len(c.Git.With(rules.Unknown)) > 0 || c.Opaque {
			return false
		}
	}
	for _, s := range ev.Scripts {
		if len(s.Hidden)+len(s.Covers)+len(s.Net.Hosts)+len(s.Net.URLs) > 0 {
			return false
		}
	}
	for _, f := range ev.Files {
		if f.Hidden {
			return false
		}
	}
	return true
}

// readsStore reports whether a hit is about a read of files below a .git folder, by a program other
// than git.
func (m *Maker) readsStore(ev *rules.Event, h rules.Hit) bool {
	switch {
	case h.Entity == "command" && h.Index < len(ev.Commands):
		c := ev.Commands[h.Index]
		return c.Git.Verb == "" && len(c.Writes) == 0 && m.allInStore(c.Paths)
	case h.Entity == "script" && h.Index < len(ev.Scripts):
		s := ev.Scripts[h.Index]
		return len(s.Writes) == 0 && m.allInStore(s.Paths)
	case h.Entity == "file" && h.Index < len(ev.Files):
		f := ev.Files[h.Index]
		return f.Op == "view" && m.allInStore([]string{f.Path})
	}
	return false
}

// allInStore reports whether some of paths lie in a repository's store, and all that do in one that
// was proved clean.
func (m *Maker) allInStore(paths []string) bool {
	some := false
	for _, p := range paths {
		if strings.Contains(p+"/", "/.git/") {
			some = true
			if !under(p, m.vars.One("workdir")) {
				return false // repositories elsewhere were not looked at
			}
		}
	}
	return some
}
