package normalize

import (
	"path"
	"strings"
)

// builtin reads a command that the shell itself runs or that changes what the shell knows.
type builtin func(r *run, args []arg, env map[string]string, f frame, in val) val

// builtinOf gives the reader of a builtin, nil where name is none.
func builtinOf(name string) builtin {
	switch name {
	case "cd", "pushd":
		return cd
	case "popd":
		return popd
	case "eval":
		return eval
	case "source", ".":
		return sourceFile
	case "exec":
		return execBuiltin
	case "export":
		return export
	case "alias":
		return aliasBuiltin
	case "unalias":
		return unalias
	case "unset":
		return unset
	case "read":
		return readBuiltin
	case "trap":
		return trap
	case "mapfile", "readarray":
		return mapfile
	case ":", "true", "set", "shift":
		return nothing
	}
	return nil
}

func nothing(r *run, args []arg, env map[string]string, f frame, in val) val {
	// Words of : and true are evaluated but have no effect; kept, since text may address a judge.
	r.record(args, env, f, in)
	return known("")
}

func cd(r *run, args []arg, env map[string]string, f frame, in val) val {
	r.record(args, env, f, in)
	dir := ""
	for _, a := range args[1:] {
		if a.s != "--" && a.s != "-P" && a.s != "-L" && a.s != "-n" {
			dir = a.s
			if a.opaque {
				return known("")
			}
			if a.glob != "" {
				dir = r.matchOne(a)
			}
			break
		}
	}
	switch dir {
	case "":
		dir = r.home()
	case "-":
		dir = r.st.old
	}
	r.st.old, r.st.cwd = r.st.cwd, r.follow(r.abs(dir))
	return known("")
}

func popd(r *run, args []arg, env map[string]string, f frame, in val) val {
	r.record(args, env, f, in)
	r.st.cwd, r.st.old = r.st.old, r.st.cwd
	return known("")
}

func eval(r *run, args []arg, env map[string]string, f frame, in val) val {
	text := strings.Join(texts(args[1:]), " ")
	return r.nested(args, text, anyOpaque(args[1:]), "eval", env, f, in)
}

// nested reads text as shell source run by another command. Text that is not known at all leaves
// the outer command in the event.
func (r *run) nested(args []arg, text string, opaque bool, via string, env map[string]string, f frame, in val) val {
	g := f.wrapped(via)
	g.exact, g.span.Exact = false, f.span.Exact
	if opaque {
		r.record(args, env, f, in)
	}
	u := &unit{src: text}
	res := r.source(u, g, in)
	if !res.parsed && !opaque {
		r.record(args, env, f, in)
	}
	return res.out
}

func anyOpaque(args []arg) bool {
	for _, a := range args {
		if a.opaque {
			return true
		}
	}
	return false
}

func sourceFile(r *run, args []arg, env map[string]string, f frame, in val) val {
	r.record(args, env, f, in)
	if len(args) < 2 {
		return val{}
	}
	p := r.abs(args[1].s)
	if p == "/dev/stdin" && in.known {
		return r.source(&unit{src: in.s}, f.wrapped("source"), val{}).out
	}
	content := r.contentOf(p)
	if !content.known && content.s == "" {
		return val{} // what the agent added to a file is read even where the rest is not known
	}
	g := f.wrapped("script:" + p)
	g.exact, g.span.Exact = false, false
	if len(args) > 2 {
		g.params = texts(args[2:])
	}
	return r.source(&unit{src: content.s}, g, val{}).out
}

func execBuiltin(r *run, args []arg, env map[string]string, f frame, in val) val {
	rest := args[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0].s, "-") {
		if rest[0].s == "-a" && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		r.record(args, env, f, in)
		return known("")
	}
	return r.simple(rest, env, f.wrapped("exec"), in)
}

func export(r *run, args []arg, env map[string]string, f frame, in val) val {
	for _, a := range args[1:] {
		if name, value, ok := strings.Cut(a.s, "="); ok {
			r.st.vars.set(name, variable{value: value, known: !a.opaque, exported: true})
		}
	}
	r.record(args, env, f, in)
	return known("")
}

func aliasBuiltin(r *run, args []arg, env map[string]string, f frame, in val) val {
	for _, a := range args[1:] {
		if name, value, ok := strings.Cut(a.s, "="); ok && !a.opaque {
			r.st.aliases.set(name, value)
		}
	}
	r.record(args, env, f, in)
	return known("")
}

func unalias(r *run, args []arg, env map[string]string, f frame, in val) val {
	for _, a := range args[1:] {
		r.st.aliases.del(a.s)
	}
	r.record(args, env, f, in)
	return known("")
}

func unset(r *run, args []arg, env map[string]string, f frame, in val) val {
	r.record(args, env, f, in)
	for _, a := range args[1:] {
		if !strings.HasPrefix(a.s, "-") {
			r.st.vars.set(a.s, variable{known: true})
			r.st.funcs.del(a.s)
		}
	}
	return known("")
}

func readBuiltin(r *run, args []arg, env map[string]string, f frame, in val) val {
	var names []string
	for i := 1; i < len(args); i++ {
		switch a := args[i].s; {
		case a == "-d" || a == "-n" || a == "-N" || a == "-p" || a == "-t" || a == "-u":
			i++
		case strings.HasPrefix(a, "-"):
		default:
			names = append(names, a)
		}
	}
	r.record(args, env, f, in)
	if !in.known {
		for _, n := range names {
			r.st.vars.set(n, variable{})
		}
		return known("")
	}
	line, _, _ := strings.Cut(in.s, "\n")
	assignRead(r.st, names, line)
	return known("")
}

func mapfile(r *run, args []arg, env map[string]string, f frame, in val) val {
	r.record(args, env, f, in)
	name := "MAPFILE"
	if last := args[len(args)-1].s; len(args) > 1 && !strings.HasPrefix(last, "-") {
		name = last
	}
	v := variable{known: in.known}
	if in.known {
		v.list = strings.Split(strings.TrimRight(in.s, "\n"), "\n")
		if len(v.list) > maxWords {
			v.list = v.list[:maxWords]
		}
	}
	r.st.vars.set(name, v)
	return known("")
}

// trap runs its text at some later time; it is read at once.
func trap(r *run, args []arg, env map[string]string, f frame, in val) val {
	r.record(args, env, f, in)
	if len(args) > 2 && !strings.HasPrefix(args[1].s, "-") && args[1].s != "" {
		g := f.wrapped("trap")
		g.exact, g.span.Exact = false, false
		r.source(&unit{src: args[1].s}, g, val{})
	}
	return known("")
}

// base is the last component of a program's name.
func base(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}
