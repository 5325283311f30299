package rules

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// Literals for the prefilter.
//
// Why: a regular expression costs far more a byte than a search for plain text, and most expressions
// of a pack have nothing to do with a given text. One pass of an automaton over the text says which
// literals it holds; an expression whose literals are not there cannot match.
//
// How: for each expression a need is derived: a literal, all of some needs (of a concatenation), or
// one of some (of an alternation); a repetition that must happen needs its body. Where an expression
// spells out a few texts, as note(?:|s|book) does, they are multiplied out, because the parser takes
// common prefixes apart and the parts alone filter nothing. Everything else needs nothing, and is
// always tried.
//
// Guarantee: the prefilter never drops a match. Literals are compared in ASCII lower case, which
// only lets more through. Under (?i) k and s also match U+212A and U+017F, which no ASCII lower case
// gives: in a text with either, literals that were written under (?i) with a k or an s count as there.
// When in doubt, no need.

// literal is a text in ASCII lower case, and as written; fold says that it stood under (?i).
type literal struct {
	text, raw string
	fold      bool
}

// need is what every matching text holds. nil: nothing is known.
type need struct {
	literal      // where subs is nil
	id      int  // of the literal in the field's automaton
	all     bool // every one of subs; else one of them
	subs    []*need

	prog *program // of a whole formula, once its literals have ids
}

// Bounds of the prefilter: shorter literals filter nothing, longer ones only cost memory.
const (
	minLiteral = 2
	maxLiteral = 16
	maxSpelled = 48  // texts that an expression is multiplied out to
	maxNeeds   = 160 // literals of one value; more means an expression that is better tried
)

// needOf gives what a text that meets the comparison holds.
func needOf(op, value string) *need {
	var n *need
	switch op {
	case "contains", "startswith", "endswith":
		n = oneOf([]literal{{value, value, false}})
	case "glob":
		n = globNeed(value)
	case "re":
		re, err := syntax.Parse(value, syntax.Perl)
		if err != nil {
			return nil
		}
		n = needed(re.Simplify())
	}
	if n != nil && n.size() > maxNeeds {
		return nil
	}
	return n
}

