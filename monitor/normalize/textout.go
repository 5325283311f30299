package normalize

import (
	"slices"
	"strconv"
	"strings"
)

// textOutput computes what a program that only transforms text would print, where its input is
// known. That is what lets echo ... | base64 -d | sh be read.
func (r *run) textOutput(name string, args []arg, in val) val {
	if anyOpaque(args[1:]) {
		return val{}
	}
	words := texts(args[1:])
	switch name {
	case "echo":
		return echo(words)
	case "printf":
		if len(words) > 0 && words[0] == "--" {
			words = words[1:]
		}
		if len(words) == 0 || words[0] == "-v" {
			if len(words) > 2 {
				if s, ok := printf(words[2], words[3:]); ok {
					r.st.vars.set(words[1], variable{value: s, known: true})
				}
			}
			return known("")
		}
		s, ok := printf(words[0], words[1:])
		return val{clip(s, maxValue), ok}
	case "pwd":
		return known(r.st.cwd + "\n")
	case "cat", "tac", "head", "tail", "tee":
		return r.copyText(name, args, in)
	case "ls", "find":
		return listing(name, args)
	case "seq":
		return seq(words)
	case "basename", "dirname":
		return pathPart(name, words)
	case "realpath", "readlink":
		if len(words) > 0 {
			return known(r.follow(r.abs(words[len(words)-1])) + "\n")
		}
	case "mktemp", "true", "export", "alias", "cd", "mkdir", "touch", "rm", "cp", "mv", "ln", "chmod":
		return val{"", name != "mktemp"}
	}
	if lang := langOfProgram(name); lang != "" && lang != "awk" {
		if lang == "python" && len(words) > 2 && words[0] == "-m" && words[1] == "base64" && words[2] == "-d" {
			return transform("base64", words[2:], in.s)
		}
		return r.scriptPrint(lang, args)
	}
	src := r.inputOf(name, args, in)
	if !src.known {
		return val{}
	}
	return transform(name, words, src.s)
}

// listing gives what ls and find are asked about as patterns: not their output, but enough to see what
// a later xargs works on.
func listing(name string, args []arg) val {
	var out []string
	if name == "find" {
		for _, a := range findRoots("find", args[1:]) {
			out = append(out, strings.TrimSuffix(a.s, "/")+"/*")
		}
	} else {
		for _, a := range operands(name, args[1:]) {
			if a.glob != "" {
				out = append(out, a.s)
			}
		}
	}
	return val{s: strings.Join(out, "\n")}
}

func echo(words []string) val {
	escape, newline := false, true
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' && strings.Trim(words[0][1:], "neE") == "" {
		escape = escape || strings.ContainsRune(words[0], 'e')
		newline = newline && !strings.ContainsRune(words[0], 'n')
		words = words[1:]
	}
	s := strings.Join(words, " ")
	if escape {
		s = echoEscapes(s)
	}
	if newline {
		s += "\n"
	}
	return known(s)
}

// copyText is cat and its like: known files and stdin.
func (r *run) copyText(name string, args []arg, in val) val {
	ops := operands(name, args[1:])
	if name == "tee" || len(ops) == 0 || len(ops) == 1 && ops[0].s == "-" {
		if name == "cat" || name == "tee" {
			return in
		}
		return cutLines(name, args, in)
	}
	var b strings.Builder
	for _, a := range ops {
		if a.glob != "" {
			return val{}
		}
		c := r.contentOf(r.abs(a.s))
		if a.s == "-" {
			c = in
		}
		if !c.known {
			return val{}
		}
		b.WriteString(c.s)
	}
	return cutLines(name, args, known(b.String()))
}

