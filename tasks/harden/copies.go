package harden

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// Copies of the task's package outside of its repository often are later than the start commit, and
// hold the fix: pip carries Requests, distributions carry pytest, caches carry wheels. They are looked
// for in the whole image, in two ways:
//
//   - by name and version: metadata of installed packages, names of archives, version files of vendored
//     copies, compared with the task's package and its fix_version or base_version;
//   - by content: source files, loose or in archives, that hold the lines that the solution adds, under
//     the solution's own file names, or under any name where there are enough of them.
//
// A copy whose files are the repository's own, byte for byte, is none: an install or a build of the
// start state. Files of the start commit itself are left alone.

// Bounds of one search. What is larger is passed over, and said so where its name is the package's.
const (
	maxSource  = 4 << 20
	maxArchive = 256 << 20
	maxEntries = 200_000 // of one archive
)

// finding is one file that makes a copy.
type finding struct {
	file    string // in the sandbox
	matched string // the end of file that is the solution's own name; "" where only the content is
	inside  string // the name in an archive; "" for a loose file
	why     string
	fatal   bool // it holds the fix, or is of a version that does
}

// finder looks through an image.
type finder struct {
	task     Task
	fix      []*fixedFile
	own      map[string][32]byte // the repository's own files -> hash; what a copy may be
	ours     map[[32]byte]bool
	found    []finding
	versions map[string]string // folder of a package -> the version that a file in it tells
	dists    []dist
	names    map[string]byte
	roots    []string // what the survey reads anyway
	extra    []string // repositories, bundles and packs elsewhere, which it must read too
}

// dist is an installed distribution of the task's package.
type dist struct {
	meta    string // the folder or file of its metadata
	version string
}

// skipped folders hold nothing of a package manager's or are no files.
var skipped = []string{"/proc", "/sys", "/dev", "/run"}

// find looks through the whole image for copies, and for repositories and bundles outside of roots.
func find(ctx context.Context, box Box, task Task, roots []string) (*finder, error) {
	f := &finder{task: task, fix: fixOf(task.Fix), own: map[string][32]byte{}, ours: map[[32]byte]bool{}, versions: map[string]string{}, names: map[string]byte{}, roots: roots}
	f.readOwn(ctx, box)
	err := eachEntry(ctx, box, "/", func(name string, h *tar.Header, content io.Reader) error {
		for _, s := range skipped {
			if within(name, s) {
				return nil
			}
		}
		if len(f.names) >= maxNames {
			return fmt.Errorf("more than %d files", maxNames)
		}
		f.names[name] = h.Typeflag
		if h.Typeflag != tar.TypeReg {
			return nil
		}
		head := make([]byte, min(h.Size, 16))
		if _, err := io.ReadFull(content, head); err != nil {
			return err
		}
		if holdsObjects(head) && !f.surveyed(name) {
			f.extra = append(f.extra, name)
		}
		return f.file(name, h.Size, io.MultiReader(bytes.NewReader(head), content))
	})
	if err != nil {
		return nil, fmt.Errorf("looking through the image: %w", err)
	}
	for name := range f.names {
		dir := path.Dir(name)
		if path.Base(name) == "objects" && isGitDir(dir, f.has) && !f.surveyed(dir) {
			if path.Base(dir) == ".git" {
				dir = path.Dir(dir)
			}
			f.extra = append(f.extra, dir)
		}
	}
	sort.Strings(f.extra)
	f.byVersion()
	return f, nil
}

func (f *finder) surveyed(name string) bool {
	return slices.ContainsFunc(f.roots, func(root string) bool { return within(name, root) })
}

// readOwn notes the repository's files that the solution changes, as they are.
func (f *finder) readOwn(ctx context.Context, box Box) {
	for _, x := range f.fix {
		file := path.Join(f.task.Workdir, x.name)
		data, err := box.ReadFile(ctx, file, maxSource)
		if err != nil {
			continue // the solution makes it
		}
		f.own[file] = sha256.Sum256(data)
		f.ours[f.own[file]] = true
	}
}

var (
	metadataFile = regexp.MustCompile(`^(.*\.(?:dist-info/METADATA|egg-info/PKG-INFO|egg-info))$`)
	versionLine  = regexp.MustCompile(`(?m)^\s*(?:__version__|version|VERSION)\s*(?::\s*\w+\s*)?=\s*(?:version\s*=\s*)?["']([0-9][^"']*)["']`)
	headerName   = regexp.MustCompile(`(?m)^Name:\s*(\S+)`)
	headerVer    = regexp.MustCompile(`(?m)^Version:\s*(\S+)`)
)

