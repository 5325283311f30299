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
	case name == "lua" || strings.HasPrefix(name, "luajit"), strings.HasPrefix(name, "lua5"), name == "texlua":
		return "lua"
	case name == "Rscript":
		return "Rscript"
	case name == "julia", name == "groovy", name == "elixir":
		return name
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
