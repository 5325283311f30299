package lazydfa

import (
	"regexp"
	"sync"
)

// Regexp is an expression with regexp.Regexp's methods that asks an automaton first whether a long text matches at all.
// Nearly all texts do not, and package regexp needs milliseconds to say so of a file. Safe for concurrent use.
type Regexp struct {
	re  func() *regexp.Regexp // compiled when first asked
	dfa *DFA
}

// longText is the length in bytes from which the automaton is asked.
const longText = 64

// MustCompile gives an expression that is compiled when it is first asked, and panics then where it does not compile: a
// program with a thousand of them, most of which it never asks, would start a tenth of a second later.
func MustCompile(expr string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) }), New(expr)}
}

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
		return r.re().MatchString(text)
	}
	return r.dfa.MatchOr(text, func(t string) bool { return r.re().MatchString(t) })
}

// FindString is regexp's.
func (r *Regexp) FindString(text string) string {
	if r.absent(text) {
		return ""
	}
	return r.re().FindString(text[r.dfa.Begin(text):])
}

// FindStringIndex is regexp's.
func (r *Regexp) FindStringIndex(text string) []int {
	if r.absent(text) {
		return nil
	}
	begin := r.dfa.Begin(text)
	at := r.re().FindStringIndex(text[begin:])
	for i := range at {
		at[i] += begin
	}
	return at
}

// FindStringSubmatch is regexp's.
func (r *Regexp) FindStringSubmatch(text string) []string {
	if r.absent(text) {
		return nil
	}
	return r.re().FindStringSubmatch(text[r.dfa.Begin(text):])
}

// FindAllString is regexp's.
func (r *Regexp) FindAllString(text string, n int) []string {
	if r.absent(text) {
		return nil
	}
	return r.re().FindAllString(text, n)
}

// FindAllStringIndex is regexp's.
func (r *Regexp) FindAllStringIndex(text string, n int) [][]int {
	if r.absent(text) {
		return nil
	}
	return r.re().FindAllStringIndex(text, n)
}

// FindAllStringSubmatch is regexp's.
func (r *Regexp) FindAllStringSubmatch(text string, n int) [][]string {
	if r.absent(text) {
		return nil
	}
	return r.re().FindAllStringSubmatch(text, n)
}

// FindAllStringSubmatchIndex is regexp's.
func (r *Regexp) FindAllStringSubmatchIndex(text string, n int) [][]int {
	if r.absent(text) {
		return nil
	}
	return r.re().FindAllStringSubmatchIndex(text, n)
}

// ReplaceAllString is regexp's.
func (r *Regexp) ReplaceAllString(text, by string) string {
	if r.absent(text) {
		return text
	}
	return r.re().ReplaceAllString(text, by)
}

// ReplaceAllStringFunc is regexp's.
func (r *Regexp) ReplaceAllStringFunc(text string, by func(string) string) string {
	if r.absent(text) {
		return text
	}
	return r.re().ReplaceAllStringFunc(text, by)
}

// Split is regexp's.
func (r *Regexp) Split(text string, n int) []string {
	if n != 0 && r.absent(text) {
		return []string{text}
	}
	return r.re().Split(text, n)
}
