package normalize

import (
	"strings"

	"proctor/rules"
)

// sedAction is a command of a sed script that reads or writes a file or runs a shell.
type sedAction struct {
	do   byte   // r, w or e; e without a text runs what the pattern space holds
	text string // a file or a command
}

// sedActions records the files that r, R, w and W name and reads what e runs, for command i.
func (r *run) sedActions(i int, args []arg, f frame, in val) {
	for _, script := range r.sedScripts(args) {
		for _, a := range sedActionsOf(script) {
			switch a.do {
			case 'r':
				r.addPath(&r.ev.Commands[i], arg{s: a.text})
			case 'w':
				if p := r.abs(a.text); !quietDevice(p) {
					r.edit(rules.File{Op: "create", Path: p}, false)
					r.ev.Commands[i].Writes = appendNew(r.ev.Commands[i].Writes, p)
				}
			case 'e':
				g := f.wrapped("sed")
				g.exact, g.span.Exact = false, false
				if a.text == "" {
					a.text = r.inputOf("sed", args, in).s
				}
				r.source(&unit{src: a.text}, g, val{})
			}
		}
	}
}

// sedScripts gives the scripts among sed's words.
func (r *run) sedScripts(args []arg) []string {
	var out []string
	given := false
	for i := 1; i < len(args); i++ {
		s := args[i].s
		switch {
		case (s == "-e" || s == "--expression" || s == "-f" || s == "--file") && i+1 < len(args):
			i++
			given = true
			if s == "-e" || s == "--expression" {
				out = append(out, args[i].s)
			} else {
				out = append(out, r.contentOf(r.abs(args[i].s)).s)
			}
		case strings.HasPrefix(s, "--expression="):
			given = true
			out = append(out, s[len("--expression="):])
		case strings.HasPrefix(s, "-") && len(s) > 1 && s[1] != '-' && strings.HasSuffix(s, "e") && i+1 < len(args):
			i++
			given = true
			out = append(out, args[i].s)
		case !strings.HasPrefix(s, "-") && !given:
			return append(out, s)
		}
	}
	return out
}

// sedActionsOf walks a sed script, past its addresses, patterns and texts.
func sedActionsOf(script string) []sedAction {
	if !strings.ContainsAny(script, "rRwWe") {
		return nil
	}
	var out []sedAction
	toEOL := func(i int) (string, int) {
		end := strings.IndexByte(script[i:], '\n')
		if end < 0 {
			end = len(script) - i
		}
		return strings.TrimSpace(script[i : i+end]), i + end
	}
	for i := 0; i < len(script) && len(out) < 32; {
		c := script[i]
		text := ""
		switch {
		case c == '/':
			i = pastPattern(script, i+1, '/')
		case c == '\\' && i+1 < len(script):
			i = pastPattern(script, i+2, script[i+1])
		case c == 's' || c == 'y':
			if i+1 >= len(script) {
				return out
			}
			d := script[i+1]
			i = pastPattern(script, pastPattern(script, i+2, d), d)
			for c == 's' && i < len(script) && strings.IndexByte("gpiImMe0123456789", script[i]) >= 0 {
				if script[i] == 'e' {
					out = append(out, sedAction{'e', ""})
				}
				i++
			}
			if c == 's' && i < len(script) && script[i] == 'w' {
				text, i = toEOL(i + 1)
				out = append(out, sedAction{'w', text})
			}
		case c == 'r' || c == 'R' || c == 'w' || c == 'W' || c == 'e':
			text, i = toEOL(i + 1)
			switch {
			case c == 'e':
				out = append(out, sedAction{'e', strings.TrimRight(text, "}; ")})
			case text != "":
				out = append(out, sedAction{c | 0x20, text})
			}
		case c == 'a' || c == 'i' || c == 'c':
			for _, i = toEOL(i + 1); i < len(script) && script[i-1] == '\\'; {
				_, i = toEOL(i + 1)
			}
		case c == 'b' || c == 't' || c == 'T' || c == ':' || c == '#':
			if end := strings.IndexAny(script[i:], "\n;}"); end > 0 {
				i += end
			} else {
				i = len(script)
			}
		default:
			i++
		}
	}
	return out
}

// pastPattern gives the place after the next unescaped d; a bracket expression hides it.
func pastPattern(s string, i int, d byte) int {
	if j := closing(s, i, d); j >= 0 {
		return j + 1
	}
	return len(s)
}