// cutLines is head -n and tail -n.
func cutLines(name string, args []arg, in val) val {
	if !in.known || name == "cat" {
		return in
	}
	n := 10
	for i, a := range args {
		s := a.s
		switch {
		case s == "-n" && i+1 < len(args):
			s = args[i+1].s
		case strings.HasPrefix(s, "-n"):
			s = s[2:]
		case len(s) > 1 && s[0] == '-' && s[1] >= '0' && s[1] <= '9':
			s = s[1:]
		case s == "-c" && i+1 < len(args):
			return cutBytes(name, args[i+1].s, in.s)
		case strings.HasPrefix(s, "-c"):
			return cutBytes(name, s[2:], in.s)
		default:
			continue
		}
		v, err := strconv.Atoi(s)
		if err != nil || v < 0 {
			return val{}
		}
		n = v
	}
	lines := strings.SplitAfter(in.s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	switch name {
	case "head":
		lines = lines[:min(n, len(lines))]
	case "tail":
		lines = lines[max(0, len(lines)-n):]
	case "tac":
		slices.Reverse(lines)
	default:
		return val{}
	}
	return known(strings.Join(lines, ""))
}

// cutBytes is head -c N and tail -c N or +N.
func cutBytes(name, count, s string) val {
	from, plus := strings.CutPrefix(count, "+")
	n, err := strconv.Atoi(from)
	switch {
	case err != nil || n < 0:
		return val{}
	case name == "head":
		return known(s[:min(n, len(s))])
	case plus:
		return known(s[min(max(n-1, 0), len(s)):])
	case name == "tail":
		return known(s[max(0, len(s)-n):])
	}
	return val{}
}

func seq(words []string) val {
	lo, hi := 1, 0
	var err error
	switch len(words) {
	case 1:
		hi, err = strconv.Atoi(words[0])
	case 2:
		if lo, err = strconv.Atoi(words[0]); err == nil {
			hi, err = strconv.Atoi(words[1])
		}
	default:
		return val{}
	}
	if err != nil || hi-lo > 4096 || lo < -1<<30 || hi > 1<<30 {
		return val{}
	}
	var b strings.Builder
	for i := lo; i <= hi; i++ {
		b.WriteString(strconv.Itoa(i))
		b.WriteByte('\n')
	}
	return known(b.String())
}

func pathPart(name string, words []string) val {
	if len(words) == 0 {
		return val{}
	}
	s := strings.TrimRight(words[0], "/")
	i := strings.LastIndexByte(s, '/')
	if name == "dirname" {
		switch {
		case i < 0:
			return known(".\n")
		case i == 0:
			return known("/\n")
		}
		return known(s[:i] + "\n")
	}
	s = s[i+1:]
	if len(words) > 1 {
		s = strings.TrimSuffix(s, words[1])
	}
	return known(s + "\n")
}

// scriptPrint is python -c 'print(<constant>)' and its like in other languages.
func (r *run) scriptPrint(lang string, args []arg) val {
	for i, a := range args {
		if !codeOption(lang, a.s) || i+1 >= len(args) || len(args[i+1].s) > 4096 {
			continue
		}
		fo := &folder{toks: lex(args[i+1].s, lang), lang: lang, cwd: r.st.cwd}
		fo.literals()
		if a.s == "-p" {
			c, _, ok := fo.expr(0)
			return val{c.str() + "\n", ok && !c.lists}
		}
		for j := range fo.toks {
			t := fo.toks[j]
			if t.kind != tokName || !printCall(lang, t.text) {
				continue
			}
			if c, k, ok := fo.expr(j + 1); ok && !c.lists && (fo.is(j+1, "(") || lang != "python" && (k >= len(fo.toks) || fo.is(k, ";"))) {
				return known(c.str() + "\n")
			}
		}
	}
	return val{}
}

func printCall(lang, name string) bool {
	switch name {
	case "print":
		return lang != "node"
	case "write":
		return lang == "python" || lang == "node" || lang == "lua"
	case "log":
		return lang == "node"
	case "puts":
		return lang == "ruby"
	case "say":
		return lang == "perl"
	case "echo":
		return lang == "php"
	}
	return false
}

// inputOf gives what a filter reads: its file operand or stdin.
func (r *run) inputOf(name string, args []arg, in val) val {
	switch name {
	case "tr", "rev":
		return in
	case "base64", "base32", "xxd", "gunzip", "zcat", "gzip", "openssl", "uudecode", "cut", "sed", "sort", "uniq", "rot13", "grep", "xz", "unxz", "xzcat", "bzip2", "bunzip2", "bzcat", "paste", "awk", "gawk", "mawk":
	default:
		return val{}
	}
	if f, ok := optionValue(args, "-in"); ok && name == "openssl" {
		return r.contentOf(r.abs(f.s))
	}
	ops := operands(name, args[1:])
	switch name {
	case "openssl":
		ops = ops[min(1, len(ops)):]
	case "uudecode", "paste":
		ops = nil
	case "cut":
		ops = operandsAfter(args[1:], "-d", "-f", "-c", "-b")
	}
	if name == "xxd" && len(ops) > 1 {
		return val{}
	}
	if len(ops) == 0 || ops[0].s == "-" {
		return in
	}
	return r.contentOf(r.abs(ops[0].s))
}

var trClasses = strings.NewReplacer("[:upper:]", "A-Z", "[:lower:]", "a-z", "[:digit:]", "0-9", "[:space:]", " \t\n\r\v\f", "[:blank:]", " \t", "[:alpha:]", "A-Za-z", "[:alnum:]", "0-9A-Za-z")

// tr translates or deletes characters; sets with ranges, escapes and the common classes.
func tr(words []string, s string) val {
	del := false
	if len(words) > 0 && words[0] == "-d" {
		del, words = true, words[1:]
	}
	for i, w := range words {
		words = append(words[:i:i], append([]string{trClasses.Replace(w)}, words[i+1:]...)...)
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "[:") {
		return val{}
	}
	from := trSet(words[0])
	var to []rune
	if !del {
		if len(words) < 2 || strings.Contains(words[1], "[:") {
			return val{}
		}
		to = trSet(words[1])
		if len(to) == 0 {
			return val{}
		}
	}
	table := map[rune]int{}
	for i, c := range from {
		if _, ok := table[c]; !ok {
			table[c] = i
		}
	}
	return known(strings.Map(func(c rune) rune {
		i, ok := table[c]
		switch {
		case !ok:
			return c
		case del:
			return -1
		}
		return to[min(i, len(to)-1)]
	}, s))
}

func trSet(s string) []rune {
	in := []rune(ansiC(s))
	var out []rune
	for i := 0; i < len(in) && len(out) < 4096; i++ {
		if i+2 < len(in) && in[i+1] == '-' && in[i+2] >= in[i] && in[i+2]-in[i] < 256 {
			for c := in[i]; c <= in[i+2]; c++ {
				out = append(out, c)
			}
			i += 2
			continue
		}
		out = append(out, in[i])
	}
	return out
}

// operandsAfter gives the words that are no options and no values of these ones.
func operandsAfter(args []arg, values ...string) []arg {
	var out []arg
	for i := 0; i < len(args); i++ {
		switch s := args[i].s; {
		case has(values, s):
			i++
		case !strings.HasPrefix(s, "-"):
			out = append(out, args[i])
		}
	}
	return out
}