// globNeed needs the longest run of plain bytes of a glob; nothing where classes make it hard to say.
func globNeed(glob string) *need {
	if strings.ContainsAny(glob, `[\`) {
		return nil
	}
	var best string
	for _, run := range strings.FieldsFunc(strings.ReplaceAll(glob, "**/", "*"), func(r rune) bool { return r == '*' || r == '?' }) {
		if len(run) > len(best) {
			best = run
		}
	}
	return oneOf([]literal{{best, best, false}})
}

// lowerASCII lowers A to Z and leaves every other byte.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = asciiLower(c)
	}
	return string(b)
}

func asciiLower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// oneOf needs one of some texts; nil where one is too short to tell anything.
func oneOf(set []literal) *need {
	var subs []*need
	seen := map[string]int{}
	for _, l := range set {
		l.raw = l.raw[:min(len(l.raw), maxLiteral)]
		l.text = lowerASCII(l.raw)
		if len(l.text) < minLiteral {
			return nil
		}
		if i, ok := seen[l.text]; ok {
			subs[i].fold = subs[i].fold || l.fold || subs[i].raw != l.raw
			continue
		}
		seen[l.text] = len(subs)
		subs = append(subs, &need{literal: l})
	}
	return joined(false, subs)
}

// joined is all or one of needs.
func joined(all bool, subs []*need) *need {
	switch len(subs) {
	case 0:
		return nil
	case 1:
		return subs[0]
	}
	return &need{all: all, subs: subs}
}

// needed gives what every match of re holds.
func needed(re *syntax.Regexp) *need {
	if set, ok := spelled(re); ok {
		return oneOf(set)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return oneOf(literalNode(re))
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min >= 1 {
			return needed(re.Sub[0])
		}
	case syntax.OpConcat:
		return ofConcat(re.Sub)
	case syntax.OpAlternate:
		var subs []*need
		for _, sub := range re.Sub {
			n := needed(sub)
			if n == nil {
				return nil
			}
			subs = append(subs, n)
		}
		return joined(false, subs)
	}
	return nil
}

// ofConcat needs every member; neighbours that are spelled out are multiplied first.
func ofConcat(subs []*syntax.Regexp) *need {
	var out []*need
	run := []literal{{}}
	flush := func() {
		if n := oneOf(run); n != nil {
			out = append(out, n)
		}
		run = []literal{{}}
	}
	for _, sub := range subs {
		if edge(sub) {
			continue
		}
		set, ok := spelled(sub)
		if !ok {
			flush()
			if n := needed(sub); n != nil {
				out = append(out, n)
			}
			continue
		}
		if len(run)*len(set) > maxSpelled || longest(run) >= 2*maxLiteral {
			flush()
		}
		run = product(run, set)
	}
	flush()
	return joined(true, out)
}

// edge tells what matches no text of its own and so stands between neighbours without parting them.
func edge(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpEmptyMatch:
		return true
	}
	return false
}

// spelled gives all texts that re matches, where they are few and plain.
func spelled(re *syntax.Regexp) ([]literal, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		set := literalNode(re)
		return set, len(set) == 1 && len(set[0].raw) == len(string(re.Rune))
	case syntax.OpCapture:
		return spelled(re.Sub[0])
	case syntax.OpQuest:
		set, ok := spelled(re.Sub[0])
		return append([]literal{{}}, set...), ok && len(set) < maxSpelled
	case syntax.OpCharClass:
		return classTexts(re)
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range re.Sub {
			set, ok := spelled(sub)
			if !ok || len(all)+len(set) > maxSpelled {
				return nil, false
			}
			all = append(all, set...)
		}
		return all, true
	case syntax.OpConcat:
		all := []literal{{}}
		for _, sub := range re.Sub {
			set, ok := spelled(sub)
			if !ok || len(all)*len(set) > maxSpelled {
				return nil, false
			}
			all = product(all, set)
		}
		return all, true
	}
	return []literal{{}}, edge(re)
}

// classTexts spells a class of at most four runes.
func classTexts(re *syntax.Regexp) ([]literal, bool) {
	var out []literal
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(out) == 4 || r == unicode.ReplacementChar || r >= 0xD800 && r < 0xE000 {
				return nil, false
			}
			out = append(out, literal{raw: string(r)})
		}
	}
	return out, len(out) > 0
}

// product joins every text of a with every one of b.
func product(a, b []literal) []literal {
	out := make([]literal, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, literal{raw: x.raw + y.raw, fold: x.fold || y.fold})
		}
	}
	return out
}

func longest(set []literal) int {
	n := 0
	for _, l := range set {
		n = max(n, len(l.raw))
	}
	return n
}

// literalNode gives what every match of a literal holds one of. Under (?i) ASCII is compared in lower case
// anyhow (k and s are the caller's affair), and other runes are spelled in each of their cases, until the
// spellings are too many; a rune that folds into ASCII ends it.
func literalNode(re *syntax.Regexp) []literal {
	if strings.ContainsRune(string(re.Rune), unicode.ReplacementChar) {
		return nil // matches any invalid byte
	}
	if re.Flags&syntax.FoldCase == 0 {
		return []literal{{raw: string(re.Rune)}}
	}
	plain := 0
	for plain < len(re.Rune) && plain < maxLiteral && re.Rune[plain] <= unicode.MaxASCII {
		plain++
	}
	set := []literal{{raw: string(re.Rune[:plain]), fold: true}}
	for _, r := range re.Rune[plain:] {
		cases := casesOf(r)
		if cases == nil || len(set)*len(cases) > maxCased || len(set[0].raw) >= maxLiteral {
			break
		}
		set = product(set, cases)
	}
	if set[0].raw == "" {
		return nil
	}
	return set
}

// maxCased bounds the spellings of one literal: two or three letters of an alphabet with cases.
const maxCased = 8

// casesOf spells a rune in each of its cases; one of ASCII is spelled once. nil where a case of a rune that is
// no ASCII is.
func casesOf(r rune) []literal {
	if r <= unicode.MaxASCII {
		return []literal{{raw: string(r), fold: true}}
	}
	out := []literal{{raw: string(r), fold: true}}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f <= unicode.MaxASCII {
			return nil
		}
		out = append(out, literal{raw: string(f), fold: true})
	}
	return out
}
