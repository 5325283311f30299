package normalize

// Bounds on what is parsed. mvdan.cc/sh recurses once per nesting level and has no limit of its
// own: 400 KB of "((((" overflow the stack, which recover cannot catch. The text cap alone keeps any
// nest of keywords ("if if if ...", at least three bytes a level) far from that; the nesting cap
// does the same for brackets, which cost one byte a level, and keeps the worst parse near 15 ms.
const (
	maxText    = 64 << 10
	maxNesting = 100
)

// parseable tells whether text may be given to the parser. It over-counts nesting on purpose: a
// bracket inside quotes counts too, since a substitution inside quotes reopens code.
func parseable(text string) bool {
	if len(text) > maxText {
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			if depth++; depth > maxNesting {
				return false
			}
		case ')', '}', ']':
			if depth > 0 {
				depth--
			}
		case '`':
			// A backquote nested in backquotes is escaped once more per level, so that the run of
			// backslashes before it doubles: 64 of them are six levels.
			if i >= 64 && allBackslashes(text[i-64:i]) {
				return false
			}
		}
	}
	return true
}

func allBackslashes(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			return false
		}
	}
	return true
}
