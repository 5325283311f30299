package rules

import (
	"slices"
	"unsafe"
)

// sameTexts keeps one copy of each long text of an event: a here-document is a command's stdin, a file's content and its
// added lines, and a script's. What is remembered of a text then goes by where it is. To read it to its end in order to
// find what is remembered would cost a seventh of what the reading itself does, and a text is asked about a hundred times.
type sameTexts map[string]string

// memoText is the length in bytes from which that is worth while.
const memoText = 64

// take gives texts of which the long ones are those that were taken before. It changes no text that it is given.
func (s sameTexts) take(texts []string) []string {
	copied := false
	for i, t := range texts {
		if len(t) < memoText {
			continue
		}
		first, known := s[t]
		if !known {
			s[t] = t
			continue
		}
		if unsafe.StringData(first) == unsafe.StringData(t) { // they are equal, so as long
			continue
		}
		if !copied {
			texts, copied = slices.Clone(texts), true
		}
		texts[i] = first
	}
	return texts
}
