package agent

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

const (
	cellLimit = 32     // bytes of one cell: a letter and its marks
	tabEvery  = 8      // columns between tab stops, which are fixed
	rightHalf = "\x00" // stands in the cell right of a wide letter
)

// row is a line of a screen.
type row struct {
	cells []string
	wraps bool // the next line goes on with it: the terminal broke it, not the program
}

func (r *row) clear() {
	clear(r.cells)
	r.wraps = false
}

// grid is the cells of a screen, without colours: what is shown is text. A cell is "" (blank), a letter with its
// marks, or rightHalf. Coordinates are from 0 and never outside. Not safe for concurrent use.
type grid struct {
	rows, cols int
	lines      []row
	x, y       int
	wrapNext   bool // the cursor stands behind the last column: the next letter begins a line
	top, bot   int  // scroll region: [top, bot)
	saved      position
	off        func(line row) // takes what scrolls off the top; nil for nobody
}

// position is what is saved of a cursor.
type position struct {
	x, y     int
	wrapNext bool
}

func newGrid(rows, cols int, off func(row)) *grid {
	g := &grid{off: off}
	g.resize(rows, cols)
	return g
}

// resize keeps the upper left part; where rows go, lines scroll off the top as far as the cursor's line needs it.
func (g *grid) resize(rows, cols int) {
	for len(g.lines) > rows && g.y >= rows {
		if g.off != nil {
			g.off(g.lines[0])
		}
		g.lines = g.lines[1:]
		g.y--
	}
	lines := make([]row, rows)
	for y := range lines {
		lines[y].cells = make([]string, cols)
		if y < len(g.lines) {
			copy(lines[y].cells, g.lines[y].cells)
		}
	}
	*g = grid{rows: rows, cols: cols, lines: lines, x: min(g.x, cols-1), y: min(g.y, rows-1), bot: rows, off: g.off}
}

// ascii lends one-letter strings without allocating.
const ascii = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f" +
	" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f"

// width is of a terminal that does not guess at languages.
var width = &runewidth.Condition{}

// put writes a letter at the cursor; a mark joins the letter before it.
func (g *grid) put(r rune, wrap, insert bool) {
	text, w := "", 1
	if r < utf8.RuneSelf {
		text = ascii[r : r+1]
	} else {
		text, w = string(r), width.RuneWidth(r)
	}
	if w == 0 {
		g.mark(text)
		return
	}
	if g.wrapNext || w == 2 && g.x == g.cols-1 {
		if !wrap || w > g.cols {
			g.x = max(0, g.cols-w)
		} else {
			g.x, g.lines[g.y].wraps = 0, true
			g.feed()
		}
		g.wrapNext = false
	}
	if w > g.cols {
		return
	}
	if insert {
		g.shift(w)
	}
	line := g.lines[g.y].cells
	g.split(g.x)
	g.split(g.x + w)
	line[g.x] = text
	if w == 2 {
		line[g.x+1] = rightHalf
	}
	if g.x+w >= g.cols {
		g.x, g.wrapNext = g.cols-1, true
		return
	}
	g.x += w
}

// mark joins a mark of no width to the letter before the cursor.
func (g *grid) mark(text string) {
	x := g.x
	if !g.wrapNext {
		x--
	}
	line := g.lines[g.y].cells
	if x > 0 && line[x] == rightHalf {
		x--
	}
	if x >= 0 && line[x] != "" && line[x] != rightHalf && len(line[x])+len(text) <= cellLimit {
		line[x] += text
	}
}

// split makes sure that no wide letter lies across the left border of column x of the cursor's line.
func (g *grid) split(x int) {
	line := g.lines[g.y].cells
	if x > 0 && x < g.cols && line[x] == rightHalf {
		line[x-1], line[x] = "", ""
	}
}

// feed goes down a line, scrolling at the region's end.
func (g *grid) feed() {
	g.wrapNext = false
	switch {
	case g.y == g.bot-1:
		g.up(g.top, 1)
	case g.y < g.rows-1:
		g.y++
	}
}

