package normalize

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansiC resolves the escapes of $'...'.
func ansiC(s string) string { return escapes(s, false) }

// echoEscapes resolves those of echo -e and of printf's format and %b, where octal is \0nnn too.
func echoEscapes(s string) string { return escapes(s, true) }

func escapes(s string, zero bool) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'e', 'E':
			b.WriteByte(27)
		case 'f':
			b.WriteByte(12)
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte(11)
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		case 'x':
			i += number(&b, s[i+1:], 16, 2, false)
		case 'u':
			i += number(&b, s[i+1:], 16, 4, true)
		case 'U':
			i += number(&b, s[i+1:], 16, 8, true)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			if zero && c == '0' {
				i += number(&b, s[i+1:], 8, 3, false)
				break
			}
			i += number(&b, s[i:], 8, 3, false) - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// number writes the character that up to max digits name, and gives how many digits it took.
func number(b *strings.Builder, s string, radix, limit int, unicode bool) int {
	n := 0
	for n < len(s) && n < limit && isDigit(s[n], radix) {
		n++
	}
	if n == 0 {
		return 0
	}
	v, _ := strconv.ParseUint(s[:n], radix, 32)
	if unicode {
		if v > utf8.MaxRune {
			v = utf8.RuneError
		}
		b.WriteRune(rune(v))
	} else {
		b.WriteByte(byte(v))
	}
	return n
}

func isDigit(c byte, radix int) bool {
	switch {
	case c >= '0' && c <= '7':
		return true
	case radix == 8:
		return false
	}
	return c == '8' || c == '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// printf formats as the shell's printf does; false where a directive is not one it knows.
func printf(format string, args []string) (string, bool) {
	var out strings.Builder
	for first := true; first || len(args) > 0; first = false {
		used, ok := printfOnce(&out, format, &args)
		if !ok || out.Len() > maxValue {
			return "", false
		}
		if used == 0 {
			break
		}
	}
	return out.String(), true
}

func printfOnce(out *strings.Builder, format string, args *[]string) (used int, ok bool) {
	next := func() string {
		used++
		if len(*args) == 0 {
			return ""
		}
		s := (*args)[0]
		*args = (*args)[1:]
		return s
	}
	rest := format
	for rest != "" {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			out.WriteString(echoEscapes(rest))
			break
		}
		out.WriteString(echoEscapes(rest[:i]))
		rest = rest[i+1:]
		flags := len(rest) - len(strings.TrimLeft(rest, "-+ #0123456789."))
		if flags >= len(rest) {
			return used, false
		}
		verb := rest[flags]
		spec := rest[:flags]
		rest = rest[flags+1:]
		switch verb {
		case '%':
			out.WriteByte('%')
		case 's':
			out.WriteString(pad(next(), spec))
		case 'b':
			out.WriteString(echoEscapes(next()))
		case 'q':
			out.WriteString(next())
		case 'c':
			out.WriteString(clip(next(), 1))
		case 'd', 'i', 'u':
			n, _ := strconv.ParseInt(next(), 0, 64)
			out.WriteString(pad(strconv.FormatInt(n, 10), spec))
		case 'x':
			n, _ := strconv.ParseInt(next(), 0, 64)
			out.WriteString(pad(strconv.FormatInt(n, 16), spec))
		case 'o':
			n, _ := strconv.ParseInt(next(), 0, 64)
			out.WriteString(pad(strconv.FormatInt(n, 8), spec))
		default:
			return used, false
		}
	}
	return used, true
}

// pad applies a width; precision cuts. Widths over 4096 are ignored: no honest output needs them.
func pad(s, spec string) string {
	width, precision, cut := strings.Cut(strings.TrimLeft(spec, "-+ #"), ".")
	if n, err := strconv.Atoi(precision); cut && err == nil && n < len(s) {
		s = s[:n]
	}
	n, err := strconv.Atoi(width)
	if err != nil || n <= len(s) || n > 4096 {
		return s
	}
	fill := strings.Repeat(" ", n-len(s))
	switch {
	case strings.HasPrefix(spec, "-"):
		return s + fill
	case strings.HasPrefix(width, "0"):
		return strings.Repeat("0", n-len(s)) + s
	}
	return fill + s
}
