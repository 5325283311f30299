package decoy

import (
	"fmt"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// literal gives shell text that does what reply says: one compound command on one line, which can
// stand wherever a simple command can. It is POSIX, so that it also works where sh is the shell.
// Last is a shell word that $_ is to hold afterwards, "" for none. Nothing but builtins is named.
func literal(r reply, last string) string {
	var b strings.Builder
	b.WriteString("{ ")
	for _, p := range r.parts {
		b.WriteString("printf -- " + format(p.text))
		if p.err {
			b.WriteString(" >&2")
		}
		b.WriteString("; ")
	}
	if len(r.stdout) > 0 && r.parts == nil {
		b.WriteString("printf -- " + format(r.stdout) + "; ")
	}
	if r.shell != "" {
		b.WriteString(r.shell + "; ")
	} else if len(r.stderr) > 0 && r.parts == nil {
		b.WriteString("printf -- " + format(r.stderr) + " >&2; ")
	}
	if last != "" {
		b.WriteString(": " + last + "; ")
	}
	if r.exit == 0 {
		b.WriteString(":" + lastArg(last) + "; }")
		return b.String()
	}
	fmt.Fprintf(&b, "(exit %d); }", r.exit)
	return b.String()
}

// lastArg keeps $_ through the closing no-op.
func lastArg(last string) string {
	if last == "" {
		return ""
	}
	return " " + last
}

// format quotes b as a format of printf without directives, on one line.
func format(b []byte) string {
	var s strings.Builder
	s.WriteByte('\'')
	for _, c := range b {
		switch {
		case c == '\'':
			s.WriteString(`'\''`)
		case c == '%':
			s.WriteString("%%")
		case c == '\\':
			s.WriteString(`\\`)
		case c == '\n':
			s.WriteString(`\n`)
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&s, `\%03o`, c)
		default:
			s.WriteByte(c)
		}
	}
	s.WriteByte('\'')
	return s.String()
}

// quote gives s as one shell word.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
