package main

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// progress keeps one line on a terminal up to date, and prints nothing anywhere else.
type progress struct {
	out  *os.File
	live bool
}

func newProgress(out *os.File) *progress {
	return &progress{out: out, live: term.IsTerminal(int(out.Fd()))}
}

// say replaces the line.
func (p *progress) say(format string, args ...any) {
	if p.live {
		fmt.Fprintf(p.out, "\r\x1b[K%s", fmt.Sprintf(format, args...))
	}
}

// done clears the line.
func (p *progress) done() {
	if p.live {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
