package normalize

import (
	"regexp"
	"strings"
)

// callArgs are the arguments of a call; one that is not constant is opaque.
type callArg struct {
	c     constant
	known bool
	src   string
}

// argsAt reads the arguments from the bracket at token i.
func (a *analysis) argsAt(i int) ([]callArg, int) {
	var out []callArg
	for j := i + 1; j < len(a.f.toks) && len(out) < 64; {
		if a.f.is(j, ")") || a.f.is(j, "]") {
			return out, j + 1
		}
		start := a.f.at(j).start
		if a.f.at(j).kind == tokName && a.f.is(j+1, "=") && !a.f.is(j+2, "=") {
			j += 2 // a keyword
		}
		if a.f.is(j, "[") {
			elems, k := a.argsAt(j)
			c := constant{lists: true}
			for _, e := range elems {
				if !e.known {
					e.c = text("<" + clip(e.src, 40) + ">")
				}
				c.list = append(c.list, e.c)
			}
			out = append(out, callArg{c: c, known: true})
			j = k
		} else if c, k, ok := a.f.expr(j); ok && (a.f.is(k, ",") || a.f.is(k, ")") || a.f.is(k, "]")) {
			out = append(out, callArg{c: c, known: true})
			j = k
		} else {
			k := a.skip(j)
			out = append(out, callArg{src: a.src[min(start, len(a.src)):min(max(start, a.f.at(k-1).end), len(a.src))]})
			j = k
		}
		if a.f.is(j, ",") {
			j++
		} else if !a.f.is(j, ")") && !a.f.is(j, "]") {
			j = a.skip(j)
			if a.f.is(j, ",") {
				j++
			}
		}
	}
	return out, i + 1
}

