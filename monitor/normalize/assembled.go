package normalize

import "strings"

// assembled gives what code that is written says once its constants are put together: the lines in which a
// text stands that the source spells in parts or encoded, with that text whole, and decoded code by itself.
// It is "" for code that says what it means.
func (r *run) assembled(p, added string) string {
	if added == "" || len(added) > maxContent || !strings.ContainsAny(added, "\"'`") {
		return ""
	}
	lang := langOf(p, added)
	if lang == "" || lang == "sh" {
		return ""
	}
	fo, lits := r.folded(added, lang)
	var hidden []literal
	var code []string
	for _, l := range lits {
		switch {
		case !l.folded, len(l.value) < 4, strings.Contains(added, l.value), l.value == r.st.cwd, strings.HasPrefix(l.value, r.st.cwd+"/"):
			continue
		case fo.at(l.tok).interp && l.next == l.tok+1 && strings.ContainsAny(l.value, " {$"):
			continue // a sentence with values in it
		}
		hidden = append(hidden, l)
		if strings.ContainsAny(l.value, "\n(") {
			code = append(code, l.value)
		}
	}
	if len(hidden) == 0 {
		return ""
	}
	return clip(missingLines(rewrite(added, hidden), added)+"\n"+strings.Join(code, "\n"), maxContent)
}
