package normalize

import (
	"strings"

	"proctor/rules"
)

// A console is a program with a command language of its own, given on the command line, in a file or on stdin,
// some of whose commands run a shell, read a file or run code.
type console struct {
	text  []string // options followed by commands
	files []string // options followed by a file of commands
	words bool     // operands are commands too
	stdin bool
	shell []string // commands whose rest is shell source
	read  []string // commands whose rest names a file that is read
	write []string // and that is written
	code  []string // commands whose rest is code of lang
	lang  string
	calls []string // functions of a constant path: readfile('/x')
	bars  bool     // vim: commands stand between bars, behind ranges
	ed    bool     // text follows a, i and c, up to a lone dot
}

var editorConsole = console{
	text: []string{"-c", "--cmd", "+"}, files: []string{"-S", "-s"}, stdin: true, bars: true,
	shell: []string{"!", "r !", "read !", "w !", "terminal ", "ter "},
	read:  []string{"r ", "read ", "e ", "e! ", "edit ", "sp ", "split ", "vs ", "vsplit ", "view ", "sv ", "tabe ", "tabedit ", "tabnew ", "new ", "so ", "source ", "find ", "diffsplit ", "bad "},
	write: []string{"w ", "w! ", "write ", "write! ", "sav ", "saveas ", "w >>", "wq "},
	code:  []string{"py3 ", "py ", "python3 ", "python ", "pythonx ", "pyx "}, lang: "python", calls: []string{"readfile(", "system(", "systemlist("},
}

// consoleOf gives how a program's commands are read; nil where it has none.
func consoleOf(name string) *console {
	switch name {
	case "vim", "vi", "ex", "nvim", "view", "vimdiff", "gvim":
		c := editorConsole
		return &c
	case "ed", "red":
		return &console{stdin: true, ed: true, bars: true, shell: []string{"!", "r !", "w !", "e !"}, read: []string{"r ", "e ", "E ", "f "}, write: []string{"w ", "wq ", "W "}}
	case "gdb":
		return &console{text: []string{"-ex", "--ex", "-iex", "-eval-command", "--eval-command"}, files: []string{"-x", "--command", "-ix"}, stdin: true,
			shell: []string{"shell ", "!", "pipe ", "make "}, read: []string{"source ", "file ", "symbol-file ", "restore ", "list "}, code: []string{"python ", "py ", "python-interactive ", "pi "}, lang: "python"}
	case "lldb":
		return &console{text: []string{"-o", "-O", "--one-line"}, files: []string{"-s", "--source"}, stdin: true,
			shell: []string{"platform shell ", "shell "}, read: []string{"command source ", "command script import "}, code: []string{"script "}, lang: "python"}
	case "sqlite3":
		return &console{words: true, text: []string{"-cmd"}, files: []string{"-init"}, stdin: true, shell: []string{".shell ", ".system ", ".once |", ".output |"},
			read: []string{".read ", ".import ", ".open ", ".load ", ".restore "}, write: []string{".output ", ".once ", ".backup ", ".save "}, calls: []string{"readfile(", "ATTACH ", "attach "}}
	case "psql":
		return &console{text: []string{"-c", "--command"}, files: []string{"-f", "--file"}, stdin: true, shell: []string{`\! `, `\o |`}, read: []string{`\i `, `\ir `}, write: []string{`\o `}, calls: []string{"pg_read_file(", "FROM ", "from ", "PROGRAM ", "program "}}
	case "mysql", "mariadb":
		return &console{text: []string{"-e", "--execute"}, stdin: true, shell: []string{"system ", `\! `}, read: []string{"source ", `\. `}, calls: []string{"load_file(", "LOAD_FILE(", "INFILE ", "infile "}}
	case "m4":
		return &console{stdin: true, calls: []string{"syscmd(", "esyscmd(", "include(", "sinclude("}}
	case "expect":
		return &console{text: []string{"-c"}, files: []string{"-f"}, stdin: true, shell: []string{"spawn ", "exec ", "system ", "send "}, calls: []string{"open ", "exec "}}
	case "tclsh", "wish", "jimsh":
		return &console{stdin: true, shell: []string{"exec "}, calls: []string{"exec ", "open ", "source ", "glob "}}
	case "less", "more", "most":
		return &console{text: []string{"+"}, shell: []string{"!"}, read: []string{":e "}}
	case "ftp", "sftp", "lftp":
		return &console{text: []string{"-c", "-e"}, files: []string{"-b", "-f"}, stdin: true, shell: []string{"!"}, read: []string{"put ", "lls "}}
	}
	return nil
}

