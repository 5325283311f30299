package decoy

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// interpreter gives the language that a program runs, "" for none.
func interpreter(program string) string {
	switch {
	case strings.HasPrefix(program, "python"), program == "pypy", program == "pypy3":
		return "python"
	case program == "node" || program == "nodejs" || program == "deno" || program == "bun":
		return "node"
	case program == "ruby", program == "perl", program == "php", program == "lua":
		return program
	}
	return ""
}

// interpreted reports whether t is code rather than a program's own doing.
func interpreted(t *target) bool { return t.cmd != nil && interpreter(t.cmd.Program) != "" }

// replyScript answers code with the exception that it would have raised, at the line that raises it.
func (m *Maker) replyScript(ctx context.Context, req Request, t *target) reply {
	s := sourceOf(t)
	switch {
	case interpreter(t.cmd.Program) == "python":
		return m.replyPython(ctx, req, t, s)
	case interpreter(t.cmd.Program) == "node" && len(t.paths) > 0:
		return says(famNoFile, 1, nodeError(named(s.code, t.paths[0])))
	case interpreter(t.cmd.Program) == "node":
		return says(famNetwork, 1, "node:events:491\n      throw er; // Unhandled 'error' event\n      ^\n\nError: getaddrinfo EAI_AGAIN "+firstHost(t)+"\n    at GetAddrInfoReqWrap.onlookup [as oncomplete] (node:dns:107:26)\n")
	case len(t.paths) > 0 && t.cmd.Program == "perl":
		return says(famNoFile, 2, "Can't open "+as(req, t)+": No such file or directory.\n")
	case len(t.paths) > 0:
		return says(famNoFile, 1, t.cmd.Program+": No such file or directory @ rb_sysopen - "+as(req, t)+" (Errno::ENOENT)\n")
	case len(t.hosts) > 0:
		return says(famNetwork, 1, t.cmd.Program+": getaddrinfo: Temporary failure in name resolution ("+firstHost(t)+")\n")
	}
	return prints(famEmpty, 0, "")
}

// as gives the path in a word of the command, else as the code or the event has it.
func as(req Request, t *target) string {
	if names := spelled(req, t); len(names) > 0 {
		return names[0]
	}
	return named(sourceOf(t).code, t.paths[0])
}

func nodeError(p string) string {
	return "node:fs:601\n  handleErrorFromBinding(ctx);\n  ^\n\nError: ENOENT: no such file or directory, open '" + p + "'\n    at Object.openSync (node:fs:601:3)\n    at Object.readFileSync (node:fs:469:35) {\n  errno: -2,\n  syscall: 'open',\n  code: 'ENOENT',\n  path: '" + p + "'\n}\n"
}

// source is code and what its traceback calls it.
type source struct {
	code string
	name string // "<string>", "<stdin>", or a path
	pipe bool   // the code comes by stdin
}

func sourceOf(t *target) source {
	args := t.cmd.Args
	for i, a := range args {
		if a == "-c" && i+1 < len(args) {
			return source{code: args[i+1], name: "<string>"}
		}
	}
	if t.cmd.Stdin != "" {
		return source{code: t.cmd.Stdin, name: "<stdin>", pipe: true}
	}
	if t.code != nil {
		name := t.code.Path
		for _, a := range args {
			if strings.HasSuffix(name, "/"+strings.TrimPrefix(a, "./")) {
				name = a
				if !strings.HasPrefix(a, "/") {
					name = t.code.Path
				}
			}
		}
		if name == "" {
			name = "<stdin>"
		}
		return source{code: t.code.Content, name: name, pipe: name == "<stdin>"}
	}
	return source{name: "<string>"}
}

var (
	fetchLine = regexp.MustCompile(`urlopen|urlretrieve|requests\.|httpx|HTTPConnection|HTTPSConnection|load_dataset|create_connection|socket`)
	openLine  = regexp.MustCompile(`\bopen\(|read_text|read_bytes|listdir|scandir|iterdir|loads?\(|read_csv|copy`)
)

