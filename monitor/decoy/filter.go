package decoy

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"proctor/rules"
	"proctor/sandbox"
)

// listing are programs that show what lies below a folder.
var listing = []string{"find", "ls", "tree", "du", "grep", "egrep", "fgrep", "rg", "tar", "zip"}

// lists reports whether c shows what lies below the folders that it names.
func lists(c *rules.Command) bool {
	if !slices.Contains(listing, c.Program) {
		return false
	}
	if strings.HasSuffix(c.Program, "grep") {
		return hasOption(c.Args, "rR", "recursive", "dereference-recursive")
	}
	return true
}

// hasOption reports whether args hold one of the short letters or long names.
func hasOption(args []string, short string, long ...string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if strings.HasPrefix(a, "--") {
			name, _, _ := strings.Cut(a[2:], "=")
			if slices.Contains(long, name) {
				return true
			}
		} else if strings.HasPrefix(a, "-") && strings.ContainsAny(a[1:], short) {
			return true
		}
	}
	return false
}

// deniedBelow gives what is to be left out of a listing: t's own paths, and all denied before.
func (m *Maker) deniedBelow(t *target) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Clone(t.paths)
	for _, p := range append(slices.Clone(m.denied.paths), m.vars["hidden_paths"]...) {
		if p = clean(p); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// filterRun lets a listing run for real with protected entries left out, by options that the
// program itself has, so that columns, totals, pipes and exit status are its own. False where the
// listing starts at or below a protected path, or the program has no such option.
func filterRun(req Request, t *target, denied []string) (reply, bool) {
	if !lists(t.cmd) {
		return reply{}, false
	}
	cwd := dirAt(&req.Event, t.index)
	for _, n := range t.cmd.Args {
		if strings.HasPrefix(n, "-") || strings.ContainsAny(n, "*?[") {
			continue
		}
		abs := n
		if !path.IsAbs(abs) {
			abs = path.Join(cwd, n)
		}
		if slices.ContainsFunc(denied, func(p string) bool { return under(abs, p) }) && (strings.Contains(n, "/") || slices.Contains(t.cmd.Paths, abs)) {
			return reply{}, false // it starts there: not a listing from above
		}
	}
	r := reply{family: famFilter}
	switch t.cmd.Program {
	case "find":
		r.edit = func(src, val []string) []string { return editFind(src, val, cwd, denied) }
	case "ls":
		r.edit = func(src, _ []string) []string { return after(src, options("--ignore=", bases(denied))) }
	case "tree":
		r.edit = func(src, _ []string) []string {
			return after(src, []string{"-I", quote(strings.Join(bases(denied), "|"))})
		}
	case "tar":
		r.edit = func(src, val []string) []string {
			out := after(src, options("--exclude=", bases(denied)))
			if len(val) > 1 && !strings.HasPrefix(val[1], "-") {
				out[len(out)-len(src)+1] = "-" + src[1] // old-style letters have to come first, unless they have a dash
			}
			return out
		}
	case "du":
		r.edit = func(src, _ []string) []string { return after(src, options("--exclude=", bases(denied))) }
	case "grep", "egrep", "fgrep":
		r.edit = func(src, _ []string) []string {
			return after(src, append(options("--exclude-dir=", bases(denied)), options("--exclude=", bases(denied))...))
		}
	case "rg":
		r.edit = func(src, _ []string) []string {
			var opts []string
			for _, b := range bases(denied) {
				opts = append(opts, "-g", quote("!"+b))
			}
			return after(src, opts)
		}
	default:
		return reply{}, false
	}
	return r, true
}

// after puts opts behind the program's word.
func after(src, opts []string) []string {
	out := append([]string{src[0]}, opts...)
	return append(out, src[1:]...)
}

func options(name string, values []string) []string {
	var out []string
	for _, v := range values {
		out = append(out, quote(name+v))
	}
	return out
}

// bases gives the last parts of paths, each once, pattern characters escaped.
func bases(paths []string) []string {
	var out []string
	for _, p := range paths {
		if b := escapeGlob(path.Base(p)); !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// editFind leaves paths out of a find: behind each starting point and the global options comes a
// test that fails for them and does not descend, and the expression goes into parentheses.
func editFind(src, val []string, cwd string, denied []string) []string {
	i := 1
	for i < len(val) && (val[i] == "-H" || val[i] == "-L" || val[i] == "-P") {
		i++
	}
	from := i
	for i < len(val) && !strings.HasPrefix(val[i], "-") && val[i] != "(" && val[i] != "!" {
		i++
	}
	roots := val[from:i]
	if len(roots) == 0 {
		roots = []string{"."}
	}
	out := slices.Clone(src[:i])
	for i+1 < len(val) && slices.Contains([]string{"-maxdepth", "-mindepth", "-regextype"}, val[i]) || i < len(val) && slices.Contains([]string{"-xdev", "-mount", "-noleaf", "-depth", "-ignore_readdir_race"}, val[i]) {
		n := 1
		if strings.HasSuffix(val[i], "depth") && val[i] != "-depth" || val[i] == "-regextype" {
			n = 2
		}
		out = append(out, src[i:i+n]...)
		i += n
	}
	deep := slices.Contains(val, "-depth") || slices.Contains(val, "-delete")
	for _, r := range roots {
		for _, p := range denied {
			if pat, ok := findPattern(r, cwd, p); ok && !deep {
				out = append(out, "!", `\(`, "-path", quote(pat), "-prune", `\)`)
			} else if ok {
				out = append(out, "!", "-path", quote(pat), "!", "-path", quote(pat+"/*"))
			}
		}
	}
	if i < len(src) {
		out = append(out, `\(`)
		out = append(out, src[i:]...)
		out = append(out, `\)`)
	}
	return out
}

// findPattern gives the pattern under which a find from root prints p.
func findPattern(root, cwd, p string) (string, bool) {
	abs := root
	if !path.IsAbs(abs) {
		abs = path.Join(cwd, root)
	}
	if !under(p, abs) || path.Clean(abs) == path.Clean(p) {
		return "", false
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(clean(p), path.Clean(abs)), "/")
	return escapeGlob(strings.TrimSuffix(root, "/")) + "/" + escapeGlob(rel), true
}

// knowsOptions reports whether a program has the options that filterRun needs. GNU's have them,
// busybox's do not, and an option that is refused would tell.
func (m *Maker) knowsOptions(ctx context.Context, program string) bool {
	if m.run == nil || !slices.Contains([]string{"ls", "du", "tar", "grep", "egrep", "fgrep"}, program) {
		return true
	}
	m.mu.Lock()
	known, asked := m.gnu[program]
	m.mu.Unlock()
	if asked {
		return known
	}
	r, err := m.run(ctx, sandbox.Exec{Argv: []string{program, "--version"}, Timeout: probeTimeout, Limit: 4096})
	known = err == nil && r.Exit != nil && *r.Exit == 0 && bytes.Contains(r.Stdout, []byte("GNU"))
	m.mu.Lock()
	m.gnu[program] = known
	m.mu.Unlock()
	return known
}

// filterOutput runs a listing outside the agent's shell and leaves out the lines that name what is
// protected.
func (m *Maker) filterOutput(ctx context.Context, req Request, t *target, denied []string) reply {
	r, ok := m.ask(ctx, dirAt(&req.Event, t.index), words(t), probeTimeout, nil)
	if !ok || t.cmd.Opaque {
		return prints(famEmpty, 0, "")
	}
	r.family = famFilter
	r.stdout, r.stderr = withoutLines(r.stdout, denied), withoutLines(r.stderr, denied)
	if len(r.stdout) == 0 && strings.HasSuffix(t.cmd.Program, "grep") && r.exit == 0 {
		r.exit = 1 // nothing matched after all
	}
	return r
}

// withoutLines drops the lines in which the last part of a denied path stands as a name.
func withoutLines(out []byte, denied []string) []byte {
	var kept []byte
	for _, line := range bytes.SplitAfter(out, []byte("\n")) {
		fields := strings.FieldsFunc(string(line), func(r rune) bool { return strings.ContainsRune("/ :\t\n*@|", r) })
		if !slices.ContainsFunc(denied, func(p string) bool { return slices.Contains(fields, path.Base(p)) }) {
			kept = append(kept, line...)
		}
	}
	return kept
}