// consoles reads what a program's own command language would do, for command i.
func (r *run) consoles(i int, name string, args []arg, f frame, in val) {
	switch name {
	case "find", "fd":
		r.findExec(args, f) // after the walk itself: what is run may make files that its patterns match
		return
	case "just", "mise", "rtx", "task", "go-task":
		r.taskRunner(name, args, f)
		return
	case "emacs", "guile", "racket":
		r.lisp(name, args, f)
		return
	case "pwsh", "powershell":
		if v, ok := optionValue(args, "-c", "-Command", "-command"); ok {
			r.source(&unit{src: v.s}, f.wrapped(name), val{})
		}
		return
	case "docker", "podman", "nerdctl", "kubectl", "docker-compose":
		for _, a := range containerPaths(args) {
			r.addPath(&r.ev.Commands[i], a)
		}
		return
	case "sed", "gsed":
		r.sedActions(i, args, f, in)
		return
	case "gcc", "g++", "cc", "c++", "clang", "clang++", "cpp", "tcc", "as":
		r.stdinScript("c", f.wrapped(name), in) // what it includes is read, and may be printed
		return
	case "nvim":
		if v, ok := optionValue(args, "-l"); ok {
			r.scriptFile("lua", r.abs(v.s), f.wrapped(name), in)
			return
		}
	}
	c := consoleOf(name)
	if c == nil {
		return
	}
	g := f.wrapped(name)
	g.exact, g.span.Exact = false, false
	h := consoleRun{r: r, c: c, at: i, f: g}
	for _, text := range h.sources(name, args, in) {
		h.lines(text)
	}
}

type consoleRun struct {
	r     *run
	c     *console
	at    int // the program's command
	f     frame
	steps int
}

// sources gives the texts that hold commands.
func (h *consoleRun) sources(name string, args []arg, in val) []string {
	var out []string
	operands := 0
	for i := 1; i < len(args) && len(out) < 64; i++ {
		s := args[i].s
		next := ""
		if i+1 < len(args) {
			next = args[i+1].s
		}
		switch {
		case s != "" && s[0] == '+' && has(h.c.text, "+"):
			out = append(out, s[1:])
		case has(h.c.text, s):
			out = append(out, next)
			i++
		case has(h.c.files, s):
			out = append(out, h.r.contentOf(h.r.abs(next)).s)
			i++
		case strings.HasPrefix(s, "--") && has(h.c.text, before(s, "=")):
			out = append(out, s[strings.IndexByte(s, '=')+1:])
		case strings.HasPrefix(s, "-") && len(s) > 2 && s[1] != '-' && has(h.c.text, "-"+s[len(s)-1:]) && len(s) < 6: // ex -sc CMD
			out = append(out, next)
			i++
		case !strings.HasPrefix(s, "-"):
			if operands++; h.c.words && operands > 1 {
				out = append(out, s)
			} else if name == "tclsh" || name == "expect" || name == "m4" || name == "wish" {
				out = append(out, h.r.contentOf(h.r.abs(s)).s)
			}
		}
	}
	if h.c.stdin && in.s != "" {
		out = append(out, in.s)
	}
	return out
}

func before(s, sep string) string {
	a, _, _ := strings.Cut(s, sep)
	return a
}