func (f *finder) file(name string, size int64, content io.Reader) error {
	base := path.Base(name)
	switch {
	case metadataFile.MatchString(name):
		return f.metadata(name, content)
	case base == "__version__.py" || base == "_version.py" || base == "__init__.py" || base == "version.py":
		if err := f.versionFile(name, size, content); err != nil || base != "__init__.py" {
			return err
		}
		return nil
	case isArchive(base):
		return f.archive(name, size, content)
	case !sourceEndings[path.Ext(base)] || size > maxSource || len(f.fix) == 0:
		return nil
	}
	near := f.nearest(name)
	if near == nil && !f.anyFar() {
		return nil
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	f.source(name, "", data)
	return nil
}

// anyFar reports whether the solution is large enough to be known under any name.
func (f *finder) anyFar() bool {
	for _, x := range f.fix {
		if len(x.lines) >= farLines {
			return true
		}
	}
	return false
}

// nearest gives the file of the solution whose name this one ends with.
func (f *finder) nearest(name string) *fixedFile {
	for _, x := range f.fix {
		if strings.HasSuffix(name, "/"+x.suffix) || name == x.suffix {
			return x
		}
	}
	return nil
}

// source weighs a source file, loose or inside an archive.
func (f *finder) source(name, inside string, data []byte) {
	shown := name
	if inside != "" {
		shown = inside
	}
	if _, own := f.own[name]; own && inside == "" || f.ours[sha256.Sum256(data)] {
		return
	}
	near := f.nearest(shown)
	for _, x := range f.fix {
		if x.heldBy(data, x == near) {
			matched := ""
			if near != nil {
				matched = near.suffix
			}
			f.found = append(f.found, finding{file: name, inside: inside, matched: matched, fatal: true, why: "holds lines that the solution adds to " + x.name})
			return
		}
	}
	if near != nil {
		f.found = append(f.found, finding{file: name, inside: inside, matched: near.suffix, why: "is a copy of " + near.name})
	}
}

func (f *finder) metadata(name string, content io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(content, 1<<20))
	if err != nil || f.task.Package == "" {
		return err
	}
	n, v := headerName.FindSubmatch(data), headerVer.FindSubmatch(data)
	if n == nil || v == nil || canonical(string(n[1])) != canonical(f.task.Package) {
		return nil
	}
	meta := name
	if b := path.Base(name); b == "METADATA" || b == "PKG-INFO" {
		meta = path.Dir(name)
	}
	f.dists = append(f.dists, dist{meta: meta, version: string(v[1])})
	return nil
}

// versionFile notes the version that a package's own file tells.
func (f *finder) versionFile(name string, size int64, content io.Reader) error {
	dir := path.Dir(name)
	if size > 1<<20 || !f.packageFolder(path.Base(dir)) {
		return nil
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	if m := versionLine.FindSubmatch(data); m != nil {
		f.versions[dir] = string(m[1])
	}
	return nil
}

// packageFolder reports whether a folder's name is one of the task's package.
func (f *finder) packageFolder(name string) bool {
	if f.task.Package != "" && canonical(name) == canonical(f.task.Package) {
		return true
	}
	for _, x := range f.fix {
		if x.top == name {
			return true
		}
	}
	return false
}

// byVersion settles the copies whose text is not the solution's: a later release has it in other words.
func (f *finder) byVersion() {
	for i := range f.found {
		c := &f.found[i]
		if c.fatal {
			continue
		}
		version := f.versionOf(c)
		if f.task.newer(version) && !f.startState(c) {
			c.fatal, c.why = true, c.why+" in release "+version
		}
	}
	for _, d := range f.dists {
		if f.task.newer(d.version) && !f.installOfStart(d) {
			f.found = append(f.found, finding{file: d.meta, fatal: true, why: "is release " + d.version + " of " + f.task.Package})
		}
	}
	kept := f.found[:0]
	for _, c := range f.found {
		if c.fatal {
			kept = append(kept, c)
		}
	}
	f.found = kept
	sort.SliceStable(f.found, func(i, j int) bool { return f.found[i].file < f.found[j].file })
}

// versionOf gives the version of the package that a copied file is of: as a folder above it tells.
func (f *finder) versionOf(c *finding) string {
	if c.inside != "" {
		if version, ok := f.task.archived(path.Base(c.file)); ok {
			return version
		}
		return f.versions[c.file+"//"+packageDir(c.inside, c.matched)]
	}
	dir := packageDir(c.file, c.matched)
	if v := f.versions[dir]; v != "" {
		return v
	}
	for _, d := range f.dists {
		if path.Dir(d.meta) == path.Dir(dir) {
			return d.version
		}
	}
	return ""
}

// packageDir gives the folder of the package that a file named by suffix lies in.
func packageDir(file, suffix string) string {
	dir := strings.TrimSuffix(strings.TrimSuffix(file, suffix), "/")
	first, _, _ := strings.Cut(suffix, "/")
	return path.Join(dir, first)
}

// startState reports whether a copy lies in the workdir's own tree or was installed from it.
func (f *finder) startState(c *finding) bool {
	for _, d := range f.dists {
		if c.inside == "" && path.Dir(d.meta) == path.Dir(packageDir(c.file, c.matched)) && f.installOfStart(d) {
			return true
		}
	}
	return false
}

// installOfStart reports whether a distribution is the start state itself: its metadata lies in the
// workdir, or all its copies of the solution's files are the repository's, byte for byte. Those are not
// among the findings; so there are none in its folder.
func (f *finder) installOfStart(d dist) bool {
	if within(d.meta, f.task.Workdir) {
		return true
	}
	site := path.Dir(d.meta)
	for _, c := range f.found {
		if c.inside == "" && c.matched != "" && path.Dir(packageDir(c.file, c.matched)) == site {
			return false
		}
	}
	return f.hasOwn()
}

func (f *finder) hasOwn() bool { return len(f.own) > 0 }
