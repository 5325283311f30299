// Package lazydfatest makes expressions and texts by which what searches fast is held against package regexp.
package lazydfatest

import (
	"math/rand/v2"
	"strings"
)

// alphabet makes texts in which short expressions meet often; it holds the folds of k and s, and a
// byte that is no UTF-8.
var alphabet = []string{"a", "b", "K", "k", "s", "S", "ſ", "K", "é", "É", "\xff", " ", "git", "log", "--all", "/", "x1", "\n"}

// RandomText makes a text of at most n pieces.
func RandomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

// RandomExpr makes a regular expression of some depth.
func RandomExpr(r *rand.Rand, depth int) string {
	if depth == 0 {
		words := []string{"git", "log", "ks", "aK", "éa", "Ék", `\b`, "[ab]", "é", ".", `\s`, "x1", "--all", "[^a]", "k"}
		return words[r.IntN(len(words))]
	}
	a, b := RandomExpr(r, depth-1), RandomExpr(r, depth-1)
	switch r.IntN(8) {
	case 0:
		return "(?:" + a + "|" + b + ")"
	case 1:
		return "(?:" + a + ")*" + b
	case 2:
		return "(?:" + a + ")+"
	case 3:
		return "(?i:" + a + b + ")"
	case 4:
		return "(?:" + a + "){2,3}" + b
	case 5:
		return "(?:" + a + ")?" + b
	}
	return a + b
}