// reverse goes up a line, scrolling at the region's start.
func (g *grid) reverse() {
	g.wrapNext = false
	switch {
	case g.y == g.top:
		g.down(g.top, 1)
	case g.y > 0:
		g.y--
	}
}

// up moves the lines from at to the region's end up by n; those of the screen's first line scroll off.
func (g *grid) up(at, n int) {
	for range min(n, g.bot-at) {
		first := g.lines[at]
		if at == 0 && g.off != nil {
			g.off(first)
		}
		copy(g.lines[at:g.bot-1], g.lines[at+1:g.bot])
		first.clear()
		g.lines[g.bot-1] = first
	}
}

// down moves the lines from at to the region's end down by n.
func (g *grid) down(at, n int) {
	for range min(n, g.bot-at) {
		last := g.lines[g.bot-1]
		copy(g.lines[at+1:g.bot], g.lines[at:g.bot-1])
		last.clear()
		g.lines[at] = last
	}
}

// inRegion reports whether the cursor's line scrolls.
func (g *grid) inRegion() bool { return g.y >= g.top && g.y < g.bot }

// shift moves the rest of the cursor's line right by n.
func (g *grid) shift(n int) {
	line := g.lines[g.y].cells
	n = min(n, g.cols-g.x)
	g.split(g.x)
	copy(line[g.x+n:], line[g.x:g.cols-n])
	clear(line[g.x : g.x+n])
	g.wrapNext = false
}

// pull moves the rest of the cursor's line left by n, over what stands at the cursor.
func (g *grid) pull(n int) {
	line := g.lines[g.y].cells
	n = min(n, g.cols-g.x)
	g.split(g.x)
	g.split(g.x + n)
	copy(line[g.x:], line[g.x+n:])
	clear(line[g.cols-n:])
	g.wrapNext = false
}

// wipe blanks the columns [from, to) of the cursor's line.
func (g *grid) wipe(from, to int) {
	to = min(to, g.cols)
	if from >= to {
		return
	}
	g.split(from)
	g.split(to)
	clear(g.lines[g.y].cells[from:to])
	if to == g.cols {
		g.lines[g.y].wraps = false
	}
	g.wrapNext = false
}

// wipeLines blanks the lines [from, to).
func (g *grid) wipeLines(from, to int) {
	for y := from; y < to; y++ {
		g.lines[y].clear()
	}
	g.wrapNext = false
}

// goTo sets the cursor, within the screen.
func (g *grid) goTo(x, y int) {
	g.x, g.y, g.wrapNext = max(0, min(x, g.cols-1)), max(0, min(y, g.rows-1)), false
}

// move moves the cursor; it does not leave the scroll region by going up or down.
func (g *grid) move(dx, dy int) {
	low, high := 0, g.rows-1
	if g.inRegion() {
		low, high = g.top, g.bot-1
	}
	g.goTo(g.x+dx, max(low, min(g.y+dy, high)))
}

// tab goes n tab stops on, or back where n is negative.
func (g *grid) tab(n int) {
	x := g.x / tabEvery * tabEvery
	if n < 0 && x < g.x {
		n++
	}
	g.goTo(x+n*tabEvery, g.y)
}

func (g *grid) save() { g.saved = position{g.x, g.y, g.wrapNext} }

func (g *grid) restore() {
	g.goTo(g.saved.x, g.saved.y)
	g.wrapNext = g.saved.wrapNext && g.x == g.cols-1
}

// text gives a line without the blanks at its end; one that goes on keeps them.
func (r row) text() string {
	n := len(r.cells)
	for n > 0 && !r.wraps && (r.cells[n-1] == "" || r.cells[n-1] == " ") {
		n--
	}
	var b strings.Builder
	b.Grow(n)
	for _, cell := range r.cells[:n] {
		switch cell {
		case "":
			b.WriteByte(' ')
		case rightHalf:
		default:
			b.WriteString(cell)
		}
	}
	return b.String()
}

// end is what follows the line where lines are shown one below the other.
func (r row) end() string {
	if r.wraps {
		return ""
	}
	return "\n"
}
