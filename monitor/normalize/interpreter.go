package normalize

import (
	"strings"

	"proctor/rules"
)

// langOfProgram tells which language a program interprets; "" for none.
func langOfProgram(name string) string {
	switch {
	case strings.HasPrefix(name, "python"), name == "pypy", name == "pypy3", name == "ipython", name == "ipython3":
		return "python"
	case name == "node", name == "nodejs", name == "deno", name == "bun", name == "tsx", name == "ts-node":
		return "node"
	case strings.HasPrefix(name, "perl"):
		return "perl"
	case strings.HasPrefix(name, "ruby"):
		return "ruby"
	case name == "php":
		return "php"
	case name == "lua" || strings.HasPrefix(name, "luajit"):
		return "lua"
	case name == "Rscript":
		return "Rscript"
	case name == "awk", name == "gawk", name == "mawk", name == "nawk":
		return "awk"
	}
	return ""
}

// interpreter reads the code that an interpreter would run: from an option, a file, a module or stdin.
func (r *run) interpreter(name string, args []arg, env map[string]string, f frame, in val) {
	lang := langOfProgram(name)
	if lang == "" {
		return
	}
	g := f.wrapped(name)
	g.exact, g.span.Exact = false, false
	if lang == "awk" {
		r.awk(args, g)
		return
	}
	rest := args[1:]
	modules := ""
	for len(rest) > 0 {
		s := rest[0].s
		switch {
		case codeOption(lang, s):
			if len(rest) > 1 {
				r.script("", lang, modules+rest[1].s, g)
				r.inPlace(lang, args, rest[1].s)
			}
			return
		case lang == "python" && strings.HasPrefix(s, "-c") && len(s) > 2:
			r.script("", lang, s[2:], g)
			return
		case strings.HasPrefix(s, "--eval=") || strings.HasPrefix(s, "--print="):
			_, code, _ := strings.Cut(s, "=")
			r.script("", lang, code, g)
			return
		case lang == "python" && s == "-m":
			if len(rest) > 1 {
				r.module(rest[1:], g, in)
			}
			return
		case s == "-":
			r.stdinScript(lang, g, in)
			return
		case lang == "perl" && strings.HasPrefix(s, "-M"):
			modules += "use " + s[2:] + "; "
		case lang == "ruby" && strings.HasPrefix(s, "-r") && len(s) > 2:
			modules += "require '" + s[2:] + "'; "
		case lang == "python" && (s == "-W" || s == "-X"), lang == "node" && (s == "-r" || s == "--require" || s == "--import"), lang == "perl" && s == "-I":
			rest = rest[1:]
		case lang == "node" && name != "node" && name != "nodejs" && (s == "run" || s == "eval"):
			if s == "eval" && len(rest) > 1 {
				r.script("", lang, rest[1].s, g)
				return
			}
		case !strings.HasPrefix(s, "-"):
			r.scriptFile(lang, r.abs(s), g, in)
			return
		}
		if len(rest) > 0 {
			rest = rest[1:]
		}
	}
	r.stdinScript(lang, g, in)
}

// codeOption tells whether an option is followed by code: -c, -e, perl's -0pi -e and -ne.
func codeOption(lang, s string) bool {
	if lang == "python" {
		return len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.HasSuffix(s, "c") && strings.Trim(s[1:len(s)-1], "BbdEhiIOPqsSuvVx") == ""
	}
	switch s {
	case "-e", "-E", "--eval", "-p", "--print", "-r", "-pe", "-ne":
		return !(s == "-p" && lang != "node" || s == "-r" && lang != "php")
	}
	return lang == "perl" && len(s) > 2 && s[0] == '-' && s[1] != '-' && s[1] != 'I' && s[1] != 'M' && (strings.HasSuffix(s, "e") || strings.HasSuffix(s, "E")) && len(s) < 10 ||
		lang == "ruby" && len(s) > 2 && len(s) < 6 && s[0] == '-' && s[1] != '-' && s[1] != 'r' && strings.HasSuffix(s, "e")
}

