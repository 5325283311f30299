package normalize

import (
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// filter computes what a program that picks from lines prints for an input that is known.
func filter(name string, words []string, s string) val {
	switch name {
	case "sort", "uniq", "grep", "cut", "awk", "gawk", "mawk", "paste":
	default:
		return val{}
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	ok := false
	switch name {
	case "sort":
		ok = len(words) == 0 || len(words) == 1 && (words[0] == "-u" || words[0] == "-r")
		sort.Strings(lines)
		if len(words) == 1 && words[0] == "-r" {
			slices.Reverse(lines)
		} else if len(words) == 1 {
			lines = slices.Compact(lines)
		}
	case "uniq":
		lines, ok = slices.Compact(lines), len(words) == 0
	case "grep":
		lines, ok = grepped(words, lines)
	case "cut":
		lines, ok = cutFields(words, lines)
	case "paste":
		return pasted(words, lines)
	default:
		lines, ok = awkFields(words, lines)
	}
	return val{clip(strings.Join(lines, "\n")+"\n", maxValue), ok}
}

// grepped is grep with a plain pattern and no options but -v, -i, -F, -E and -a.
func grepped(words, lines []string) ([]string, bool) {
	flags, pattern := "", ""
	switch {
	case len(words) == 1 && !strings.HasPrefix(words[0], "-"):
		pattern = words[0]
	case len(words) == 2 && strings.HasPrefix(words[0], "-") && strings.Trim(words[0][1:], "viFEa") == "":
		flags, pattern = words[0], words[1]
	default:
		return nil, false
	}
	rx := lineRegexp(pattern, strings.Contains(flags, "E"), strings.Contains(flags, "F"), strings.Contains(flags, "i"))
	if rx == nil {
		return nil, false
	}
	return slices.DeleteFunc(lines, func(l string) bool { return rx.MatchString(l) == strings.Contains(flags, "v") }), true
}

// lineRegexp gives a regular expression of grep or sed; nil where it is not one that is read. Go's are
// linear in their input.
func lineRegexp(pattern string, extended, fixed, fold bool) *regexp.Regexp {
	if len(pattern) > 256 || pattern == "" {
		return nil
	}
	var b strings.Builder
	if fold {
		b.WriteString("(?i)")
	}
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case fixed:
			b.WriteString(regexp.QuoteMeta(string(c)))
		case c == '[':
			end := strings.IndexByte(pattern[min(i+2, len(pattern)):], ']')
			if end < 0 {
				return nil
			}
			b.WriteString(strings.ReplaceAll(pattern[i:i+2+end+1], `\`, `\\`))
			i += end + 2
		case c == '\\' && i+1 < len(pattern):
			i++
			switch d := pattern[i]; {
			case !extended && strings.IndexByte("(){}|+?", d) >= 0:
				b.WriteByte(d)
			case d == 'n' || d == 't' || d == 's' || d == 'S' || d == 'w' || d == 'W' || d == 'b':
				b.WriteString(`\` + string(d))
			case isWordByte(d) || strings.IndexByte("<>'`", d) >= 0:
				return nil
			default:
				b.WriteString(regexp.QuoteMeta(string(d)))
			}
		case !extended && strings.IndexByte("(){}|+?", c) >= 0:
			b.WriteString(`\` + string(c))
		case c == '*' && i == 0:
			b.WriteString(`\*`)
		default:
			b.WriteByte(c)
		}
	}
	rx, err := regexp.Compile(b.String())
	if err != nil {
		return nil
	}
	rx.Longest()
	return rx
}

// sedText is one s command of sed over known text.
func sedText(words []string, s string) val {
	extended := len(words) == 2 && (words[0] == "-E" || words[0] == "-r")
	if extended || len(words) == 2 && words[0] == "-e" {
		words = words[1:]
	}
	if len(words) != 1 || len(words[0]) < 4 || words[0][0] != 's' || isWordByte(words[0][1]) {
		return val{}
	}
	script := words[0]
	d := script[1]
	mid := closing(script, 2, d)
	if mid < 0 {
		return val{}
	}
	end := closing(script, mid+1, d)
	if end < 0 || strings.Trim(script[end+1:], "gI1") != "" {
		return val{}
	}
	flags := script[end+1:]
	rx := lineRegexp(strings.ReplaceAll(script[2:mid], `\`+string(d), string(d)), extended, false, strings.Contains(flags, "I"))
	if rx == nil {
		return val{}
	}
	to := sedReplacement(strings.ReplaceAll(script[mid+1:end], `\`+string(d), string(d)))
	lines := strings.Split(s, "\n")
	size := 0
	for i, line := range lines {
		if i == len(lines)-1 && line == "" {
			break
		}
		if strings.Contains(flags, "g") {
			lines[i] = rx.ReplaceAllString(line, to)
		} else if m := rx.FindStringSubmatchIndex(line); m != nil {
			lines[i] = line[:m[0]] + string(rx.ExpandString(nil, to, line, m)) + line[m[1]:]
		}
		if size += len(lines[i]); size > maxValue {
			return val{}
		}
	}
	return known(strings.Join(lines, "\n"))
}

// sedReplacement gives the right side of s/// as Go writes it.
func sedReplacement(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '$':
			b.WriteString("$$")
		case c == '&':
			b.WriteString("${0}")
		case c == '\\' && i+1 < len(s):
			i++
			switch d := s[i]; {
			case d >= '0' && d <= '9':
				b.WriteString("${" + string(d) + "}")
			case d == 'n':
				b.WriteByte('\n')
			case d == 't':
				b.WriteByte('\t')
			case d == '$':
				b.WriteString("$$")
			default:
				b.WriteByte(d)
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// cutFields is cut -d -f and cut -c with one list.
func cutFields(words, lines []string) ([]string, bool) {
	delimiter, list, chars := "\t", "", false
	for i := 0; i < len(words); i++ {
		w := words[i]
		value := ""
		if len(w) > 2 && w[0] == '-' && w[1] != '-' {
			value = w[2:]
		} else if i+1 < len(words) {
			i++
			value = words[i]
		}
		switch {
		case strings.HasPrefix(w, "-d"):
			delimiter = value
		case strings.HasPrefix(w, "-f"):
			list = value
		case strings.HasPrefix(w, "-c") || strings.HasPrefix(w, "-b"):
			list, chars = value, true
		default:
			return nil, false
		}
	}
	if list == "" || len(delimiter) != 1 {
		return nil, false
	}
	for n, line := range lines {
		parts := strings.Split(line, delimiter)
		if chars {
			parts, delimiter = strings.Split(line, ""), ""
		} else if len(parts) == 1 {
			continue
		}
		var out []string
		for _, item := range strings.Split(list, ",") {
			lo, hi, isRange := strings.Cut(item, "-")
			if !isRange {
				hi = lo
			}
			from, ok := position(lo, 1)
			to, also := position(hi, len(parts))
			if !ok || !also {
				return nil, false
			}
			to = min(to, len(parts))
			if from <= to && len(out) < maxText {
				out = append(out, parts[from-1:to]...)
			}
		}
		lines[n] = strings.Join(out, delimiter)
	}
	return lines, true
}

// position reads one end of a range of cut.
func position(s string, unset int) (int, bool) {
	if s == "" {
		return unset, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0
}

// awkFields is awk '{print $2, $3}', with -F.
func awkFields(words, lines []string) ([]string, bool) {
	sep := ""
	for len(words) > 1 && strings.HasPrefix(words[0], "-F") {
		if sep = words[0][2:]; sep == "" {
			sep, words = words[1], words[1:]
		}
		words = words[1:]
	}
	if len(words) != 1 || len(sep) > 1 {
		return nil, false
	}
	body := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(words[0]), "{"), "}"))
	list, ok := strings.CutPrefix(body, "print")
	if !ok {
		return nil, false
	}
	var cols []int
	for _, c := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(c), "$"))
		if err != nil || n < 0 || !strings.Contains(c, "$") {
			return nil, false
		}
		cols = append(cols, n)
	}
	for i, line := range lines {
		parts := strings.Fields(line)
		if sep != "" && sep != " " {
			parts = strings.Split(line, sep)
		}
		var out []string
		for _, n := range cols {
			switch {
			case n == 0:
				out = append(out, line)
			case n <= len(parts):
				out = append(out, parts[n-1])
			default:
				out = append(out, "")
			}
		}
		lines[i] = strings.Join(out, " ")
	}
	return lines, true
}

// pasted is paste -s, with -d.
func pasted(words, lines []string) val {
	sep, serial := "\t", false
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "-" {
			continue
		}
		if !strings.HasPrefix(w, "-") {
			return val{}
		}
		serial = serial || strings.Contains(before(w, "d"), "s")
		if _, v, ok := strings.Cut(w, "d"); ok {
			if v == "" && i+1 < len(words) {
				i++
				v = words[i]
			}
			sep = ansiC(v)
		}
	}
	if !serial || len(sep) > 1 {
		return val{}
	}
	return known(strings.Join(lines, sep) + "\n")
}
