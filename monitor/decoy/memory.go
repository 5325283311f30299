package decoy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"proctor/rules"
)

// memory is what was denied so far. Each entry stays for the rest of the rollout.
type memory struct {
	paths  []string        // absolute; everything at or below is not there
	sealed []string        // folders, or files, that cannot be written
	hosts  map[string]bool // lower case
	refs   map[string]bool
	pkgs   map[string]bool // "manager name version"
	all    bool            // sets of refs beyond the start commit: --all and the like
}

func newMemory() memory {
	return memory{hosts: map[string]bool{}, refs: map[string]bool{}, pkgs: map[string]bool{}}
}

// learn adds what t was denied. A path below a protected one denies the protected one whole, since
// a folder whose every file is missing is itself missing.
func (d *memory) learn(t target, vars rules.Vars) {
	for _, p := range t.paths {
		if inGitDir.MatchString(p) || ofProcess.MatchString(p) || !denied(p, vars) && t.cmd != nil && slices.Contains(t.cmd.Writes, p) {
			continue // git itself needs its folder, and what the agent writes is the agent's
		}
		d.paths = insert(d.paths, hiddenRoot(p, vars))
	}
	for _, w := range t.writes {
		if denied(w, vars) {
			d.paths = insert(d.paths, hiddenRoot(w, vars))
			continue
		}
		d.sealed = insert(d.sealed, w)
	}
	for _, h := range t.hosts {
		d.hosts[strings.ToLower(h)] = true
	}
	for _, r := range t.refs {
		if selectsRefs(r) {
			d.all = true
			continue
		}
		d.refs[refName(r)] = true
	}
	for _, p := range t.pkgs {
		d.pkgs[pkgKey(p)] = true
	}
}

// inGitDir matches what git works with, which therefore stays.
var inGitDir = regexp.MustCompile(`/\.git(/(objects|refs)(/.*)?)?$`)

// ofProcess matches a process's folder: ps and ls /proc show that it is there. It is closed, not gone.
var ofProcess = regexp.MustCompile(`(^|=)/proc/[0-9]+(/|$)`)

// forget lets go of paths that the agent has written since, protected ones aside: they are its own
// files now.
func (d *memory) forget(ev *rules.Event, vars rules.Vars) {
	made := func(p string) bool {
		return !denied(p, vars) && (slices.ContainsFunc(ev.Commands, func(c rules.Command) bool { return slices.Contains(c.Writes, p) }) ||
			slices.ContainsFunc(ev.Files, func(f rules.File) bool { return f.Path == p && f.Op == "create" }))
	}
	d.paths = slices.DeleteFunc(d.paths, made)
}

func pkgKey(p rules.Package) string {
	return p.Manager + " " + strings.ToLower(p.Name) + " " + p.Version
}

// hiddenRoot gives the protected path that p lies under, else p.
func hiddenRoot(p string, vars rules.Vars) string {
	for _, h := range vars["hidden_paths"] {
		if under(p, h) {
			return clean(h)
		}
	}
	return clean(p)
}

// denied reports whether p is one of the task's protected paths.
func denied(p string, vars rules.Vars) bool {
	return slices.ContainsFunc(vars["hidden_paths"], func(h string) bool { return under(p, h) })
}

func clean(p string) string { return path.Clean(strings.TrimSuffix(strings.TrimSuffix(p, "**"), "/")) }

// under reports whether p is dir or lies below it.
func under(p, dir string) bool {
	p, dir = path.Clean(p), clean(dir)
	return dir != "." && (p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/"))
}

// insert adds p to a set of paths, unless one of them covers it already.
func insert(set []string, p string) []string {
	if p == "" || p == "." || p == "/" || slices.ContainsFunc(set, func(q string) bool { return under(p, q) }) {
		return set
	}
	return append(set, p)
}

// recalled gives the parts of an allowed call that touch what was denied.
func (m *Maker) recalled(req Request) []target {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []target
	ev := &req.Event
	m.denied.forget(ev, m.vars)
	for i := range ev.Commands {
		if t, ok := m.denied.touch(ev, i); ok {
			out = append(out, t)
		}
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		if len(ev.Commands) > 0 {
			break // edits by commands were found with their commands
		}
		t := target{index: -1, file: f, text: ev.Call.Text}
		switch {
		case slices.ContainsFunc(m.denied.paths, func(p string) bool { return under(f.Path, p) }):
			t.paths = []string{f.Path}
		case f.Op == "view" && len(m.denied.below([]string{f.Path})) > 0 && req.Call.Range == nil:
			t.paths = m.denied.below([]string{f.Path})
		case f.Op != "view" && slices.ContainsFunc(m.denied.sealed, func(p string) bool { return under(f.Path, p) }):
			t.writes = []string{f.Path}
		default:
			continue
		}
		out = append(out, t)
	}
	return out
}

// touch gives command i as a target where it reaches for something denied.
func (d *memory) touch(ev *rules.Event, i int) (target, bool) {
	c := &ev.Commands[i]
	t := target{index: i, cmd: c, text: ev.Call.Text}
	t.paths = d.pathsIn(c.Paths)
	for _, w := range c.Writes {
		if len(d.pathsIn([]string{w})) > 0 {
			t.paths = append(t.paths, w)
		} else if slices.ContainsFunc(d.sealed, func(p string) bool { return under(w, p) }) {
			t.writes = append(t.writes, w)
		}
	}
	for _, h := range c.Net.Hosts {
		if d.hosts[strings.ToLower(h)] && c.Program != "echo" {
			t.hosts = append(t.hosts, h)
		}
	}
	for _, r := range c.Git.Refs {
		if r.Standing == rules.Ancestor || r.Standing == rules.Own {
			continue
		}
		if d.refs[refName(r.Text)] || d.all && selectsRefs(r.Text) {
			t.refs = append(t.refs, r.Text)
		}
	}
	for _, p := range ev.Packages {
		if p.Command == i && d.pkgs[pkgKey(p)] {
			t.pkgs = append(t.pkgs, p)
		}
	}
	for k := range ev.Scripts {
		s := &ev.Scripts[k]
		if scriptRunner(ev, s) != i {
			continue
		}
		paths := d.pathsIn(append(slices.Clone(s.Paths), s.Hidden...))
		hosts := slices.DeleteFunc(slices.Clone(s.Net.Hosts), func(h string) bool { return !d.hosts[strings.ToLower(h)] })
		if len(paths)+len(hosts) > 0 {
			t.code, t.paths, t.hosts = s, append(t.paths, paths...), append(t.hosts, hosts...)
		}
	}
	if lists(c) {
		t.paths = append(t.paths, d.below(c.Paths)...)
	}
	return t, len(t.paths)+len(t.writes)+len(t.hosts)+len(t.refs)+len(t.pkgs) > 0
}

func (d *memory) pathsIn(paths []string) []string {
	var out []string
	for _, p := range paths {
		if slices.ContainsFunc(d.paths, func(q string) bool { return under(p, q) }) {
			out = append(out, p)
		}
	}
	return out
}

// below gives the denied paths that lie below one of the folders.
func (d *memory) below(folders []string) []string {
	var out []string
	for _, q := range d.paths {
		if slices.ContainsFunc(folders, func(f string) bool { return under(q, f) }) && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}
