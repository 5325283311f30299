package normalize

import (
	"strings"

	"proctor/rules"
)

// program records a program and reads what it would do: files, network, packages, code that it runs.
func (r *run) program(args []arg, env map[string]string, f frame, in val) val {
	name := base(args[0].s)
	if len(env) > 0 {
		r.hooks(env, f)
	}
	if isShell(name) {
		r.shellStart(env, f)
		if out, ok := r.shellProgram(name, args, env, f, in); ok {
			return out
		}
	}
	i := r.record(args, env, f, in)
	if i < 0 {
		return val{}
	}
	// A copy: reading effects may add commands and move the slice.
	r.gitFacts(i, args, f, in)
	r.packageFacts(i, args, in)
	r.interpreter(name, args, env, f, in)
	r.runners(name, args, f, in)
	r.consoles(i, name, args, f, in)
	r.effects(i, args, f, in)
	if strings.Contains(args[0].s, "/") && !isShell(name) {
		r.runFile(args, f, in)
	}
	out := r.textOutput(name, args, in)
	if out.known && out.s != "" && decoder(name) {
		r.ev.Commands[i].Prints = out.s
	}
	return out
}

// decoder tells whether a program gives text another form, so that its output is worth reading.
func decoder(name string) bool {
	switch name {
	case "base64", "base32", "xxd", "rev", "tr", "gunzip", "zcat", "gzip", "openssl", "printf", "xz", "unxz", "xzcat", "bzip2", "bunzip2", "bzcat", "uudecode", "rot13":
		return true
	}
	return false
}

// record adds a command with its paths and hosts, and gives its index; -1 where there is no room.
func (r *run) record(args []arg, env map[string]string, f frame, in val) int {
	args = r.globbed(args)
	cmd := rules.Command{Program: base(args[0].s), Via: f.via, Span: f.span, Env: env}
	if strings.Contains(args[0].s, "/") {
		cmd.Path = r.abs(args[0].s)
	} else {
		cmd.Path = args[0].s
	}
	var line strings.Builder
	for i, a := range args {
		if i > 0 {
			line.WriteByte(' ')
			cmd.Args = append(cmd.Args, a.s)
			line.WriteString(quote(a.s))
		} else {
			line.WriteString(quote(cmd.Program))
		}
		cmd.Opaque = cmd.Opaque || a.opaque
		if line.Len() > maxValue {
			break
		}
	}
	cmd.Line = clip(line.String(), maxValue)
	if in.s != "" && in.known {
		cmd.Stdin = in.s
	}
	r.paths(&cmd, args, f)
	for _, v := range env { // PYTHONPATH=/hidden
		for _, p := range strings.Split(v, ":") {
			if strings.Contains(p, "/") && r.hidden(r.abs(p)) {
				cmd.Hidden = appendNew(cmd.Hidden, r.abs(p))
			}
		}
	}
	r.netFacts(&cmd, args)
	return r.addCommand(cmd)
}

func (r *run) addCommand(cmd rules.Command) int {
	if len(r.ev.Commands) >= maxCommands {
		return -1
	}
	r.ev.Commands = append(r.ev.Commands, cmd)
	return len(r.ev.Commands) - 1
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish":
		return true
	}
	return false
}

// shellProgram reads sh -c TEXT, sh FILE and a shell fed from stdin.
func (r *run) shellProgram(name string, args []arg, env map[string]string, f frame, in val) (val, bool) {
	for i := 1; i < len(args); i++ {
		a := args[i].s
		switch {
		case a == "--":
			continue
		case strings.HasPrefix(a, "--") || a == "-":
			if a == "--rcfile" || a == "--init-file" {
				i++
			}
			continue
		case strings.HasPrefix(a, "-") && strings.ContainsRune(a[1:], 'c') || strings.HasPrefix(a, "+c"):
			rest := args[i+1:]
			for len(rest) > 0 && strings.HasPrefix(rest[0].s, "-") {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return val{}, false
			}
			return r.shellText(name, args, rest, env, f, in), true
		case a == "-o" || a == "-O" || a == "+o":
			i++
			continue
		case strings.HasPrefix(a, "-") && strings.ContainsRune(a[1:], 's'):
			return r.shellStdin(name, args, env, f, in)
		case strings.HasPrefix(a, "-") || strings.HasPrefix(a, "+"):
			continue
		}
		return r.shellFile(name, args, args[i:], env, f, in), true
	}
	return r.shellStdin(name, args, env, f, in)
}

