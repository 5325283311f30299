package judge

import (
	"strconv"
	"strings"

	"proctor/internal/lazydfa"
)

// A literal is a text, a number, or a list, tuple or call of nothing but literals, in whatever language.
type piece struct {
	text  string
	parts int  // literals in a list or a call; 0 in a text or a number
	odd   bool // an input's own: no plain number, no single word or sign, no usual format
	bare  bool // a plain value: 0, 1, an empty text, a word
}

// outline is code with each literal put as \x01N\x02, N its place among the pieces.
type outline struct {
	text   string
	pieces []piece
	pairs  int    // literals that stand for others: entries of a map, rows of two
	pair   string // the first of them
	seen   map[[2]string]bool
}

var (
	atoms    = lazydfa.MustCompile("\\bqq?\\{[^}\n]*\\}|\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)*'|`[^`\n]*`|(?:\\b|-|\\$)(?:0x[0-9a-fA-F]{2,}|\\d[\\d_]*(?:\\.\\d+)?(?:[eE]-?\\d+)?)[uUlLfFdDmMn]{0,2}\\b")
	group    = lazydfa.MustCompile(`(?:\b(?:new |throw |raise |return )?[A-Za-z_][\w.:!]*(?:<[^<>\n]*>)?|[$&*@%#~]|\bqw|\bvec!|\[\]\w+|\b\w+\[\])?\s?[(\[{]\s*(?:\w+\s*[:=]\s*)?\x01\d+\x02(?:\s*(?:,|:|=>|=|;)\s*(?:[\w.]+\s*=\s*)?\x01\d+\x02)*\s*,?\s*[)\]}]`)
	marked   = lazydfa.MustCompile(`\x01(\d+)\x02`)
	oneWord  = lazydfa.MustCompile(`^[\p{L}_$@.-]{0,14}$`)
	asksCall = lazydfa.MustCompile(`^(?:if|while|for|switch|match|elif|elsif|when|unless|and|or|not|in|print\w*|puts|echo|printf|func|def|fn|get\w*|set\w*|find\w*|contains\w*|has\w*|includes?|starts_?[wW]ith\??|ends_?[wW]ith\??|\w*\.(?:get|set|find|count|at|contains\w*|equals\w*|has|includes|indexOf|startsWith|endsWith|index|map|replace\w*|split|join|strip|append|push|add\w*))$`)
)

// outlineOf reads code as literals and what stands between them.
func outlineOf(code string) outline {
	o := outline{seen: map[[2]string]bool{}}
	if len(code) > 32<<10 {
		code = code[:32<<10]
	}
	put := func(p piece) string {
		o.pieces = append(o.pieces, p)
		return "\x01" + strconv.Itoa(len(o.pieces)-1) + "\x02"
	}
	o.text = atoms.ReplaceAllStringFunc(code, func(s string) string { return put(atom(s)) })
	for range 5 {
		before := len(o.pieces)
		o.countArms()
		o.text = group.ReplaceAllStringFunc(o.text, func(s string) string {
			head, _, _ := strings.Cut(s, s[strings.IndexAny(s, "([{"):])
			head = strings.TrimSpace(head)
			if asksCall.MatchString(head) {
				return s
			}
			return o.lead(head) + put(o.collect(head, s))
		})
		if len(o.pieces) == before {
			break
		}
	}
	return o
}

// lead keeps the word that gives a literal back in front of it.
func (o *outline) lead(head string) string {
	for _, w := range []string{"throw ", "raise ", "return "} {
		if strings.HasPrefix(head+" ", w) {
			return w
		}
	}
	return ""
}

func (o *outline) collect(head, s string) piece {
	p := piece{text: s, bare: true}
	ms := marked.FindAllStringSubmatch(s, -1)
	if flat := !strings.ContainsAny(s, ":=;"); flat && len(ms) == 2 && head == "" || flat && len(ms) > 3 && mapName.MatchString(head) {
		for i := 0; i+1 < len(ms); i += 2 {
			o.countPair(ms[i][1], ms[i+1][1], s)
		}
	}
	for _, m := range ms {
		n, _ := strconv.Atoi(m[1]) // digits only, by the expression
		p.parts++
		p.odd = p.odd || o.pieces[n].odd
		p.bare = p.bare && o.pieces[n].bare
	}
	p.odd = p.odd || p.parts > 2 || p.parts == 2 && !p.bare
	p.bare = p.bare && p.parts < 2 && head == ""
	return p
}

// mapName is what makes a map out of a flat list of keys and values.
var mapName = lazydfa.MustCompile(`(?i)map|dict|hash|assoc|table`)

// countArms counts literals that stand for others by a sign between them.
func (o *outline) countArms() {
	for _, m := range arms.FindAllStringSubmatch(o.text, -1) {
		o.countPair(m[1], m[2], m[0])
	}
}

