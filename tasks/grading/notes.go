package grading

import "fmt"

// maxNotes bounds the notes of a grade: an agent can give cause for any number.
const maxNotes = 40

// noteList gathers notes, the first maxNotes of them in words and the rest as a count.
type noteList struct {
	kept []string
	more int
}

func (n *noteList) add(format string, args ...any) {
	if len(n.kept) >= maxNotes {
		n.more++
		return
	}
	n.kept = append(n.kept, clip(fmt.Sprintf(format, args...), 500))
}

func (n *noteList) lines() []string {
	if n.more == 0 {
		return n.kept
	}
	return append(n.kept[:len(n.kept):len(n.kept)], fmt.Sprintf("and %d more", n.more))
}
