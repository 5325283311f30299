package grading

import (
	"context"
	"path"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"
)

// pinned says why a file steers the test process from inside the tree, and so is taken from the base
// whatever the patch made of it; "" for all others. Python's own start-up and pytest's are known.
func pinned(name string, base listing) string {
	file := path.Base(name)
	switch {
	case isJunk(name):
		return "compiled or cached"
	case file == "conftest.py" || strings.HasPrefix(file, "conftest."):
		return "pytest loads it before the tests"
	case file == "pytest.ini" || file == ".pytest.ini" || file == "pytest.toml" || file == ".pytest.toml":
		return "configures pytest"
	case file == "pyvenv.cfg":
		return "Python runs it at start-up"
	}
	for _, part := range strings.Split(name, "/") {
		if stem, _, _ := strings.Cut(part, "."); stem == "sitecustomize" || stem == "usercustomize" {
			return "Python runs it at start-up"
		}
		if part == "site-packages" || part == "dist-packages" {
			return "belongs to an installed package"
		}
		if strings.HasSuffix(part, ".egg-info") || strings.HasSuffix(part, ".dist-info") || strings.HasSuffix(part, ".egg-link") {
			return "can register a plugin"
		}
	}
	if inVirtualenv(name, base) {
		return "belongs to the environment that the tests run in"
	}
	if shadows(name, base) {
		return "takes the place of a module that the runner imports"
	}
	return ""
}

// inVirtualenv reports whether name lies in a virtual environment that the base has.
func inVirtualenv(name string, base listing) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := base[dir+"/pyvenv.cfg"]; ok {
			return true
		}
	}
	return false
}

// importRoots are the folders of a project that Python looks in before its own library.
var importRoots = []string{"", "src/", "lib/"}

// shadows reports whether name is part of a new top-level module that bears the name of one of the
// standard library's or of the runner's. One that the base has too is the project's own business.
func shadows(name string, base listing) bool {
	for _, root := range importRoots {
		rest, ok := strings.CutPrefix(name, root)
		if !ok {
			continue
		}
		top, _, isFolder := strings.Cut(rest, "/")
		module := top
		if !isFolder {
			if !strings.HasSuffix(top, ".py") && !strings.HasSuffix(top, ".so") {
				continue
			}
			module, _, _ = strings.Cut(top, ".")
		}
		if runnerModules[module] && !hasModule(base, root, module) {
			return true
		}
	}
	return false
}

func hasModule(base listing, root, module string) bool {
	if _, ok := base[root+module+".py"]; ok {
		return true
	}
	_, ok := base[root+module+"/__init__.py"]
	return ok
}

// mixed are files that configure the runner beside much else: only the runner's part is held fast.
var mixed = map[string]func(base, now []byte) bool{
	"pyproject.toml": samePyproject,
	"setup.cfg":      sameINI,
	"tox.ini":        sameINI,
}

// pinMixed takes mixed files from the base where their pytest part differs from the base's, or
// cannot be read.
func (r *repo) pinMixed(ctx context.Context, files, base listing, notes *noteList) error {
	for name, e := range files {
		same, ok := mixed[path.Base(name)]
		if !ok || base[name] == e {
			continue
		}
		before, known := base[name]
		var old []byte
		var err error
		if known {
			if old, err = r.blob(ctx, before.hash, maxPatch); err != nil {
				return err
			}
		}
		now, err := r.blob(ctx, e.hash, maxPatch)
		if err != nil {
			return err
		}
		if len(now) < 1<<20 && e.mode != "120000" && same(old, now) {
			continue
		}
		notes.add("pinned %s: its pytest configuration is not the base's", name)
		if known {
			files[name] = before
		} else {
			delete(files, name)
		}
	}
	for name, e := range base {
		if _, ok := mixed[path.Base(name)]; !ok {
			continue
		}
		if _, ok := files[name]; !ok {
			files[name] = e
			notes.add("pinned %s: it was removed", name)
		}
	}
	return nil
}

// samePyproject reports whether two pyproject.toml agree in their tool.pytest tables.
func samePyproject(base, now []byte) bool {
	a, okA := pytestTable(base)
	b, okB := pytestTable(now)
	return okA && okB && reflect.DeepEqual(a, b)
}

func pytestTable(text []byte) (any, bool) {
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		return nil, false
	}
	tool, _ := doc["tool"].(map[string]any)
	return tool["pytest"], true
}

// sameINI reports whether two INI files agree, byte for byte, in every section whose heading names
// pytest. Headings are read more broadly than pytest reads them.
func sameINI(base, now []byte) bool { return pytestSections(base) == pytestSections(now) }

func pytestSections(text []byte) string {
	var kept strings.Builder
	inside := false
	for _, line := range strings.FieldsFunc(string(text), func(r rune) bool {
		return r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == '\u0085' || r == '\u2028' || r == '\u2029' || (r >= 0x1c && r <= 0x1e)
	}) {
		if strings.HasPrefix(strings.TrimSpace(line), "[") {
			inside = strings.Contains(line, "pytest")
		}
		if inside {
			kept.WriteString(line + "\n")
		}
	}
	return kept.String()
}
