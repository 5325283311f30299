package normalize

import (
	"sort"
	"strings"

	"proctor/rules"
)

func sortStrings(s []string) { sort.Strings(s) }

// walks adds what a recursive program would meet: a hidden path below one of its roots. A walk that
// prunes the hidden path by name does not meet it.
func (r *run) walks(cmd *rules.Command, args []arg) {
	roots, ok := walkRoots(cmd.Program, args)
	if !ok {
		return
	}
	if len(roots) == 0 {
		roots = []arg{{s: "."}}
	}
	skipHidden := cmd.Program == "rg" || cmd.Program == "ag" || cmd.Program == "fd"
	for _, a := range args {
		if a.s == "--hidden" || a.s == "-H" || strings.HasPrefix(a.s, "-u") || a.s == "--no-ignore" {
			skipHidden = false
		}
	}
	dir := r.st.cwd
	if d, ok := optionValue(args, "-C", "--directory"); ok && cmd.Program == "tar" && !d.opaque {
		dir = r.abs(d.s)
		for _, a := range roots {
			if p := absFrom(dir, a.s); r.hidden(p) {
				cmd.Hidden = appendNew(cmd.Hidden, p)
			}
		}
	}
	for _, root := range roots {
		p := r.follow(absFrom(dir, root.s))
		for _, h := range r.hiddenRoots() {
			if h == p || !rules.Below(h, p) || excluded(args, h) || skipHidden && dotBelow(h, p) {
				continue
			}
			cmd.Covers = appendNew(cmd.Covers, h)
		}
	}
}

func dotBelow(h, root string) bool {
	return strings.Contains(strings.TrimPrefix(h, strings.TrimSuffix(root, "/")), "/.")
}

// excluded tells whether some word prunes h: -not -path './.eval/*', --exclude-dir=.eval.
func excluded(args []arg, h string) bool {
	name := h[strings.LastIndexByte(h, '/')+1:]
	for i, a := range args {
		s := a.s
		switch {
		case strings.HasPrefix(s, "--exclude"), strings.HasPrefix(s, "--ignore"), strings.HasPrefix(s, "!") && len(s) > 1:
		case i > 1 && (args[i-1].s == "-path" || args[i-1].s == "-wholename") && (args[i-2].s == "-not" || args[i-2].s == "!" || followedBy(args, i, "-prune")):
		case i > 0 && args[i-1].s == "-name" && followedBy(args, i, "-prune"):
		default:
			continue
		}
		if strings.Contains(s, name) || strings.Contains(s, ".*") || strings.Contains(s, "*/.") {
			return true
		}
	}
	return false
}

func followedBy(args []arg, i int, want string) bool {
	return i+1 < len(args) && args[i+1].s == want
}

// walkRoots gives the roots of a program that walks folders, and whether these words make it one.
func walkRoots(program string, args []arg) ([]arg, bool) {
	switch program {
	case "find", "fd":
		return findRoots(program, args[1:]), true
	case "tree", "du", "rg", "ag", "ack", "rsync", "tar", "zip", "rgrep", "ncdu", "bfs", "7z", "cpio":
		return operands(program, args[1:]), true
	case "grep", "egrep", "fgrep", "zgrep":
		if hasFlag(args, "rR", "--recursive", "--dereference-recursive") {
			return operands(program, args[1:]), true
		}
	case "ls", "dir":
		if hasFlag(args, "R", "--recursive") {
			return operands(program, args[1:]), true
		}
	case "cp", "scp", "chmod", "chown":
		if hasFlag(args, "rRa", "--recursive", "--archive") {
			ops := operands(program, args[1:])
			if len(ops) > 1 && program != "chmod" && program != "chown" {
				ops = ops[:len(ops)-1]
			}
			return ops, true
		}
	case "diff":
		if hasFlag(args, "r", "--recursive") {
			return operands(program, args[1:]), true
		}
	}
	return nil, false
}

func findRoots(program string, args []arg) []arg {
	var out []arg
	for _, a := range args {
		if program == "find" && (strings.HasPrefix(a.s, "-") || a.s == "(" || a.s == "!") {
			if len(out) == 0 && (a.s == "-L" || a.s == "-H" || a.s == "-P") {
				continue
			}
			break
		}
		if !strings.HasPrefix(a.s, "-") {
			out = append(out, a)
		}
	}
	if program == "fd" && len(out) > 0 {
		out = out[1:]
	}
	return out
}

// operands gives a program's words that are neither options nor, for searchers, the expression.
func operands(program string, args []arg) []arg {
	pattern := patternFirst(program) || program == "rgrep"
	var out []arg
	for i := 0; i < len(args); i++ {
		s := args[i].s
		if strings.HasPrefix(s, "-") && len(s) > 1 {
			switch {
			case (s == "-e" || s == "--regexp" || s == "-f" || s == "--file") && pattern:
				pattern = false
				i++
			case pattern && (strings.HasPrefix(s, "--regexp=") || strings.HasPrefix(s, "--file=") || len(s) > 2 && s[1] == 'e'):
				pattern = false
			case optionTakesWord(program, s):
				i++
			}
			continue
		}
		if pattern {
			pattern = false
			continue
		}
		out = append(out, args[i])
	}
	return out
}

func optionTakesWord(program, s string) bool {
	switch program {
	case "install":
		switch s {
		case "-m", "-o", "-g", "-S", "--mode", "--owner", "--group", "--suffix":
			return true
		}

	case "grep", "egrep", "fgrep", "rgrep", "rg", "ag", "ack", "zgrep":
		switch s {
		case "-A", "-B", "-C", "-m", "-g", "-t", "-T", "--glob", "--type", "--include", "--exclude", "--max-count":
			return true
		}
	case "tar":
		return s == "-f" || s == "-C"
	case "awk", "gawk", "mawk":
		return s == "-F" || s == "-v"
	case "head", "tail":
		return s == "-n" || s == "-c"
	case "tree":
		return s == "-L" || s == "-P" || s == "-I"
	}
	return false
}

func hasFlag(args []arg, letters string, long ...string) bool {
	for _, a := range args {
		s := a.s
		for _, l := range long {
			if s == l {
				return true
			}
		}
		if len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.ContainsAny(s[1:], letters) {
			return true
		}
	}
	return false
}
