package normalize

import (
	"strings"
)

// A token of a script in any of the languages that are read. The lexer is loose on purpose: it has
// to find string literals and the names around them, not to accept programs.
type token struct {
	kind       tokenKind
	text       string // a string's value, a name, a number, one punctuation byte
	interp     bool   // the string interpolates: f"", `${}`, "#{}"
	start, end int
}

type tokenKind byte

const (
	tokString tokenKind = iota
	tokName
	tokNumber
	tokPunct
	tokShell // a backquoted command
)

// maxTokens bounds what of a script is read: about 64 KiB of dense code.
const maxTokens = 20000

// lex splits a script into tokens, comments left out.
func lex(src, lang string) []token {
	l := lexer{src: src, lang: lang, out: make([]token, 0, min(len(src)/5+8, maxTokens))}
	l.hash = lang != "node" && lang != "go" && lang != "rust" && lang != "c" && lang != "java" && lang != "groovy"
	l.slashes = !l.hash || lang == "php"
	for l.i < len(src) && len(l.out) < maxTokens {
		l.next()
	}
	return l.out
}

type lexer struct {
	src, lang     string
	hash, slashes bool
	i             int
	out           []token
}

func (l *lexer) add(kind tokenKind, text string, start int) {
	l.out = append(l.out, token{kind: kind, text: text, start: start, end: l.i})
}

func (l *lexer) next() {
	c := l.src[l.i]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		l.i++
	case c == '#' && l.hash && !strings.HasPrefix(l.src[l.i:], "#{"):
		l.line()
	case c == '/' && l.slashes && strings.HasPrefix(l.src[l.i:], "//"):
		l.line()
	case c == '/' && l.slashes && strings.HasPrefix(l.src[l.i:], "/*"):
		if j := strings.Index(l.src[l.i+2:], "*/"); j >= 0 {
			l.i += j + 4
		} else {
			l.i = len(l.src)
		}
	case c == '\'' || c == '"' || c == '`':
		l.str("", l.i)
	case c >= '0' && c <= '9':
		start := l.i
		for l.i < len(l.src) && (isWordByte(l.src[l.i]) || l.src[l.i] == '.' && l.i+1 < len(l.src) && l.src[l.i+1] >= '0' && l.src[l.i+1] <= '9') {
			l.i++
		}
		l.add(tokNumber, l.src[start:l.i], start)
	case isWordByte(c) || c == '$' || c >= 0x80:
		start := l.i
		for l.i++; l.i < len(l.src) && (isWordByte(l.src[l.i]) || l.src[l.i] >= 0x80); {
			l.i++
		}
		word := l.src[start:l.i]
		if l.i < len(l.src) && (l.src[l.i] == '\'' || l.src[l.i] == '"') && len(word) <= 2 && strings.Trim(strings.ToLower(word), "rbfu") == "" {
			l.str(strings.ToLower(word), start)
			return
		}
		if l.lang == "perl" && (word == "q" || word == "qq" || word == "qw") && l.quoteLike(start) {
			return
		}
		l.add(tokName, strings.TrimPrefix(word, "$"), start)
	default:
		l.i++
		l.add(tokPunct, l.src[l.i-1:l.i], l.i-1)
	}
}

// quoteLike reads perl's q(text); false where what follows opens none.
func (l *lexer) quoteLike(start int) bool {
	if l.i >= len(l.src) {
		return false
	}
	open := strings.IndexByte("({[</!|", l.src[l.i])
	if open < 0 {
		return false
	}
	end := closing(l.src, l.i+1, ")}]>/!|"[open])
	if end < 0 {
		return false
	}
	body := l.src[l.i+1 : end]
	l.i = end + 1
	l.add(tokString, body, start)
	return true
}

func (l *lexer) line() {
	for l.i < len(l.src) && l.src[l.i] != '\n' {
		l.i++
	}
}

// str reads a string literal with its prefix.
func (l *lexer) str(prefix string, start int) {
	q := l.src[l.i : l.i+1]
	if l.lang == "python" && strings.HasPrefix(l.src[l.i:], strings.Repeat(q, 3)) {
		q = strings.Repeat(q, 3)
	}
	multi := len(q) == 3 || q == "`" || l.lang == "perl" || l.lang == "ruby" || l.lang == "php" || l.lang == "rust"
	raw := strings.Contains(prefix, "r") || l.lang == "go" && q == "`" || q == "'" && (l.lang == "perl" || l.lang == "ruby" || l.lang == "php")
	if l.lang == "rust" && q == "'" { // a lifetime or a character
		l.i++
		l.add(tokPunct, "'", start)
		return
	}
	j := l.i + len(q)
	for j < len(l.src) {
		if l.src[j] == '\\' {
			j += 2
			continue
		}
		if strings.HasPrefix(l.src[j:], q) {
			break
		}
		if l.src[j] == '\n' && !multi {
			break
		}
		j++
	}
	j = min(j, len(l.src))
	body := l.src[l.i+len(q) : max(j, l.i+len(q))]
	l.i = min(j+len(q), len(l.src))
	if !raw {
		body = ansiC(strings.ReplaceAll(body, "\\\n", ""))
	}
	kind := tokString
	if q == "`" && (l.lang == "perl" || l.lang == "ruby" || l.lang == "php" || l.lang == "julia") {
		kind = tokShell
	}
	l.add(kind, body, start)
	last := &l.out[len(l.out)-1]
	last.interp = strings.Contains(prefix, "f") || q == "`" && l.lang == "node" || q == "\"" && (l.lang == "perl" || l.lang == "ruby" || l.lang == "php")
}
