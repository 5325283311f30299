package normalize

import (
	"strconv"
	"strings"
)

// awk reads an awk program, the values that it is given and the files that it names.
func (r *run) awk(args []arg, f frame) {
	var given strings.Builder
	for i := 1; i < len(args); i++ {
		s := args[i].s
		switch {
		case s == "-F":
			i++
		case strings.HasPrefix(s, "-v"):
			if s == "-v" {
				if i++; i == len(args) {
					return
				}
				s = args[i].s
			} else {
				s = s[2:]
			}
			if name, value, ok := strings.Cut(s, "="); ok && isAssignment(s) {
				given.WriteString(name + "=" + strconv.Quote(value) + ";")
			}
		case s == "-f" || s == "--file":
			if i+1 < len(args) {
				r.scriptFile("awk", r.abs(args[i+1].s), f, val{})
			}
			return
		case (s == "-e" || s == "--source") && i+1 < len(args), !strings.HasPrefix(s, "-"):
			if strings.HasPrefix(s, "-") {
				s = args[i+1].s
			}
			if awkActs(s) {
				r.script("", "awk", given.String()+s, f)
			}
			return
		}
	}
}

// awkActs tells whether an awk program does more than print what it reads.
func awkActs(s string) bool {
	for _, w := range [...]string{"getline", "system", "/inet", "ARGV", "@include", "@load"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return strings.Contains(s, "print") && (strings.Contains(s, "|") && !strings.Contains(s, "||") || strings.Contains(s, ">\"") || strings.Contains(s, "> \""))
}

// awkPipes reads "cmd" | getline, print "x" | "cmd" and print > "file" out of the tokens.
func (a *analysis) awkPipes(via frame) bool {
	found, printing := false, false
	printed := ""
	for i, t := range a.f.toks {
		switch {
		case t.kind == tokName && (t.text == "print" || t.text == "printf"):
			printing = true
			if c, _, ok := a.f.expr(i + 1); ok && !c.num && !c.lists {
				printed = c.s
			}
		case a.f.is(i, ";") || a.f.is(i, "}") || a.f.is(i, "{"):
			printing, printed = false, ""
		case a.f.is(i, "|") && !a.f.is(i+1, "|") && !a.f.is(i-1, "|"):
			if a.f.is(i+1, "&") {
				i++
			}
			if a.f.at(i+1).text == "getline" {
				if s, ok := a.endingAt(i); ok {
					found = true
					a.r.source(&unit{src: s}, via, val{})
				}
			} else if c, _, ok := a.f.expr(i + 1); ok && !c.num && !c.lists {
				found = true
				a.r.source(&unit{src: c.s}, via, val{printed, printed != ""})
			}
		case printing && a.f.is(i, ">") && !a.f.is(i-1, ">"):
			appends := a.f.is(i+1, ">")
			if appends {
				i++
			}
			if c, _, ok := a.f.expr(i + 1); ok && !c.num && !c.lists && c.s != "/dev/stderr" && c.s != "/dev/stdout" {
				a.wrote(c.s, appends, printed)
			}
		}
	}
	return found
}

// endingAt gives the constant that ends before token i.
func (a *analysis) endingAt(i int) (string, bool) {
	for _, l := range a.lits {
		if l.next == i {
			return l.value, true
		}
	}
	c, ok := a.f.vars[a.f.at(i-1).text]
	return c.s, ok && a.f.at(i-1).kind == tokName && !c.num && !c.lists
}