// skip gives the next comma or closing bracket at this level.
func (a *analysis) skip(i int) int {
	depth := 0
	for ; i < len(a.f.toks); i++ {
		t := a.f.toks[i]
		if t.kind != tokPunct {
			continue
		}
		switch t.text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth == 0 {
				return i
			}
			depth--
		case ",":
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// calls reads the calls that run commands, run code or change files.
func (a *analysis) calls() {
	for i := 0; i < len(a.f.toks); i++ {
		t := a.f.toks[i]
		if t.kind != tokName {
			continue
		}
		name, open := t.text, i+1
		if name == "getattr" && a.f.is(open, "(") { // getattr(os, "system")("...")
			args, next := a.argsAt(open)
			if len(args) > 1 && args[1].known {
				name, open = args[1].c.s, next
			}
		}
		if name == "open" && a.s.Lang == "perl" {
			a.pipeOpen(open)
		}
		if a.f.is(open, "(") && (runnable(name) || name == "execute" && a.s.Lang == "lua") {
			args, _ := a.argsAt(open)
			a.call(name, i, args)
			continue
		}
		// Perl, Ruby and PHP call without brackets: system "git log".
		if (name == "system" || name == "exec" || name == "unlink" || name == "command" && a.s.Lang == "lisp") && a.f.at(open).kind == tokString {
			if c, _, ok := a.f.expr(open); ok {
				a.call(name, i, []callArg{{c: c, known: true}})
			}
		}
	}
}

func runnable(name string) bool {
	return execCall(name) || fileCall(name) || name == "eval" || name == "compile" || name == "runpy" || name == "Function"
}

func execCall(name string) bool {
	switch name {
	case "system", "popen", "Popen", "run", "call", "check_output", "check_call", "getoutput", "getstatusoutput", "execSync", "exec", "execFile", "execFileSync",
		"spawn", "spawnSync", "Command", "CommandContext", "shell_exec", "passthru", "proc_open", "capture2", "capture3", "capture2e", "execv", "execvp", "execl", "execlp", "create_subprocess_shell", "create_subprocess_exec", "os_system", "pty_spawn", "new":
		return true
	}
	return false
}

func (a *analysis) call(name string, at int, args []callArg) {
	if name == "new" && !(at > 2 && a.f.at(at-3).text == "Command") {
		return
	}
	switch {
	case fileCall(name):
		a.fileCall(name, at, args)
		return
	case len(args) == 0:
		return
	case name == "eval" || name == "exec" && (a.s.Lang == "python" || a.s.Lang == "ruby"), name == "compile", name == "Function":
		if args[0].known && !args[0].c.lists && !args[0].c.num && len(args[0].c.s) > 8 {
			a.r.script("", a.s.Lang, args[0].c.s, a.frame.wrapped("eval"))
		}
		if a.s.Lang != "ruby" {
			return
		}
	}
	first := args[0]
	via := a.frame.wrapped(a.s.Lang)
	via.exact, via.span.Exact = false, false
	switch {
	case !first.known:
		return
	case first.c.lists && name != "Command":
		a.argv(first.c.list, via)
	case name == "Command" || name == "new" || name == "CommandContext" || strings.HasPrefix(name, "execv") || strings.HasPrefix(name, "execl"),
		len(args) > 1 && args[1].known && args[1].c.lists, len(args) > 1 && args[1].known && !args[1].c.num && (manyWords(name) || name == "exec" && (a.s.Lang == "perl" || a.s.Lang == "ruby")):
		words := []constant{first.c}
		for _, x := range args[1:] {
			switch {
			case !x.known:
				words = append(words, text("<"+clip(x.src, 40)+">"))
			case x.c.lists:
				words = append(words, x.c.list...)
			default:
				words = append(words, x.c)
			}
		}
		if strings.HasPrefix(name, "exec") && len(words) > 1 && strings.HasPrefix(name, "execv") || strings.HasPrefix(name, "execl") {
			words = append(words[:1], words[min(2, len(words)):]...)
		}
		if name == "new" {
			words = append(words, a.chained(at)...)
		}
		a.argv(words, via)
	default:
		if s := first.c.str(); s != "" && !first.c.num {
			a.r.source(&unit{src: s}, via, val{})
		}
	}
}

// pipeOpen reads perl's open(F, "-|", "cmd") and open F, "cmd|".
func (a *analysis) pipeOpen(i int) {
	var words []string
	for j := i; j < i+16 && !a.f.is(j, ";") && j < len(a.f.toks); j++ {
		if c, _, ok := a.f.expr(j); ok && a.f.at(j).kind == tokString {
			words = append(words, strings.TrimSpace(c.s))
		}
	}
	if len(words) == 0 {
		return
	}
	via := a.frame.wrapped(a.s.Lang)
	via.exact, via.span.Exact = false, false
	switch s := words[0]; {
	case (s == "-|" || s == "|-") && len(words) > 1:
		a.r.source(&unit{src: strings.Join(words[1:], " ")}, via, val{})
	case strings.HasSuffix(s, "|") || strings.HasPrefix(s, "|"):
		a.r.source(&unit{src: strings.Trim(s, "|")}, via, val{})
	}
}

// manyWords are calls that take the program's words one by one.
func manyWords(name string) bool {
	switch name {
	case "system", "capture2", "capture3", "capture2e", "create_subprocess_exec":
		return true
	}
	return false
}

// chained reads Rust's Command::new("git").arg("log").args(["--all"]).
func (a *analysis) chained(at int) []constant {
	var out []constant
	_, i := a.argsAt(at + 1)
	for n := 0; n < 32 && a.f.is(i, ".") && a.f.at(i+1).kind == tokName && a.f.is(i+2, "("); n++ {
		name := a.f.at(i + 1).text
		args, next := a.argsAt(i + 2)
		if name == "arg" || name == "args" {
			for _, x := range args {
				if x.known && x.c.lists {
					out = append(out, x.c.list...)
				} else {
					out = append(out, x.c)
				}
			}
		}
		i = next
	}
	return out
}

func (a *analysis) argv(list []constant, f frame) {
	words := make([]arg, 0, len(list))
	for _, c := range list {
		if c.lists {
			return
		}
		s := c.str()
		words = append(words, arg{s: s, raw: s, opaque: strings.HasPrefix(s, "<") && strings.HasSuffix(s, ">")})
	}
	if len(words) > 0 && words[0].s != "" {
		a.r.simple(words, nil, f, val{})
	}
}

// decoded reads commands that were found encoded.
func (a *analysis) decoded() {
	via := a.frame.wrapped(a.s.Lang)
	via.exact, via.span.Exact = false, false
	for _, l := range a.lits {
		if strings.HasPrefix(l.value, "git ") || strings.HasPrefix(l.value, "cat ") {
			if a.src[min(l.start, len(a.src)):min(l.end, len(a.src))] != l.value && !strings.Contains(a.src, l.value) {
				a.r.source(&unit{src: l.value}, via, val{})
			}
		}
	}
}

// shells reads backquoted commands.
func (a *analysis) shells() {
	via := a.frame.wrapped(a.s.Lang)
	via.exact, via.span.Exact = false, false
	for _, t := range a.f.toks {
		if t.kind == tokShell {
			s, _ := a.f.interpolate(t.text)
			a.r.source(&unit{src: s}, via, val{})
		}
	}
	if a.s.Lang == "perl" || a.s.Lang == "ruby" {
		for _, m := range quotedShell.FindAllStringSubmatch(a.src, 8) {
			a.r.source(&unit{src: strings.Join(m[1:], "")}, via, val{})
		}
	}
	if a.s.Lang == "awk" {
		if a.awkPipes(via) {
			return
		}
		for _, m := range awkShell.FindAllStringSubmatch(a.src, 8) {
			a.r.source(&unit{src: m[1]}, via, val{})
		}
	}
}

var (
	quotedShell = regexp.MustCompile(`(?:%x|\bqx)(?:\(([^)]{1,400})\)|\{([^}]{1,400})\}|\[([^\]]{1,400})\]|/([^/]{1,400})/)`)
	awkShell    = regexp.MustCompile(`(?:"([^"]{1,400})"\s*\|\s*getline)`)
)
