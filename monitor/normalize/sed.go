package normalize

import (
	"strings"

	"proctor/rules"
)

// sed records the files that sed -i edits and those that its w command writes.
func (r *run) sed(args []arg) {
	inPlace := false
	var scripts []string
	var files []arg
	for i := 1; i < len(args); i++ {
		s := args[i].s
		switch {
		case s == "--in-place" || strings.HasPrefix(s, "--in-place="), len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.ContainsRune(s, 'i') && !strings.HasPrefix(s, "-e"):
			inPlace = true
			if strings.HasSuffix(s, "e") && i+1 < len(args) {
				i++
				scripts = append(scripts, args[i].s)
			}
		case s == "-e" || s == "--expression" || s == "-f":
			if i++; i < len(args) {
				scripts = append(scripts, args[i].s)
			}
		case strings.HasPrefix(s, "-"):
		case len(scripts) == 0:
			scripts = append(scripts, s)
		default:
			files = append(files, args[i])
		}
	}
	var removed, added []string
	for _, s := range scripts {
		rm, add := substitution(s)
		removed, added = append(removed, rm), append(added, add)
	}
	if !inPlace {
		return
	}
	for _, a := range files {
		fl := rules.File{Op: "edit", Path: r.abs(a.s), Added: strings.Join(added, "\n"), Removed: strings.Join(removed, "\n")}
		r.edit(fl, false)
	}
}

// substitution gives what a sed or perl script takes away and what it puts in: the two sides of each
// s///, the text of a, i and c, and the pattern of a deletion. Escapes are resolved as sed does.
func substitution(script string) (removed, added string) {
	var rm, add []string
	for i := 0; i < len(script) && len(add) < 64; {
		c := script[i]
		prev := byte(' ')
		if i > 0 {
			prev = script[i-1]
		}
		switch {
		case c == 's' && !isLetter(prev) && i+1 < len(script) && !isWordByte(script[i+1]) && script[i+1] != ' ' && script[i+1] != '\n' && script[i+1] != '\\':
			from, to, next := sides(script, i+1)
			if next > 0 {
				rm, add = append(rm, from), append(add, plainReplacement(to))
				i = next
				continue
			}
		case c == '/' || c == '\\' && i+1 < len(script):
			if c == '/' {
				if j := closing(script, i+1, '/'); j > 0 {
					if rest := strings.TrimLeft(script[j+1:], " ,$I0123456789"); strings.HasPrefix(rest, "d") {
						rm = append(rm, plainPattern(script[i+1:j]))
					}
					i = j + 1
					continue
				}
			}
			i++
		case (c == 'a' || c == 'i' || c == 'c') && !isLetter(prev) && (i+1 == len(script) || strings.IndexByte(" \\\t", script[i+1]) >= 0 || prev >= '0' && prev <= '9'):
			text := strings.TrimLeft(script[i+1:], " \t")
			text = strings.TrimPrefix(text, "\\")
			text = strings.TrimPrefix(text, "\n")
			add = append(add, plainReplacement(text))
			return strings.Join(rm, "\n"), strings.Join(add, "\n")
		}
		i++
	}
	return strings.Join(rm, "\n"), strings.Join(add, "\n")
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// sides splits s/a/b/ at its delimiter; next is after the last delimiter, 0 where it is no
// substitution.
func sides(s string, i int) (from, to string, next int) {
	d := s[i]
	end := d
	if k := strings.IndexByte("{([<", d); k >= 0 {
		end = "})]>"[k]
	}
	j := closing(s, i+1, end)
	if j < 0 {
		return "", "", 0
	}
	start := j + 1
	if end != d { // perl's s{a}{b}
		for start < len(s) && s[start] != d {
			start++
		}
		start++
		if start > len(s) {
			return "", "", 0
		}
	}
	k := closing(s, start, end)
	if k < 0 {
		k = len(s)
	}
	return plainPattern(s[i+1 : j]), s[start:k], min(k+1, len(s))
}

func closing(s string, i int, d byte) int {
	for ; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			continue
		}
		if s[i] == d {
			return i
		}
	}
	return -1
}

// plainReplacement resolves \n, \t and escaped characters of a replacement.
func plainReplacement(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		default:
			if s[i] >= '0' && s[i] <= '9' {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func plainPattern(s string) string {
	return patternEscapes.Replace(strings.Trim(s, "^$"))
}

var patternEscapes = strings.NewReplacer(`\.`, ".", `\(`, "(", `\)`, ")", `\[`, "[", `\]`, "]", `\*`, "*", `\/`, "/", `\n`, "\n", `\{`, "{", `\}`, "}")
