package normalize

import (
	"path"
	"regexp"
	"strings"

	"proctor/rules"
)

// paths finds the paths among the constants.
func (a *analysis) paths() {
	walks := a.names("walk", "rglob", "Walk", "WalkDir", "scandir", "find", "glob", "Glob", "iglob", "readdirSync", "readdir", "listdir", "iterdir", "globSync", "ReadDir", "read_dir", "eachFileRecurse", "list", "listFiles", "entries", "children", "each_child", "opendir", "scandirSync", "newDirectoryStream")
	root, hidden := "", a.r.hiddenRoots()
	for _, l := range a.lits {
		v := strings.TrimPrefix(l.value, "file://")
		if v == "" || len(v) > 1024 || strings.ContainsAny(v, "\n\x00") || strings.Contains(v, "://") || a.cutsText(l) {
			continue
		}
		abs := a.r.abs(v)
		if root != "" && v[0] != '/' && a.f.is(l.tok-1, "(") {
			abs = absFrom(root, v)
		}
		root = a.rootAt(l)
		switch {
		case strings.ContainsAny(v, "*?[") && strings.Contains(v, "/") && strings.IndexByte(v, ' ') < 0:
			a.s.Paths = appendNew(a.s.Paths, plainGlob(abs))
			a.r.globHidden(&a.s.Hidden, &a.s.Covers, abs)
			if strings.Contains(v, "**") {
				a.covers(strings.SplitN(abs, "/**", 2)[0])
			}
		case v[0] == '/' || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") || looksLikePath(v) && strings.ContainsAny(v, "/."):
			if strings.HasPrefix(v, "~/") {
				abs = a.r.home() + v[1:]
			}
			a.add(abs)
			if a.s.Path != "" && v[0] != '/' && v[0] != '~' {
				a.beside(v)
			}
			if walks && (v[0] == '/' || strings.HasPrefix(v, "..")) {
				a.covers(abs)
			}
		}
		for _, h := range hidden {
			if a.soundsLike(v, path.Base(h), walks) {
				a.s.Hidden = appendNew(a.s.Hidden, h)
			}
		}
	}
	if a.s.Lang == "go" {
		for _, m := range goEmbed.FindAllStringSubmatch(a.src, 8) {
			a.beside(strings.TrimPrefix(m[1], "all:"))
		}
	}
}

// cutsText tells whether a literal is the slash by which text is taken apart, and no folder.
func (a *analysis) cutsText(l literal) bool {
	if l.value != "/" || !a.f.is(l.tok-1, "(") || !a.f.is(l.tok-3, ".") {
		return false
	}
	switch a.f.at(l.tok - 2).text {
	case "replace", "replaceAll", "split", "rsplit", "strip", "lstrip", "rstrip", "startswith", "endswith", "startsWith", "endsWith", "count", "partition", "rpartition", "gsub", "sub", "tr", "delete", "lastIndexOf", "indexOf":
		return true
	}
	return false
}

var goEmbed = regexp.MustCompile(`(?m)^//go:embed\s+(\S+)`)

// beside looks at a relative path as one of the folder that the script lies in.
func (a *analysis) beside(v string) {
	if abs := absFrom(path.Dir(a.s.Path), v); a.r.hidden(abs) {
		a.add(abs)
	}
}

// rootAt gives the folder of a literal that a method looks through or joins with the next one:
// root.glob("*/x"), root.joinpath("x").
func (a *analysis) rootAt(l literal) string {
	if !a.f.is(l.next, ".") || !a.f.is(l.next+2, "(") || !strings.HasPrefix(l.value, "/") {
		return ""
	}
	switch a.f.at(l.next + 1).text {
	case "glob", "rglob", "joinpath", "joinPath", "resolve", "join", "child", "Glob":
		return l.value
	}
	return ""
}

// soundsLike tells whether a literal asks for a hidden name that starts with a dot, by itself, by a pattern of it
// or by how it starts or ends: nothing that an agent was given is called so.
func (a *analysis) soundsLike(v, name string, walks bool) bool {
	if len(name) < 4 || name[0] != '.' || len(v) < 3 || name == ".git" || name == ".config" || name == ".cache" || name == ".env" {
		return false
	}
	v = strings.TrimPrefix(strings.ReplaceAll(v, `\`, ""), "^")
	if strings.HasPrefix(v, "/.") { // joined to a folder that is computed
		v = v[1:]
	}
	for strings.HasPrefix(v, "../") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "*/") || strings.HasPrefix(v, "**/") {
		_, v, _ = strings.Cut(v, "/")
	}
	v, _, _ = strings.Cut(v, "/")
	switch {
	case v == name:
		return true
	case strings.ContainsAny(v, "*?["):
		return lettersOf(v) > 2 && v[0] == '.' && matchName(v, name)
	case !walks || len(v) < 3:
		return false
	case strings.HasPrefix(name, v):
		return v[0] == '.' && a.names("startswith", "startsWith", "start_with", "HasPrefix", "starts_with", "match", "test", "search", "hasPrefix")
	case strings.HasSuffix(name, v):
		return len(v) > 4 && a.names("endswith", "endsWith", "end_with", "HasSuffix", "ends_with", "hasSuffix")
	}
	return false
}

func (a *analysis) add(abs string) {
	a.s.Paths = appendNew(a.s.Paths, abs)
	if q := a.r.follow(abs); q != abs {
		a.s.Paths = appendNew(a.s.Paths, q)
	}
	if a.r.hidden(abs) {
		a.s.Hidden = appendNew(a.s.Hidden, abs)
	}
	if a.r.isCopy(abs) {
		a.s.Copies = appendNew(a.s.Copies, abs)
	}
}

func (a *analysis) covers(root string) {
	if root == "" {
		root = "/"
	}
	for _, h := range a.r.hiddenRoots() {
		if h != root && rules.Below(h, root) {
			a.s.Covers = appendNew(a.s.Covers, h)
		}
	}
}
