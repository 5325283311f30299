package rules

import (
	"fmt"
	"sort"
)

// Problem is one finding in a pack file: what is wrong, where, and what to do about it.
type Problem struct {
	File     string `json:"file"`
	Line     int    `json:"line"`   // from 1; 0 where the file as a whole is meant
	Column   int    `json:"column"` // from 1
	Code     string `json:"code"`   // see Codes
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Excerpt  string `json:"excerpt"` // the line of the file, at most 160 bytes
	Remedy   string `json:"remedy,omitempty"`
}

// Severities of a problem: a pack with an error is not used.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// String gives "file:line:col: severity: message [code]".
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
	s = fmt.Sprintf("%s: %s: %s [%s]", s, p.Severity, p.Message, p.Code)
	if p.Remedy != "" {
		s += "\n    remedy: " + p.Remedy
	}
	return s
}

// Error makes a Problem an error.
func (p Problem) Error() string { return p.String() }

// Errors gives the problems that keep a pack from being used.
func Errors(ps []Problem) []Problem {
	var out []Problem
	for _, p := range ps {
		if p.Severity == SeverityError {
			out = append(out, p)
		}
	}
	return out
}

// sortProblems orders by file, line, column and code, so that output is stable.
func sortProblems(ps []Problem) {
	sort.SliceStable(ps, func(i, j int) bool {
		a, b := ps[i], ps[j]
		switch {
		case a.File != b.File:
			return a.File < b.File
		case a.Line != b.Line:
			return a.Line < b.Line
		case a.Column != b.Column:
			return a.Column < b.Column
		}
		return a.Code < b.Code
	})
}

// Pos is a place in a pack file.
type Pos struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String gives "file:line:col".
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// sources keeps the text of the files that were read, for excerpts.
type sources map[string][]string

// excerpt gives the line at pos, bounded.
func (s sources) excerpt(pos Pos) string {
	lines := s[pos.File]
	if pos.Line < 1 || pos.Line > len(lines) {
		return ""
	}
	return clip(lines[pos.Line-1], 160)
}

// problem makes a Problem of a known code.
func (s sources) problem(pos Pos, code, format string, args ...any) Problem {
	c := codes[code]
	return Problem{File: pos.File, Line: pos.Line, Column: pos.Column, Code: code, Severity: c.severity,
		Message: fmt.Sprintf(format, args...), Excerpt: s.excerpt(pos), Remedy: c.remedy}
}