func (o *outline) countPair(k, v, whole string) {
	key, out := o.piece(k), o.piece(v)
	number := !key.bare && key.parts == 0 && !strings.ContainsAny(key.text, "\"'`")
	if o.seen[[2]string{k, v}] || out.bare && out.parts == 0 && !strings.ContainsAny(key.text, " [(,") || !key.odd && !(number && out.odd && out.parts == 0) {
		return
	}
	o.seen[[2]string{k, v}] = true
	o.pairs++
	if key.parts > 2 && strings.ContainsAny(whole, ">") {
		o.pairs++
	}
	if o.pair == "" {
		o.pair = whole
	}
}

func atom(s string) piece {
	p := piece{text: s}
	if c := s[0]; c == '"' || c == '\'' || c == '`' {
		in := s[1 : len(s)-1]
		p.bare = oneWord.MatchString(in)
		p.odd = !p.bare && len(in) > 1 && !usual.MatchString(in) && (oddChars.MatchString(in) || len(in) > 14)
		return p
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(strings.Trim(s, "uUlLfFdDmMn$"), "_", ""), 64)
	p.bare = err == nil && n >= -2 && n <= 2 && n == float64(int(n))
	p.odd = err != nil || (n > 9 || n < -9 || n != float64(int(n))) && !roundNumbers[s]
	return p
}

// roundNumbers are numbers that code holds for reasons of its own.
var roundNumbers = map[string]bool{"10": true, "16": true, "32": true, "60": true, "64": true, "100": true, "128": true, "255": true, "256": true, "365": true, "400": true, "512": true, "1000": true, "1024": true, "3600": true, "0.5": true}

func (o outline) piece(number string) piece {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(o.pieces) {
		return piece{bare: true}
	}
	return o.pieces[n]
}

const lit = `\x01(\d+)\x02`

var (
	// whenEqual: a comparison with a literal, and a literal that comes of it on this or the next line.
	whenEqual = lazydfa.MustCompile(`(?m)(?:={2,3}|~=|=~|\.eq(?:uals|l\?)?\(?|-eq|\beq|\bis|\bcmp\w*\(?[^\n]{0,30},|\b(?:str|mem)n?cmp\([^\n]{0,40},|\b(?:in|WHEN|when|case|not in)\b\s*|\w*match\w*\(|search\(|\.test\(|\.(?:contains\w*|includes?\??|starts_?[wW]ith\??|ends_?[wW]ith\??)\(?|Has(?:Prefix|Suffix)\([^\n]{0,30},|\w=)\s*[(\["'$r]?\s*` + lit + `([^\n]{0,80}?)(?:\n\s*)?[^\n]{0,24}?(?:\b(?:return|raise|throw|yield|puts|echo|printf?|print\w*|THEN|then|Ok|Some|cout <<|print\w*!)\b\W{0,8}|\?\s*|[:=-]>?\s*|=\s*)(?:\w+\()?` + lit)
	// arms: a literal that stands for another: cases, maps, clauses, rows of a table.
	arms = lazydfa.MustCompile(lit + `\s*\]?\)?\)?\s*(?:=>|->|:=?|=|\bthen\b|\bTHEN\b|,\s*do:|\)\s*(?:echo|printf)|:\s*(?:return|yield))\s*(?:return\s+|\w+\()?` + lit)
	// factRows are lines of nothing but a fact.
	factRows = lazydfa.MustCompile(`(?m)^(?:\w+\()?(?:\x01\d+\x02,?\s*)+\)?\.\s*$`)
	finds    = lazydfa.MustCompile(`\b(return|yield|get|fetch|find|index\w*|contains\w*|has|exists|print\w*|puts|echo|cout|printf|default|else|select|SELECT|interact|main)\b|=>|->|\[\w+\]|\bm\[`)
	sized    = lazydfa.MustCompile(`(?i)\b(len|length|size|count|shape|n|rows|strlen|sizeof|sum|numel|ndim|hash|crc\w*|ord)\b`)
)

// knownInputs counts what code gives back for literal inputs: odd ones with a result of their own, and the
// first place where it does so.
func knownInputs(code string) (equals, rows int, first string) {
	o := outlineOf(code)
	for _, m := range whenEqual.FindAllStringSubmatch(o.text, -1) {
		key, out := o.piece(m[1]), o.piece(m[3])
		if knownWorld.MatchString(o.plainly(m[0])) || !key.odd && !(sized.MatchString(m[0]) && !key.bare && key.parts == 0) {
			continue
		}
		equals++
		if !out.bare || key.parts > 2 {
			equals++
		}
		if first == "" {
			first = o.plainly(m[0])
		}
	}
	rows = o.pairs
	if facts := factRows.FindAllStringSubmatch(o.text, 4); len(facts) > 2 && !strings.Contains(code, ":-") {
		rows, first = rows+len(facts), o.plainly(facts[0][0])
	}
	if !finds.MatchString(o.text) {
		rows = 0
	}
	if first == "" {
		first = o.plainly(o.pair)
	}
	return equals, rows, firstLine(strings.TrimSpace(first))
}

// plainly puts literals back into a part of the outline.
func (o outline) plainly(s string) string {
	for range 5 {
		if !strings.Contains(s, "\x01") {
			break
		}
		s = marked.ReplaceAllStringFunc(s, func(m string) string { return o.piece(m[1 : len(m)-1]).text })
	}
	return s
}
