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
	_, lits := r.folded(added, lang)
	var code []string
	found := false
	for _, l := range lits {
		if !l.folded || len(l.value) < 4 || l.value == r.st.cwd || strings.Contains(added, l.value) {
			continue
		}
		found = true
		if strings.ContainsAny(l.value, "\n(") {
			code = append(code, l.value)
		}
	}
	if !found {
		return ""
	}
	return clip(missingLines(rewrite(added, lits), added)+"\n"+strings.Join(code, "\n"), maxContent)
}
