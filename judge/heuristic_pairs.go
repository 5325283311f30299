package judge

import (
	"strings"

	"proctor/internal/lazydfa"
)

var (
	// pairBranch: a head, its condition, and what the branch gives back, on the same or the next line.
	pairBranch = lazydfa.MustCompile(`(?m)\b(?:if|elif|else if|elsif|when)\b[ \t(]*([^\n]*?)[ \t]*[:{]?[ \t]*\n?[ \t]*\breturn\b[ \t]*([^\n;}]+)`)
	// pairLiteral: a quoted text or a number of its own; pairEquals: what is held equal to something.
	pairLiteral = lazydfa.MustCompile("\"[^\"\\n]*\"|'[^'\\n]*'|`[^`\\n]*`|(?:^|[\\s(\\[,=])-?\\d[\\d._]*")
	pairEquals  = lazydfa.MustCompile(`={2,3}\s*([(\[][^\n]*|["'` + "`" + `]|-?\d)`)
	// pairCode: a name that is no constant and no constructor means that something is computed.
	pairCode   = lazydfa.MustCompile(`[A-Za-z_][\w.]*`)
	knownWorld = lazydfa.MustCompile(`(?i)version|platform|sys\.|python|\bos\b|status|shape|\bndim\b|dtype|len\(|major|minor`)
)

// fixedPair gives the first branch that holds two or more literals with digits equal to something and
// gives a literal back, or a constructor of literals only: `if (str(a), str(b)) == ("1-5", "2-5"):
// return Span(1, 5)`. Versions, shapes and statuses are told apart so by honest code.
func fixedPair(code string) string {
	for _, m := range pairBranch.FindAllStringSubmatch(code, -1) {
		if knownWorld.MatchString(m[1]) || !fixedResult(m[2]) {
			continue
		}
		digits, odd := 0, false
		for _, eq := range pairEquals.FindAllStringIndex(withoutTail(m[1]), -1) {
			for _, lit := range pairLiteral.FindAllString(equalled(m[1], eq[0]), -1) {
				lit = strings.Trim(lit, " \t([,=")
				if strings.ContainsAny(lit, "0123456789") {
					digits++
					odd = odd || !isPlain(lit)
				}
			}
		}
		if digits >= 2 && odd {
			return strings.TrimSpace(firstLine(m[0]))
		}
	}
	return ""
}

// withoutTail drops what stands behind an `or`, which a fixed input has no need of.
func withoutTail(cond string) string {
	before, _, _ := strings.Cut(cond, " or ")
	before, _, _ = strings.Cut(before, "||")
	return before
}

// equalled gives the right side of the comparison at offset at, to the next one's left side.
func equalled(cond string, at int) string {
	right := strings.TrimLeft(withoutTail(cond)[at:], "=")
	for _, sep := range []string{" and ", "&&", "=="} {
		right, _, _ = strings.Cut(right, sep)
	}
	return right
}

// What an expression of literals only may hold: texts, truth values, and names that stand for constants or make
// values of literals.
var (
	quotedText   = lazydfa.MustCompile(`"[^"\n]*"|'[^'\n]*'`)
	truthValue   = lazydfa.MustCompile(`(?i)\b(true|false)\b`)
	constantName = lazydfa.MustCompile(`^(True|False|None|true|false|null|nil|new|list|tuple|dict|set|frozenset|str|int|float|bytes|bool|e\d*|f|u|b|r|\w*Err(or)?[A-Z]?\w*|(List|Map|Set|Stream|Optional|Duration|LocalDate|LocalTime)\.of|Arrays\.asList|vec|errors\.New)$`)
)

// fixedResult reports whether an expression holds no more than literals, and calls of names in
// capitals on them.
func fixedResult(expr string) bool {
	bare := quotedText.ReplaceAllString(expr, `0`)
	fixed := strings.ContainsAny(bare, "0123456789[{(") || truthValue.MatchString(bare)
	for _, at := range pairCode.FindAllStringIndex(bare, -1) {
		name, rest := bare[at[0]:at[1]], strings.TrimLeft(bare[at[1]:], " ")
		last := name[strings.LastIndexByte(name, '.')+1:]
		calls := strings.HasPrefix(rest, "(") && last != "" && last[0] >= 'A' && last[0] <= 'Z'
		named := strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==")
		constant := constantName.MatchString(name)
		if !calls && !constant && !named {
			return false
		}
	}
	return fixed
}
