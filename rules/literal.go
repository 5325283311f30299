package rules

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// Literals for the prefilter.
//
// Why: a regular expression costs 20 to 100 ns a byte where it has no literal prefix, and most
// expressions of a pack have nothing to do with a given text. One pass of an automaton over the
// text says which literals it holds; an atom none of whose literals is there cannot match.
//
// How: for each expression a set of literals is derived, of which every match holds at least one:
// of a concatenation the best member's, of an alternation the union, of a repetition that must
// happen its body's. Everything else gives no set, and the atom is always tried.
//
// Guarantee: the prefilter never drops a match. Literals are compared in ASCII lower case, which
// only lets more through. Under (?i) k and s also match U+212A and U+017F, which no ASCII lower case
// gives: where a literal was written under (?i), a text with bytes beyond ASCII skips the prefilter.
// When in doubt, no literal.

// literal is a text in ASCII lower case, and as written; fold says that it stood under (?i).
type literal struct {
	text, raw string
	fold      bool
}

// Bounds of the prefilter: shorter literals filter nothing, longer ones only cost memory.
const (
	minLiteral  = 2
	maxLiteral  = 16
	maxLiterals = 64 // a set; more means an expression that is better tried
)

// literalsOf gives the literal set of an atom, nil where there is none.
func literalsOf(op, value string) []literal {
	switch op {
	case "contains", "startswith", "endswith":
		if len(value) < minLiteral {
			return nil
		}
		return []literal{cut(value, false)}
	case "glob":
		return globLiterals(value)
	case "re":
		re, err := syntax.Parse(value, syntax.Perl)
		if err != nil {
			return nil
		}
		return usable(needed(re.Simplify()))
	}
	return nil
}

// globLiterals gives the longest run of plain bytes of a glob; nil where classes make it hard to say.
func globLiterals(glob string) []literal {
	if strings.ContainsRune(glob, '[') {
		return nil
	}
	var best string
	for _, run := range strings.FieldsFunc(strings.ReplaceAll(glob, "**/", "*"), func(r rune) bool { return r == '*' || r == '?' }) {
		if len(run) > len(best) {
			best = run
		}
	}
	if len(best) < minLiteral {
		return nil
	}
	return []literal{cut(best, false)}
}

// cut makes a literal of at most maxLiteral bytes.
func cut(s string, fold bool) literal {
	s = s[:min(len(s), maxLiteral)]
	return literal{lowerASCII(s), s, fold}
}

// lowerASCII lowers A to Z and leaves every other byte.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// usable drops sets that would filter nothing.
func usable(set []literal) []literal {
	if len(set) == 0 || len(set) > maxLiterals || shortest(set) < minLiteral {
		return nil
	}
	return set
}

// shortest is the length of a set's shortest literal.
func shortest(set []literal) int {
	n := len(set[0].text)
	for _, l := range set {
		n = min(n, len(l.text))
	}
	return n
}

// needed gives literals of which every match of re holds one; nil where none are known.
func needed(re *syntax.Regexp) []literal {
	switch re.Op {
	case syntax.OpLiteral:
		return literalNode(re)
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min >= 1 {
			return needed(re.Sub[0])
		}
	case syntax.OpConcat:
		return bestOf(re.Sub)
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range re.Sub {
			set := needed(sub)
			if len(set) == 0 {
				return nil
			}
			all = append(all, set...)
		}
		return all
	}
	return nil
}

// bestOf picks the member of a concatenation that filters best: the longest shortest literal.
func bestOf(subs []*syntax.Regexp) []literal {
	var best []literal
	for _, sub := range subs {
		set := needed(sub)
		if len(set) == 0 || len(set) > maxLiterals {
			continue
		}
		if best == nil || shortest(set) > shortest(best) {
			best = set
		}
	}
	return best
}

// literalNode gives a literal's text. Under (?i) runes whose case folds leave ASCII lower case
// (beyond k and s, which the caller handles) end it.
func literalNode(re *syntax.Regexp) []literal {
	fold := re.Flags&syntax.FoldCase != 0
	runes := re.Rune
	if fold {
		for i, r := range runes {
			if r > unicode.MaxASCII {
				runes = runes[:i]
				break
			}
		}
	}
	if len(runes) == 0 {
		return nil
	}
	s := string(runes)
	if strings.ContainsRune(s, unicode.ReplacementChar) {
		return nil // matches any invalid byte
	}
	return []literal{cut(s, fold)}
}