func has(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// lines reads commands, one a line.
func (h *consoleRun) lines(text string) {
	typed := false
	for n, line := range strings.Split(text, "\n") {
		if n >= maxWords || !h.r.spend() {
			return
		}
		line = strings.TrimSpace(line)
		if h.c.ed {
			if typed {
				typed = line != "."
				continue
			}
			if last := strings.TrimLeft(line, "0123456789,$.+-"); last == "a" || last == "i" || last == "c" {
				typed = true
				continue
			}
		}
		h.line(line)
	}
}

// line reads one command.
func (h *consoleRun) line(line string) {
	if h.steps++; line == "" || h.steps > maxWords {
		return
	}
	h.callsIn(line)
	if h.c.bars {
		line = strings.TrimLeft(line, ":0123456789,.$%+ <>'")
		line = strings.TrimPrefix(strings.TrimPrefix(line, "sil! "), "silent! ")
	}
	bang := strings.IndexByte(line, '!')
	if rest, ok := anyPrefix(line, h.c.shell); ok && (!h.c.bars || bang >= 0 || strings.HasPrefix(line, "ter")) {
		h.r.source(&unit{src: rest}, h.f, val{})
		return
	}
	rest := ""
	if h.c.bars {
		if i := strings.IndexByte(line, '|'); i >= 0 {
			line, rest = line[:i], line[i+1:]
		}
	}
	cmd := strings.TrimSpace(line)
	if p, ok := anyPrefix(cmd, h.c.read); ok {
		h.r.addPath(&h.r.ev.Commands[h.at], arg{s: unquoted(before(p, " "))})
	} else if p, ok := anyPrefix(cmd, h.c.write); ok {
		p = h.r.abs(unquoted(before(p, " ")))
		h.r.edit(rules.File{Op: "edit", Path: p}, false)
		h.r.ev.Commands[h.at].Writes = appendNew(h.r.ev.Commands[h.at].Writes, p)
	} else if code, ok := anyPrefix(cmd, h.c.code); ok {
		h.r.script("", h.c.lang, code, h.f)
	} else if code, ok := anyPrefix(cmd, []string{"lua ", "luado "}); ok && h.c.bars {
		h.r.script("", "lua", strings.TrimLeft(code, "= "), h.f)
	} else if quoted, ok := anyPrefix(cmd, []string{"exe ", "execute ", "norm ", "normal "}); ok && h.c.bars {
		h.line(unquoted(quoted))
	}
	if rest != "" {
		h.line(strings.TrimSpace(rest))
	}
}

// callsIn reads the calls inside a command whose argument is a path or a shell command.
func (h *consoleRun) callsIn(line string) {
	for _, name := range h.c.calls {
		for from := 0; ; {
			i := strings.Index(line[from:], name)
			if i < 0 {
				break
			}
			from += i + len(name)
			word := firstWord(line[from:], strings.HasSuffix(name, "("))
			switch strings.ToLower(strings.TrimRight(name, "( ")) {
			case "system", "systemlist", "syscmd", "esyscmd", "exec", "program":
				h.r.source(&unit{src: word}, h.f, val{})
			default:
				if word, ok := strings.CutPrefix(word, "|"); ok {
					h.r.source(&unit{src: word}, h.f, val{})
				} else if looksLikePath(word) && strings.ContainsAny(word, "/.") {
					h.r.addPath(&h.r.ev.Commands[h.at], arg{s: word})
				}
			}
		}
	}
}

// firstWord gives the quoted text that s starts with, or what stands before a closing bracket.
func firstWord(s string, call bool) string {
	s = strings.TrimLeft(s, " ")
	if s == "" {
		return ""
	}
	if q := s[0]; q == '\'' || q == '"' || q == '{' || q == '`' {
		end := strings.IndexByte(s[1:], map[byte]byte{'\'': '\'', '"': '"', '{': '}', '`': '\''}[q])
		if end >= 0 {
			return s[1 : 1+end]
		}
		return s[1:]
	}
	if i := strings.IndexAny(s, ")];\n"); i >= 0 {
		s = s[:i]
	}
	if call {
		return strings.TrimSpace(before(s, ","))
	}
	return s
}

func anyPrefix(s string, prefixes []string) (rest string, ok bool) {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

func unquoted(s string) string { return strings.Trim(s, `'"`) }

// lisp reads emacs --eval EXPR and guile -c EXPR.
func (r *run) lisp(name string, args []arg, f frame) {
	g := f.wrapped(name)
	g.exact, g.span.Exact = false, false
	for i := 1; i+1 < len(args); i++ {
		switch args[i].s {
		case "--eval", "-eval", "--execute", "-c", "-e":
			r.script("", "lisp", args[i+1].s, g)
		case "-l", "--load", "-s", "--script", "-x":
			r.scriptFile("lisp", r.abs(args[i+1].s), g, val{})
		}
	}
}