// shellText is sh -c TEXT name params...
func (r *run) shellText(name string, args, rest []arg, env map[string]string, f frame, in val) val {
	g := f.wrapped(name + " -c")
	g.exact = false
	if len(rest) > 1 {
		g.name, g.params = rest[1].s, texts(rest[2:])
	}
	if rest[0].opaque {
		r.record(args, env, f, in)
	}
	sc := r.st.enter()
	defer r.st.leave(sc)
	for k, v := range env {
		r.st.vars.set(k, variable{value: v, known: true, exported: true})
	}
	res := r.source(&unit{src: rest[0].s}, g, in)
	if !res.parsed && !rest[0].opaque {
		r.record(args, env, f, in)
	}
	return res.out
}

func (r *run) shellStdin(name string, args []arg, env map[string]string, f frame, in val) (val, bool) {
	if in.s == "" {
		return val{}, false
	}
	r.record(args, env, f, in)
	g := f.wrapped(name + " <stdin")
	g.exact, g.span.Exact = false, false
	sc := r.st.enter()
	defer r.st.leave(sc)
	return r.source(&unit{src: in.s}, g, val{}).out, true
}

// shellFile is sh FILE params...: the file is read as it is before the call.
func (r *run) shellFile(name string, args, rest []arg, env map[string]string, f frame, in val) val {
	i := r.record(args, env, f, in)
	if i < 0 {
		return val{}
	}
	p := r.abs(rest[0].s)
	return r.shellScript(p, rest, f, in)
}

// shellScript reads a shell script file that is about to run, once in a call.
func (r *run) shellScript(p string, words []arg, f frame, in val) val {
	content := r.contentOf(p)
	if content.s == "" || r.depth >= maxDepth {
		return val{}
	}
	if r.scripts[p] {
		return val{}
	}
	r.once(p)
	r.addScript(rules.Script{Path: p, Lang: "sh", Content: content.s}, f)
	g := f.wrapped("script:" + p)
	g.exact, g.span.Exact = false, false
	g.name, g.params = words[0].s, texts(words[1:])
	sc := r.st.enter()
	defer r.st.leave(sc)
	return r.source(&unit{src: content.s}, g, in).out
}

func (r *run) once(p string) {
	if r.scripts == nil {
		r.scripts = map[string]bool{}
	}
	r.scripts[p] = true
}

// runFile reads ./x where x is a script that the agent wrote or that has a #! line.
func (r *run) runFile(args []arg, f frame, in val) {
	p := r.abs(args[0].s)
	if strings.HasPrefix(p, "/usr/bin/") || strings.HasPrefix(p, "/bin/") || r.scripts[p] {
		return
	}
	content := r.contentOf(p)
	if content.s == "" {
		return
	}
	switch lang := langOf(p, content.s); lang {
	case "":
	case "sh":
		r.shellScript(p, args, f, in)
	default:
		r.once(p)
		r.script(p, lang, content.s, f)
	}
}

// langOf tells a script's language by its #! line or its name; "" where it is none that is read.
func langOf(p, content string) string {
	if line, _, _ := strings.Cut(content, "\n"); strings.HasPrefix(line, "#!") {
		for _, l := range [...]string{"python", "node", "perl", "ruby", "php", "lua", "deno", "bun", "awk", "Rscript"} {
			if strings.Contains(line, l) {
				return l
			}
		}
		if strings.Contains(line, "sh") {
			return "sh"
		}
	}
	i := strings.LastIndexByte(p, '.')
	if i < 0 {
		return ""
	}
	switch p[i:] {
	case ".py", ".pyw":
		return "python"
	case ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".mts":
		return "node"
	case ".sh", ".bash":
		return "sh"
	case ".rb":
		return "ruby"
	case ".pl", ".pm":
		return "perl"
	case ".php":
		return "php"
	case ".go":
		return "go"
	case ".rs":
		return "rust"
	case ".c", ".cc", ".cpp", ".h", ".hpp":
		return "c"
	case ".java", ".kt", ".scala", ".cs", ".dart", ".swift", ".zig":
		return "java"
	case ".groovy", ".gradle", ".kts":
		return "groovy"
	case ".ex", ".exs":
		return "elixir"
	case ".jl":
		return "julia"
	case ".lua":
		return "lua"
	case ".awk":
		return "awk"
	case ".R", ".r":
		return "Rscript"
	}
	return ""
}
