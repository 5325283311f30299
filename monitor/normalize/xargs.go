package normalize

import "strings"

// xargs runs a program with words from stdin or a file. Where they are not known they are a placeholder.
func (r *run) xargs(name string, args []arg, env map[string]string, f frame, in val) (val, bool) {
	w := wrapper{values: "InPLdaEsji", long: []string{"--max-args", "--max-procs", "--delimiter", "--arg-file", "--jobs"}}
	rest := r.skipOptions(args[1:], w, nil)
	rest, given := parallelWords(name, rest)
	if len(rest) == 0 {
		return val{}, false
	}
	options := args[:len(args)-len(rest)-len(given)]
	if file, ok := optionJoined(options, "-a", "--arg-file"); ok && given == nil {
		in = r.contentOf(r.abs(file.s))
	}
	replace, ok := optionJoined(options, "-I", "--replace")
	if !ok && name == "parallel" {
		replace, ok = arg{s: "{}"}, strings.Contains(strings.Join(texts(rest), " "), "{}")
	}
	words := given
	if words == nil {
		words = xargsWords(options, in)
	}
	g := f.wrapped(name)
	if ok && replace.s != "" {
		for _, word := range words {
			sub := make([]arg, len(rest))
			for i, a := range rest {
				sub[i] = a
				if strings.Contains(a.s, replace.s) {
					sub[i].s = strings.ReplaceAll(a.s, replace.s, word.s)
					sub[i].opaque = a.opaque || word.opaque
				}
			}
			r.simple(sub, env, g, val{})
		}
		return val{}, true
	}
	return r.simple(append(rest[:len(rest):len(rest)], words...), env, g, val{}), true
}

// parallelWords splits parallel's command from the words after ":::"; nil where there are none.
func parallelWords(name string, rest []arg) (command, words []arg) {
	if name != "parallel" {
		return rest, nil
	}
	for i, a := range rest {
		if a.s == ":::" && i > 0 {
			return rest[:i], rest[i+1:][:min(len(rest)-i-1, maxLoop)]
		}
	}
	return rest, nil
}

// xargsWords splits what xargs reads as its options say: at blanks, at NUL bytes or at one character.
func xargsWords(options []arg, in val) []arg {
	if strings.TrimSpace(in.s) == "" {
		return []arg{{s: "<stdin>", opaque: true}}
	}
	var parts []string
	delimiter, cut := optionJoined(options, "-d", "--delimiter")
	switch {
	case cut && delimiter.s != "":
		parts = strings.Split(strings.TrimSuffix(in.s, "\n"), clip(ansiC(delimiter.s), 1))
	case hasFlag(options, "0", "--null"):
		parts = strings.Split(strings.TrimSuffix(in.s, "\x00"), "\x00")
	default:
		parts = strings.Fields(in.s)
	}
	quotes := !cut && !hasFlag(options, "0", "--null")
	var words []arg
	for i, s := range parts {
		if i >= maxLoop {
			break
		}
		w := arg{s: s, raw: s}
		if quotes {
			w.s = strings.Trim(s, `'"`)
		}
		if !in.known && strings.ContainsAny(s, "*?[") {
			w.glob = s
		}
		words = append(words, w)
	}
	return words
}

// optionJoined is optionValue that knows -xVALUE too.
func optionJoined(args []arg, short, long string) (arg, bool) {
	if v, ok := optionValue(args, short, long); ok {
		return v, true
	}
	for _, a := range args {
		if v, ok := strings.CutPrefix(a.s, short); ok && v != "" {
			return arg{s: v, raw: a.raw, opaque: a.opaque}, true
		}
	}
	return arg{}, false
}
