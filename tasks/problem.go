package tasks

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with one task source, in a form that a person can act on.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // from 1; 0 where the whole file is meant
	Column  int    `json:"column,omitempty"`
	Row     int    `json:"row,omitempty"`   // of a task set, from 1; 0 where there are no rows
	Task    string `json:"task,omitempty"`  // id, where it is known
	Field   string `json:"field,omitempty"` // dotted path
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// String gives file:line:col: row: task: field: message (remedy), as far as they are known.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		if p.Column > 0 {
			fmt.Fprintf(&b, ":%d", p.Column)
		}
		b.WriteString(": ")
	}
	if p.Row > 0 {
		fmt.Fprintf(&b, "row %d: ", p.Row)
		if p.Task != "" {
			b.WriteString(p.Task + ": ")
		}
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	if p.Remedy != "" {
		b.WriteString(" (" + p.Remedy + ")")
	}
	return b.String()
}

// Error makes a Problem usable as an error.
func (p Problem) Error() string { return p.String() }

// ProblemsError is what a single task that does not hold gives: all its problems.
type ProblemsError struct{ Problems []Problem }

func (e *ProblemsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "; ")
}
