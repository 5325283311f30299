package normalize

import (
	"strings"

	"proctor/rules"
)

// runners reads what make, npm, go, cargo, tox and test programs would run: recipes and scripts of the
// tree, and code that the rollout wrote.
func (r *run) runners(name string, args []arg, f frame, in val) {
	g := f.wrapped(name)
	g.exact, g.span.Exact = false, false
	switch name {
	case "make", "gmake":
		r.makeRun(args, g, in)
	case "npm", "yarn", "pnpm":
		r.npmRun(args, g)
	case "pytest", "py.test", "nosetests":
		r.testRun("python", args[1:], g)
	case "go":
		r.goRun(args, g)
	case "cargo":
		if len(args) > 1 && (args[1].s == "test" || args[1].s == "run" || args[1].s == "build" || args[1].s == "bench") {
			r.ownCode(r.st.cwd, g, ".rs")
		}
	case "tox", "nox":
		if c := r.contentOf(r.abs("tox.ini")); c.s != "" {
			r.toxDeps(c.s)
		}
	}
}

// makeRun reads the recipes of the Makefile's targets that were asked for.
func (r *run) makeRun(args []arg, f frame, in val) {
	dir, file := r.st.cwd, ""
	want := map[string]bool{}
	for i := 1; i < len(args); i++ {
		s := args[i].s
		switch {
		case (s == "-C" || s == "--directory") && i+1 < len(args):
			i++
			dir = absFrom(dir, args[i].s)
		case s == "-f" || s == "--file" || s == "--makefile" || s == "--eval" || s == "-E":
			i++
		case !strings.HasPrefix(s, "-") && !isAssignment(s):
			want[s] = true
		}
	}
	named, eval := makeOptions(args)
	switch named {
	case "":
	case "-":
		file = "/dev/stdin"
	default:
		file = absFrom(dir, named)
	}
	names := []string{file}
	if file == "" {
		names = []string{dir + "/GNUmakefile", dir + "/makefile", dir + "/Makefile"}
	}
	sc := r.st.enter()
	defer r.st.leave(sc)
	r.st.cwd = dir
	for _, p := range names {
		c := r.contentOf(p)
		if p == "/dev/stdin" {
			c = in
		}
		if c.s != "" || eval != "" {
			c.s += "\n" + eval
			for _, line := range makeShells(c.s) {
				r.source(&unit{src: line}, f, val{})
			}
			for _, line := range recipes(c.s, want) {
				r.source(&unit{src: line}, f, val{})
			}
			break
		}
	}
	r.ownCode(dir, f, ".c", ".h", ".cc", ".cpp", ".sh", ".py")
}

// recipes gives the recipe lines of the wanted targets and of what they need; all of the first
// target where none is named. Plain variables are put in.
func recipes(makefile string, want map[string]bool) []string {
	vars := map[string]string{}
	var targets []string
	lines := map[string][]string{}
	needs := map[string][]string{}
	var cur []string
	for _, line := range strings.Split(strings.ReplaceAll(makefile, "\\\n", " "), "\n") {
		if strings.HasPrefix(line, "\t") {
			for _, t := range cur {
				lines[t] = append(lines[t], strings.TrimLeft(strings.TrimSpace(line), "@-+"))
			}
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		if name, value, ok := strings.Cut(line, "="); ok && !strings.Contains(strings.TrimRight(name, ":?+ "), ":") {
			vars[strings.TrimRight(name, ":?+ ")] = strings.TrimSpace(value)
			cur = nil
			continue
		}
		head, deps, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		cur = strings.Fields(head)
		deps, inline, _ := strings.Cut(deps, ";")
		for _, t := range cur {
			if t[0] != '.' {
				targets = append(targets, t)
			}
			needs[t] = strings.Fields(deps)
			if inline != "" {
				lines[t] = append(lines[t], strings.TrimSpace(inline))
			}
		}
	}
	if len(want) == 0 && len(targets) > 0 {
		want = map[string]bool{targets[0]: true}
	}
	var out []string
	seen := map[string]bool{}
	var visit func(t string, depth int)
	visit = func(t string, depth int) {
		if seen[t] || depth > 8 || len(out) > 64 {
			return
		}
		seen[t] = true
		for _, d := range needs[t] {
			visit(d, depth+1)
		}
		for _, l := range lines[t] {
			out = append(out, makeVars(l, vars))
		}
	}
	for _, t := range targets {
		if want[t] {
			visit(t, 0)
		}
	}
	return out
}

func makeVars(s string, vars map[string]string) string {
	for range 4 {
		i := strings.Index(s, "$(")
		if i < 0 {
			break
		}
		changed := false
		for k, v := range vars {
			if strings.Contains(s, "$("+k+")") {
				s = clip(strings.ReplaceAll(s, "$("+k+")", v), maxValue)
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	return strings.ReplaceAll(s, "$$", "$")
}

// goRun reads go run FILE and the tests that go test would build, where the rollout wrote them.
func (r *run) goRun(args []arg, f frame) {
	if len(args) < 2 {
		return
	}
	switch args[1].s {
	case "run":
		for _, a := range args[2:] {
			switch {
			case strings.HasSuffix(a.s, ".go"):
				r.scriptFile("go", r.abs(a.s), f, val{})
			case !strings.HasPrefix(a.s, "-"):
				r.ownCode(r.abs(a.s), f, ".go")
			}
		}
	case "test", "build", "generate", "vet":
		dir := r.st.cwd
		for _, a := range args[2:] {
			if strings.HasPrefix(a.s, "./") || a.s == "." {
				dir = r.abs(strings.TrimSuffix(strings.TrimSuffix(a.s, "..."), "/"))
			}
		}
		r.ownCode(dir, f, ".go")
	}
}

// ownCode reads the files below dir that the rollout wrote, at most 8 of them.
func (r *run) ownCode(dir string, f frame, exts ...string) {
	var found []string
	r.st.files.each(func(p string, fl file) bool {
		if fl.content != "" && rules.Below(p, dir) {
			for _, e := range exts {
				if strings.HasSuffix(p, e) {
					found = append(found, p)
				}
			}
		}
		return len(found) < 64
	})
	sortStrings(found)
	for _, p := range found[:min(len(found), 8)] {
		fl, _ := r.st.files.get(p)
		lang := langOf(p, fl.content)
		if lang == "" || lang == "sh" || r.scripts[p] {
			continue
		}
		r.once(p)
		r.script(p, lang, fl.content, f)
	}
}

func (r *run) toxDeps(text string) {
	for _, line := range strings.Split(text, "\n") {
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(key) != "deps" && !strings.HasPrefix(line, " ") {
			continue
		}
		if strings.TrimSpace(key) == "deps" {
			r.addPackage(-1, "pip", strings.TrimSpace(value))
		}
	}
}
