package rules

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of what is loaded. A pack that somebody wrote is far below all of them; they keep a
// hostile or broken file from costing more than a second and 100 MiB.
const (
	maxFileBytes = 4 << 20
	maxDepth     = 32
	maxNodes     = 1_000_000
	maxRules     = 10_000
)

//go:embed packs
var coreFS embed.FS

// Core gives the packs that ship with Proctor. An error means that this build's own packs are
// broken.
func Core() (*Packs, error) {
	p, probs := LoadFS(coreFS, "packs")
	for _, pr := range Errors(probs) {
		return nil, fmt.Errorf("core packs: %w", pr)
	}
	return p, nil
}

// Load reads pack files, and folders of them (*.yaml and *.yml, at any depth). The packs may be
// used where Errors(problems) is empty; otherwise they hold what could be read.
func Load(paths ...string) (*Packs, []Problem) { return LoadBeside(&Packs{}, paths...) }

// LoadBeside is Load with packs beside those at base, such as the core packs: overlays and sequences
// at paths may name rules of base. base stays as it is.
func LoadBeside(base *Packs, paths ...string) (*Packs, []Problem) {
	l := &loader{src: maps.Clone(base.src), files: slices.Clone(base.packs)}
	if l.src == nil {
		l.src = sources{}
	}
	for _, p := range paths {
		l.path(os.DirFS(filepath.Dir(p)), filepath.Base(p), filepath.Dir(p))
	}
	return l.finish()
}

// LoadFS is Load on a file system.
func LoadFS(fsys fs.FS, paths ...string) (*Packs, []Problem) {
	l := &loader{src: sources{}}
	for _, p := range paths {
		l.path(fsys, p, "")
	}
	return l.finish()
}

// loader gathers files.
type loader struct {
	files []*Pack
	probs []Problem
	src   sources
}

// path reads a file, or a folder's packs; shown is put before names in messages.
func (l *loader) path(fsys fs.FS, name, shown string) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		l.unreadable(filepath.Join(shown, name), err)
		return
	}
	if !info.IsDir() {
		l.file(fsys, name, shown)
		return
	}
	found := false
	err = fs.WalkDir(fsys, name, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") && p != name && e.Name() != "." {
			return fs.SkipDir
		}
		if ext := path.Ext(p); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			found = true
			l.file(fsys, p, shown)
		}
		return nil
	})
	if err != nil {
		l.unreadable(filepath.Join(shown, name), err)
	} else if !found {
		l.unreadable(filepath.Join(shown, name), errors.New("the folder holds no pack"))
	}
}

func (l *loader) unreadable(file string, err error) {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	l.probs = append(l.probs, l.src.problem(Pos{File: file}, "unreadable", "cannot read it: %v", err))
}

// file reads one pack file.
func (l *loader) file(fsys fs.FS, name, shown string) {
	file := filepath.Join(shown, name)
	f, err := fsys.Open(name)
	if err != nil {
		l.unreadable(file, err)
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		l.unreadable(file, err)
		return
	}
	p, probs := parse(file, data, l.src)
	l.probs = append(l.probs, probs...)
	if p != nil {
		l.files = append(l.files, p)
	}
}

// finish merges what was read.
func (l *loader) finish() (*Packs, []Problem) {
	p, probs := assemble(l.files, l.src)
	l.probs = append(l.probs, probs...)
	sortProblems(l.probs)
	return p, l.probs
}

// parse reads one file's bytes. The pack is nil where nothing could be read.
func parse(file string, data []byte, src sources) (*Pack, []Problem) {
	at := Pos{File: file}
	if len(data) > maxFileBytes {
		return nil, []Problem{src.problem(at, "too-large", "the file is larger than %d bytes", maxFileBytes)}
	}
	if !utf8.Valid(data) {
		return nil, []Problem{src.problem(at, "yaml-syntax", "the file is not UTF-8")}
	}
	src[file] = strings.Split(string(data), "\n")
	var doc yaml.Node
	if err := unmarshal(data, &doc); err != nil {
		return nil, []Problem{src.problem(syntaxPos(file, err), "yaml-syntax", "%s", strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	d := &decoder{file: file, src: src}
	if len(doc.Content) == 0 {
		return nil, []Problem{src.problem(Pos{file, 1, 1}, "missing-key", "the file is empty")}
	}
	root := doc.Content[0]
	if !d.bounded(root) {
		return nil, d.probs
	}
	p := &Pack{}
	d.decode(root, reflect.ValueOf(p).Elem(), "pack")
	p.listPos = listPositions(d, root)
	for i := range p.Rules {
		d.checkRule(&p.Rules[i])
	}
	d.checkHead(p)
	return p, d.probs
}

// unmarshal parses YAML to nodes; the parser panics on some malformed input.
func unmarshal(data []byte, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	return yaml.Unmarshal(data, doc)
}

var yamlLine = regexp.MustCompile(`line (\d+):`)

// syntaxPos finds the line that the YAML parser names.
func syntaxPos(file string, err error) Pos {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return Pos{file, n, 1}
	}
	return Pos{file, 1, 1}
}

// bounded measures the document with aliases expanded, without expanding them: an alias counts as
// its anchor's nodes. It excludes anchors that hold themselves.
func (d *decoder) bounded(root *yaml.Node) bool {
	const busy = -1
	size := map[*yaml.Node]int{}
	ok := true
	var walk func(n *yaml.Node, depth int) int
	walk = func(n *yaml.Node, depth int) int {
		if !ok {
			return 0
		}
		if depth > maxDepth {
			d.problem(n, "too-deep", "values nest more than %d deep", maxDepth)
			ok = false
			return 0
		}
		if s, seen := size[n]; seen {
			if s == busy {
				d.problem(n, "alias-budget", "the anchor %q holds itself", n.Anchor)
				ok = false
			}
			return s
		}
		size[n] = busy
		total := 1
		if n.Kind == yaml.AliasNode {
			total += walk(n.Alias, depth+1)
		}
		for _, c := range n.Content {
			total += walk(c, depth+1)
		}
		if total > maxNodes && ok {
			d.problem(n, "alias-budget", "the values expand to more than %d nodes", maxNodes)
			ok = false
		}
		size[n] = total
		return total
	}
	walk(root, 0)
	return ok
}

// listPositions finds where each list stands, for findings about lists.
func listPositions(d *decoder, root *yaml.Node) map[string]Pos {
	out := map[string]Pos{}
	if root.Kind != yaml.MappingNode {
		return out
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if v := resolve(root.Content[i+1]); root.Content[i].Value == "lists" && v.Kind == yaml.MappingNode {
			for j := 0; j+1 < len(v.Content); j += 2 {
				out[v.Content[j].Value] = d.pos(v.Content[j])
			}
		}
	}
	return out
}

// assemble merges the files of each pack, applies overlays and checks what spans files.
func assemble(files []*Pack, src sources) (*Packs, []Problem) {
	a := &assembler{src: src, byID: map[string]*Pack{}, ruleAt: map[string]Pos{}}
	for _, f := range files {
		a.add(f)
	}
	p := &Packs{src: src}
	for _, pk := range a.byID {
		p.packs = append(p.packs, pk)
	}
	sort.Slice(p.packs, func(i, j int) bool { return p.packs[i].ID < p.packs[j].ID })
	for _, pk := range p.packs {
		for i := range pk.Rules {
			pk.Rules[i].pack = pk
		}
	}
	a.overlays(p)
	a.references(p)
	sortProblems(a.probs)
	return p, a.probs
}
