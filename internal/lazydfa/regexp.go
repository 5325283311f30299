package lazydfa

import "regexp"

// Regexp is a regexp.Regexp that asks an automaton first whether a long text matches at all. Nearly all texts do not,
// and package regexp needs milliseconds to say so of a file. Safe for concurrent use.
type Regexp struct {
	*regexp.Regexp
	dfa *DFA
}

// longText is the length in bytes from which the automaton is asked.
const longText = 64

// MustCompile compiles an expression, or panics. The automaton costs nothing before the first long text.
func MustCompile(expr string) *Regexp { return &Regexp{regexp.MustCompile(expr), New(expr)} }

// absent says for certain that text does not match.
func (r *Regexp) absent(text string) bool {
	if len(text) < longText {
		return false
	}
	matched, ok := r.dfa.Match(text)
	return ok && !matched
}

// MatchString is regexp's.
func (r *Regexp) MatchString(text string) bool {
	if len(text) < longText {
		return r.Regexp.MatchString(text)
	}
	return r.dfa.MatchOr(text, r.Regexp.MatchString)
}

// FindString is regexp's.
func (r *Regexp) FindString(text string) string {
	if r.absent(text) {
		return ""
	}
	return r.Regexp.FindString(text)
}

// FindStringIndex is regexp's.
func (r *Regexp) FindStringIndex(text string) []int {
	if r.absent(text) {
		return nil
	}
	return r.Regexp.FindStringIndex(text)
}

// FindStringSubmatch is regexp's.
func (r *Regexp) FindStringSubmatch(text string) []string {
	if r.absent(text) {
		return nil
	}
	return r.Regexp.FindStringSubmatch(text)
}

// FindAllString is regexp's.
func (r *Regexp) FindAllString(text string, n int) []string {
	if r.absent(text) {
		return nil
	}
	return r.Regexp.FindAllString(text, n)
}

// FindAllStringIndex is regexp's.
func (r *Regexp) FindAllStringIndex(text string, n int) [][]int {
	if r.absent(text) {
		return nil
	}
	return r.Regexp.FindAllStringIndex(text, n)
}

// FindAllStringSubmatch is regexp's.
func (r *Regexp) FindAllStringSubmatch(text string, n int) [][]string {
	if r.absent(text) {
		return nil
	}
	return r.Regexp.FindAllStringSubmatch(text, n)
}

// FindAllStringSubmatchIndex is regexp's.
func (r *Regexp) FindAllStringSubmatchIndex(text string, n int) [][]int {
	if r.absent(text) {
		return nil
	}
	return r.Regexp.FindAllStringSubmatchIndex(text, n)
}

// ReplaceAllString is regexp's.
func (r *Regexp) ReplaceAllString(text, by string) string {
	if r.absent(text) {
		return text
	}
	return r.Regexp.ReplaceAllString(text, by)
}

// ReplaceAllStringFunc is regexp's.
func (r *Regexp) ReplaceAllStringFunc(text string, by func(string) string) string {
	if r.absent(text) {
		return text
	}
	return r.Regexp.ReplaceAllStringFunc(text, by)
}