// replyPython gives the traceback. Where the sandbox can be asked, a probe that fails in the same
// way at the same line gives this Python's own frames; else the frame of the script alone.
func (m *Maker) replyPython(ctx context.Context, req Request, t *target, s source) reply {
	switch {
	case len(t.writes) > 0 && len(t.paths) == 0:
		line, text := lineOf(s.code, t.writes, openLine)
		return says(famWrite, 1, traceback(s, line, text, fmt.Sprintf("PermissionError: [Errno 13] Permission denied: '%s'", named(s.code, t.writes[0]))))
	case len(t.paths) > 0:
		line, text := lineOf(s.code, t.paths, openLine)
		return says(famNoFile, 1, traceback(s, line, text, fmt.Sprintf("FileNotFoundError: [Errno 2] No such file or directory: '%s'", named(s.code, t.paths[0]))))
	case len(t.hosts) > 0:
		line, text := lineOf(s.code, t.hosts, fetchLine)
		if r, ok := m.askPython(ctx, req, t, s, line, text); ok {
			return r
		}
		return says(famNetwork, 1, traceback(s, line, text, "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"))
	}
	return prints(famEmpty, 0, "\n")
}

// askPython lets this Python fail on an absent host, and puts the script's own frame on top.
func (m *Maker) askPython(ctx context.Context, req Request, t *target, s source, line int, text string) (reply, bool) {
	host := firstHost(t)
	if m.run == nil || host == "" {
		return reply{}, false
	}
	call := "import urllib.request; urllib.request.urlopen('https://%s/')"
	if strings.Contains(s.code, "requests.") {
		call = "import requests; requests.get('https://%s/')"
	}
	sib := invalid(m.scramble(strings.Repeat("a", len(host))))
	r, ok := m.ask(ctx, dirAt(&req.Event, t.index), []string{t.cmd.Program, "-c", fmt.Sprintf(call, sib)}, probeTimeout, map[string]string{sib: host})
	if !ok || r.exit != 1 || !strings.Contains(string(r.stderr), "Error") || strings.Contains(string(r.stderr), "ModuleNotFoundError") {
		return reply{}, false
	}
	r.stderr = []byte(strings.ReplaceAll(string(r.stderr), "  File \"<string>\", line 1, in <module>\n", frame(s, line, text)))
	r.family = famNetwork
	return r, true
}

// lineOf finds the line that reaches for one of the names: the call that opens or fetches where
// there is one, else the line that names it.
func lineOf(code string, names []string, verb *regexp.Regexp) (int, string) {
	lines := strings.Split(code, "\n")
	best, text := 1, strings.TrimSpace(lines[0])
	for i, l := range lines {
		for _, n := range names {
			if strings.Contains(l, n) || strings.Contains(l, base(n)) {
				if verb.MatchString(l) {
					return i + 1, strings.TrimSpace(l)
				}
				best, text = i+1, strings.TrimSpace(l)
			}
		}
	}
	if verb.MatchString(text) {
		return best, text
	}
	for i, l := range lines {
		if i+1 >= best && verb.MatchString(l) && !strings.HasPrefix(strings.TrimSpace(l), "import") && !strings.HasPrefix(strings.TrimSpace(l), "from") {
			return i + 1, strings.TrimSpace(l)
		}
	}
	return best, text
}

func base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// named gives a path as the code spells it, where it does.
func named(code, p string) string {
	for rest := p; rest != ""; {
		if strings.Contains(code, "'"+rest+"'") || strings.Contains(code, `"`+rest+`"`) {
			return rest
		}
		i := strings.IndexByte(rest[1:], '/')
		if i < 0 {
			break
		}
		rest = strings.TrimPrefix(rest[i+1:], "/")
	}
	return p
}

func traceback(s source, line int, text, what string) string {
	return "Traceback (most recent call last):\n" + frame(s, line, text) + what + "\n"
}

// frame is a traceback's entry. Python shows the source line only where it can read the file.
func frame(s source, line int, text string) string {
	f := fmt.Sprintf("  File \"%s\", line %d, in <module>\n", s.name, line)
	if !strings.HasPrefix(s.name, "<") && text != "" {
		f += "    " + text + "\n"
	}
	return f
}
