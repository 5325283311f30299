package agent

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// paramLimit bounds every number of a sequence: no screen has more cells in a row or column.
const paramLimit = 1000

// emulator is a terminal of xterm's kind as far as text goes: it knows the sequences that move the cursor, move and
// wipe text, scroll, switch screens and ask the terminal something, and swallows those of colours, titles, mice and
// pictures. Parsing is a library's; what is bounded here is the work and the memory that any byte can cause.
// Not safe for concurrent use.
type emulator struct {
	parser *ansi.Parser
	answer func([]byte)

	main, other *grid // other is the alternate screen
	g           *grid // the one that shows

	wrap, insert, origin, cursorKeys bool
	charsets                         [2]bool // G0, G1: line drawing
	shifted                          int     // which of them is used
	last                             rune    // for repetition
}

// newEmulator makes a terminal. off takes the lines that scroll off the top of the main screen, answer what the
// terminal says to the program.
func newEmulator(rows, cols int, off func(row), answer func([]byte)) *emulator {
	e := &emulator{parser: ansi.NewParser(), answer: answer, main: newGrid(rows, cols, off), other: newGrid(rows, cols, nil), wrap: true}
	e.g = e.main
	e.parser.SetDataSize(256) // of titles and the like, which are dropped
	e.parser.SetHandler(ansi.Handler{Print: e.print, Execute: e.execute, HandleCsi: e.csi, HandleEsc: e.esc})
	return e
}

func (e *emulator) write(b []byte) {
	for _, c := range b {
		e.parser.Advance(c)
	}
}

