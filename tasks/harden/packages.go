package harden

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// packageCopies reports the copies of the task's package that hold the fix, and gives what has to go
// so that none is left: always whole units, since half a package is an accident that looks like a trap.
//
//   - An archive goes as a file.
//   - An installed distribution goes with its metadata and the commands that it installed.
//   - A vendored copy goes with the distribution around it: pip without its Requests could not start.
//   - A copy in a module cache goes with its version's folder; any other with the package's folder.
func (h *hardener) packageCopies() []string {
	f := h.finder
	var gone []string
	for _, c := range f.found {
		if h.isGone(c.file) || c.inside == "" && h.isTracked(c.file) || h.underGit(c.file) {
			continue
		}
		units := f.unitOf(c)
		text := c.why
		if c.inside != "" {
			text = fmt.Sprintf("%s in it %s", c.inside, c.why)
		}
		if units[0] != c.file {
			text += "; " + units[0] + " goes with it"
		}
		h.leak(KindPackage, c.file, text)
		for _, u := range units {
			if !slices.ContainsFunc(gone, func(g string) bool { return within(u, g) }) {
				gone = append(gone, u)
			}
		}
	}
	sort.Strings(gone)
	return slices.Compact(gone)
}

// underGit reports whether a file belongs to a repository's own directory, which is rebuilt anyway.
func (h *hardener) underGit(file string) bool { return h.survey.gitDirOver(file) != "" }

// maxGone bounds the paths whose absence each sandbox is asked for.
const maxGone = 200

func (h *hardener) dropPackages(ctx context.Context) error {
	units := h.packageCopies()
	if err := h.remove(ctx, units...); err != nil {
		return fmt.Errorf("copy of the package: %w", err)
	}
	h.packages = units[:min(len(units), maxGone)]
	return nil
}

// auditPackages looks for copies again, in the sandbox that is audited.
func auditPackages(task Task, f *finder, s *survey, repos []*Repo, scratch string) error {
	h := auditor(s, repos, scratch)
	h.task, h.finder, h.gone = task, f, map[string]bool{}
	if units := h.packageCopies(); len(units) > 0 {
		return leaks("%s: a copy of the package is left: %s", units[0], h.leaks[0].Text)
	}
	return nil
}

var (
	siteFolder   = regexp.MustCompile(`^(.*/(?:site-packages|dist-packages))/([^/]+)`)
	vendorFolder = regexp.MustCompile(`^(.*?)/(?:_?vendor(?:ed)?|_vendored_packages|extern|externals|third_party)/`)
	cacheFolder  = regexp.MustCompile(`^(/.*?/(?:[^/]*@v?[0-9][^/]*|[^/]+-[0-9]+\.[0-9][^/]*))/`)
)

// unitOf gives the paths that must go so that a copy is gone, the telling one first.
func (f *finder) unitOf(c finding) []string {
	if c.inside != "" || isArchive(path.Base(c.file)) {
		return []string{c.file}
	}
	for _, d := range f.dists {
		if d.meta == c.file {
			return f.distribution(path.Dir(d.meta), f.topsOf(d))
		}
	}
	if m := siteFolder.FindStringSubmatch(c.file); m != nil {
		return f.distribution(m[1], f.withSiblings(m[1], m[2]))
	}
	if m := vendorFolder.FindStringSubmatch(c.file); m != nil && c.matched != "" {
		return []string{packageDir(c.file, c.matched)}
	}
	if m := cacheFolder.FindStringSubmatch(c.file); m != nil && !within(f.task.Workdir, m[1]) && f.task.Package != "" && strings.Contains(canonical(path.Base(m[1])), canonical(f.task.Package)) {
		return []string{m[1]}
	}
	if c.matched == "" || !strings.Contains(c.matched, "/") || within(f.task.Workdir, packageDir(c.file, c.matched)) {
		return []string{c.file}
	}
	return []string{packageDir(c.file, c.matched)}
}

// topsOf gives the names that a distribution of the package has beside its metadata.
func (f *finder) topsOf(d dist) []string {
	tops := []string{strings.ReplaceAll(canonical(f.task.Package), "-", "_"), f.task.Package}
	for _, x := range f.fix {
		tops = append(tops, strings.TrimSuffix(x.top, path.Ext(x.top)))
	}
	return tops
}

// withSiblings gives the top-level names that go with one of a site folder: those of the package, where
// it is one of them.
func (f *finder) withSiblings(site, top string) []string {
	name := strings.TrimSuffix(top, path.Ext(top))
	if f.packageFolder(name) {
		return append(f.topsOf(dist{}), name)
	}
	return []string{name}
}

// distribution gives what of a site folder belongs to top-level names: folders, modules, metadata,
// stale bytecode, and the commands of the same names.
func (f *finder) distribution(site string, tops []string) []string {
	var units []string
	for _, top := range tops {
		for _, name := range []string{top, top + ".py", top + ".so"} {
			if f.has(path.Join(site, name)) && !within(f.task.Workdir, path.Join(site, name)) {
				units = append(units, path.Join(site, name))
			}
		}
	}
	prefix := site + "/"
	for name := range f.names {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || strings.Contains(rest, "/") {
			continue
		}
		lower, _, found := strings.Cut(rest, "-")
		if found && (strings.HasSuffix(rest, ".dist-info") || strings.HasSuffix(rest, ".egg-info")) && slices.ContainsFunc(tops, func(t string) bool { return canonical(t) == canonical(lower) }) {
			units = append(units, name)
		}
	}
	units = append(units, f.commands(site, tops)...)
	sort.SliceStable(units, func(i, j int) bool { return strings.Count(units[i], "/") > strings.Count(units[j], "/") })
	units = slices.Compact(units)
	if len(units) == 0 {
		return []string{path.Join(site, tops[0])}
	}
	return units
}

// commandForm is a command's name with what distributions and virtual environments append.
var commandForm = regexp.MustCompile(`^([a-z._]+?)(?:-?[0-9]+(?:\.[0-9]+)?)?$`)

// commands gives the programs of the same environment that go by a top-level name.
func (f *finder) commands(site string, tops []string) []string {
	var found []string
	for _, bin := range []string{path.Join(site, "../../../bin"), "/usr/bin", "/usr/local/bin"} {
		if bin != path.Clean(path.Join(site, "../../../bin")) && !within(site, path.Dir(bin)) {
			continue
		}
		for name := range f.names {
			if path.Dir(name) != bin {
				continue
			}
			m := commandForm.FindStringSubmatch(path.Base(name))
			if m != nil && slices.ContainsFunc(tops, func(t string) bool { return t == m[1] || t == "pytest" && m[1] == "py.test" }) {
				found = append(found, name)
			}
		}
	}
	return found
}

func (f *finder) has(name string) bool {
	_, ok := f.names[name]
	return ok
}