func (r *run) stdinScript(lang string, f frame, in val) {
	if in.s != "" {
		r.script("", lang, in.s, f)
	}
}

func (r *run) scriptFile(lang, p string, f frame, in val) {
	if p == "/dev/stdin" {
		r.stdinScript(lang, f, in)
		return
	}
	if r.scripts[p] {
		return
	}
	content := r.contentOf(p)
	if content.s == "" {
		if r.hidden(p) {
			r.addScript(rules.Script{Path: p, Lang: lang, Hidden: []string{p}}, f)
		}
		return
	}
	r.once(p)
	r.script(p, lang, content.s, f)
}

// module is python -m: pytest and unittest run test files, others a module of the tree.
func (r *run) module(words []arg, f frame, in val) {
	switch words[0].s {
	case "pytest", "unittest", "nose", "nose2", "trial":
		r.testRun("python", words[1:], f)
		return
	case "pip", "venv", "http.server", "json.tool", "timeit", "cProfile", "pdb", "trace", "compileall", "py_compile":
		for _, w := range words[1:] {
			if strings.HasSuffix(w.s, ".py") {
				r.scriptFile("python", r.abs(w.s), f, in)
			}
		}
		return
	}
	rel := strings.ReplaceAll(words[0].s, ".", "/")
	for _, p := range [...]string{rel + ".py", rel + "/__main__.py"} {
		r.scriptFile("python", r.abs(p), f, in)
	}
}

// testRun reads the test files that a run names, and the support files beside them, where the
// rollout wrote them.
func (r *run) testRun(lang string, words []arg, f frame) {
	for _, w := range words {
		s, _, _ := strings.Cut(w.s, "::")
		if strings.HasPrefix(s, "-") || s == "" {
			continue
		}
		p := r.abs(s)
		if fl, ok := r.st.files.get(r.follow(p)); ok && fl.content != "" && langOf(p, fl.content) == lang {
			r.scriptFile(lang, p, f, val{})
		}
	}
}

// awk reads an awk program and the files that it names.
func (r *run) awk(args []arg, f frame) {
	for i := 1; i < len(args); i++ {
		s := args[i].s
		switch {
		case s == "-F" || s == "-v":
			i++
		case s == "-f" || s == "--file":
			if i+1 < len(args) {
				r.scriptFile("awk", r.abs(args[i+1].s), f, val{})
			}
			return
		case strings.HasPrefix(s, "-"):
		default:
			if strings.ContainsAny(s, "\"|") && (strings.Contains(s, "getline") || strings.Contains(s, "system") || strings.Contains(s, "/inet")) {
				r.script("", "awk", s, f)
			}
			return
		}
	}
}

// inPlace records the files that perl -i or ruby -i edits.
func (r *run) inPlace(lang string, args []arg, code string) {
	if lang != "perl" && lang != "ruby" {
		return
	}
	inPlace, seen := false, false
	for _, a := range args[1:] {
		s := a.s
		switch {
		case !seen && strings.HasPrefix(s, "-") && strings.Contains(s, "i") && !strings.HasPrefix(s, "-I"):
			inPlace = true
		case s == code:
			seen = true
		case seen && inPlace && !strings.HasPrefix(s, "-"):
			removed, added := substitution(code)
			r.edit(rules.File{Op: "edit", Path: r.abs(s), Added: added, Removed: removed}, false)
		}
	}
}

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
		case (s == "-f" || s == "--file") && i+1 < len(args):
			i++
			if args[i].s == "-" {
				args[i].s = "/dev/stdin"
			}
			file = absFrom(dir, args[i].s)
		case !strings.HasPrefix(s, "-") && !isAssignment(s):
			want[s] = true
		}
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
		if c.s != "" {
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
		if fl.content != "" && under(p, dir) {
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