// drawing are the letters of the line drawing set, from '`' on.
var drawing = []rune("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

func (e *emulator) print(r rune) {
	if e.charsets[e.shifted] && r >= '`' && int(r-'`') < len(drawing) {
		r = drawing[r-'`']
	}
	if r < ' ' || r == 0x7f {
		return
	}
	e.last = r
	e.g.put(r, e.wrap, e.insert)
}

func (e *emulator) execute(c byte) {
	switch c {
	case '\r':
		e.g.goTo(0, e.g.y)
	case '\n', '\v', '\f', 0x84:
		e.g.feed()
	case '\b':
		e.g.move(-1, 0)
	case '\t':
		e.g.tab(1)
	case 0x0e, 0x0f: // shift out, shift in
		e.shifted = int(0x0f - c)
	case 0x85:
		e.g.goTo(0, e.g.y)
		e.g.feed()
	case 0x8d:
		e.g.reverse()
	}
}

func (e *emulator) esc(cmd ansi.Cmd) {
	switch cmd.Intermediate() {
	case 0:
	case '(', ')':
		e.charsets[cmd.Intermediate()-'('] = cmd.Final() == '0'
		return
	default:
		return
	}
	switch cmd.Final() {
	case '7':
		e.g.save()
	case '8':
		e.g.restore()
	case 'D':
		e.g.feed()
	case 'E':
		e.g.goTo(0, e.g.y)
		e.g.feed()
	case 'M':
		e.g.reverse()
	case 'c':
		e.reset()
	}
}

// reset is a terminal as it was, but for its size and what scrolled off.
func (e *emulator) reset() {
	e.main.wipeLines(0, e.main.rows)
	e.show(false)
	e.g.top, e.g.bot = 0, e.g.rows
	e.g.goTo(0, 0)
	e.wrap, e.insert, e.origin, e.cursorKeys = true, false, false, false
	e.charsets, e.shifted, e.last = [2]bool{}, 0, 0
}

// show turns to the alternate screen, which is empty then, or back.
func (e *emulator) show(other bool) {
	switch {
	case other && e.g == e.main:
		x, y := e.main.x, e.main.y
		e.g = e.other
		e.g.wipeLines(0, e.g.rows)
		e.g.top, e.g.bot = 0, e.g.rows
		e.g.goTo(x, y)
	case !other:
		e.g = e.main
	}
}

func (e *emulator) resize(rows, cols int) {
	e.main.resize(rows, cols)
	e.other.resize(rows, cols)
}

// param gives number i of a sequence, in bounds; def where it is missing or 0.
func param(params ansi.Params, i, def int) int {
	n, _, _ := params.Param(i, def)
	if n <= 0 {
		return def
	}
	return min(n, paramLimit)
}

func (e *emulator) csi(cmd ansi.Cmd, params ansi.Params) {
	switch {
	case cmd.Prefix() == '?' && cmd.Intermediate() == 0 && (cmd.Final() == 'h' || cmd.Final() == 'l'):
		for i := range params {
			n, _, _ := params.Param(i, 0)
			e.mode(n, cmd.Final() == 'h')
		}
	case cmd.Prefix() == '>' && cmd.Final() == 'c':
		e.answer([]byte("\x1b[>0;10;0c"))
	case cmd.Prefix() == '?' && cmd.Final() == 'n' && param(params, 0, 0) == 6, cmd.Prefix() == 0 && cmd.Final() == 'n':
		e.status(param(params, 0, 0))
	case cmd.Prefix() == 0 && cmd.Intermediate() == '!' && cmd.Final() == 'p':
		e.wrap, e.insert, e.origin, e.cursorKeys = true, false, false, false
		e.g.top, e.g.bot = 0, e.g.rows
	case cmd.Prefix() == 0 && cmd.Intermediate() == 0:
		if n := param(params, 0, 1); !e.moves(cmd.Final(), n, param(params, 1, 1)) {
			e.edits(cmd.Final(), n, params)
		}
	}
}

// moves carries out a sequence that moves the cursor, with its first two numbers.
func (e *emulator) moves(final byte, n, m int) bool {
	g := e.g
	row := func(n int) int {
		if e.origin {
			return min(g.top+n-1, g.bot-1)
		}
		return n - 1
	}
	switch final {
	case 'A':
		g.move(0, -n)
	case 'B', 'e':
		g.move(0, n)
	case 'C', 'a':
		g.move(n, 0)
	case 'D':
		g.move(-n, 0)
	case 'E':
		g.move(-g.x, n)
	case 'F':
		g.move(-g.x, -n)
	case 'G', '`':
		g.goTo(n-1, g.y)
	case 'H', 'f':
		g.goTo(m-1, row(n))
	case 'd':
		g.goTo(g.x, row(n))
	case 'I':
		g.tab(n)
	case 'Z':
		g.tab(-n)
	case 's':
		g.save()
	case 'u':
		g.restore()
	default:
		return false
	}
	return true
}

// edits carries out a sequence that changes what is on the screen, or how.
func (e *emulator) edits(final byte, n int, params ansi.Params) {
	g := e.g
	switch final {
	case 'J':
		e.wipeScreen(param(params, 0, 0))
	case 'K':
		switch param(params, 0, 0) {
		case 0:
			g.wipe(g.x, g.cols)
		case 1:
			g.wipe(0, g.x+1)
		case 2:
			g.wipe(0, g.cols)
		}
	case 'L', 'M':
		if g.inRegion() {
			if final == 'L' {
				g.down(g.y, n)
			} else {
				g.up(g.y, n)
			}
			g.goTo(0, g.y)
		}
	case 'S':
		g.up(g.top, n)
	case 'T':
		g.down(g.top, n)
	case '@':
		g.shift(n)
	case 'P':
		g.pull(n)
	case 'X':
		g.wipe(g.x, g.x+n)
	case 'b':
		for range min(n, g.cols) {
			if e.last != 0 {
				g.put(e.last, e.wrap, e.insert)
			}
		}
	case 'r':
		if top, bot := n-1, min(param(params, 1, g.rows), g.rows); top < bot-1 {
			g.top, g.bot = top, bot
			e.moves('H', 1, 1)
		}
	case 'h', 'l':
		if n == 4 {
			e.insert = final == 'h'
		}
	case 'c':
		e.answer([]byte("\x1b[?62;22c"))
	}
}

// wipeScreen blanks from the cursor on, up to it, or all. What is wiped as a whole went by, like what scrolls.
func (e *emulator) wipeScreen(how int) {
	g := e.g
	switch how {
	case 0:
		g.wipeLines(g.y+1, g.rows)
		g.wipe(g.x, g.cols)
	case 1:
		g.wipeLines(0, g.y)
		g.wipe(0, g.x+1)
	case 2, 3:
		if g.off != nil {
			for _, line := range g.lines {
				if line.text() != "" {
					g.off(line)
				}
			}
		}
		g.wipeLines(0, g.rows)
	}
}

func (e *emulator) mode(n int, on bool) {
	switch n {
	case 1:
		e.cursorKeys = on
	case 6:
		e.origin = on
		e.moves('H', 1, 1)
	case 7:
		e.wrap = on
	case 47, 1047:
		e.show(on)
	case 1048:
		e.keep(on)
	case 1049:
		if on {
			e.keep(true)
		}
		e.show(on)
		if !on {
			e.keep(false)
		}
	}
}

// keep saves the cursor, or puts it back.
func (e *emulator) keep(on bool) {
	if on {
		e.g.save()
	} else {
		e.g.restore()
	}
}

// status answers what a program asks of the terminal.
func (e *emulator) status(what int) {
	switch what {
	case 5:
		e.answer([]byte("\x1b[0n"))
	case 6:
		e.answer([]byte(fmt.Sprintf("\x1b[%d;%dR", e.g.y+1, e.g.x+1)))
	}
}

// text gives the screen's lines, those that the terminal broke in one again, without the empty ones at its end, at most limit bytes of them.
func (e *emulator) text(limit int) (text string, cut bool) {
	var b strings.Builder
	empty := 0
	for _, row := range e.g.lines {
		line := row.text()
		if line == "" {
			empty++
			continue
		}
		if b.Len()+len(line)+empty > limit {
			return b.String() + "[the rest of the screen left out here]\n", true
		}
		b.WriteString(strings.Repeat("\n", empty) + line + row.end())
		empty = 0
	}
	if text = b.String(); text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, false
}
