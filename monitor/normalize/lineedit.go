package normalize

import (
	"strings"
	"unicode"
)

// lineLimit bounds a line that is being typed, in characters; what is typed beyond it is kept apart from it.
const lineLimit = 16 << 10

// lineEditor is the line that somebody types on a terminal: the kernel's and readline's editing keys, as far as
// what they do depends on the line alone. The zero value is an empty line.
type lineEditor struct {
	text   []rune
	at     int
	back   int  // lines of the history that were gone up
	unsure bool // a key was pressed whose effect on this line is not known
}

func (l lineEditor) clone() lineEditor {
	l.text = append([]rune(nil), l.text...)
	return l
}

// feed types text, keys included, and gives the lines that were entered. Where modes is true ESC ends a line, as it ends
// a mode of an editor.
func (l *lineEditor) feed(text string, history []string, modes bool) (entered []string) {
	keys := []rune(text)
	for i := 0; i < len(keys); i++ {
		switch k := keys[i]; {
		case k == '\r' || k == '\n' || k == 0x1b && modes && !cursorKey(keys[i:]):
			entered = append(entered, string(l.text))
			history = append(history[:len(history):len(history)], string(l.text))
			unsure := l.unsure
			*l = lineEditor{unsure: unsure}
		case k == 0x1b:
			i += l.escape(keys[i+1:], history)
		case k < ' ' || k == 0x7f:
			l.control(k, i+1 < len(keys) && !strings.ContainsRune(" /\r\n\t", keys[i+1]), history)
		default:
			l.insert(k)
		}
	}
	return entered
}

// cursorKey reports whether keys begin a cursor key's sequence.
func cursorKey(keys []rune) bool { return len(keys) > 2 && (keys[1] == '[' || keys[1] == 'O') }

func (l *lineEditor) insert(keys ...rune) {
	if len(l.text)+len(keys) > lineLimit {
		l.unsure = true
		return
	}
	l.text = append(l.text[:l.at:l.at], append(keys, l.text[l.at:]...)...)
	l.at += len(keys)
}

// cut takes the characters [from, to) out; the cursor is then at from.
func (l *lineEditor) cut(from, to int) {
	from, to = max(from, 0), min(to, len(l.text))
	if from < to {
		l.text = append(l.text[:from:from], l.text[to:]...)
	}
	l.at = min(from, len(l.text))
}

func (l *lineEditor) set(text string) {
	l.text = []rune(text)
	l.at = len(l.text)
}

// control presses a control key. more says that the word goes on behind it.
func (l *lineEditor) control(k rune, more bool, history []string) {
	switch k {
	case 0x7f, '\b':
		l.cut(l.at-1, l.at)
	case 'U' & 0x1f:
		l.cut(0, l.at)
	case 'K' & 0x1f:
		l.cut(l.at, len(l.text))
	case 'W' & 0x1f:
		l.cut(l.wordStart(), l.at)
	case 'A' & 0x1f:
		l.at = 0
	case 'E' & 0x1f:
		l.at = len(l.text)
	case 'B' & 0x1f:
		l.at = max(l.at-1, 0)
	case 'F' & 0x1f:
		l.at = min(l.at+1, len(l.text))
	case 'D' & 0x1f:
		l.cut(l.at, l.at+1)
	case 'C' & 0x1f, 'Z' & 0x1f, '\\' & 0x1f, 'G' & 0x1f:
		*l = lineEditor{unsure: l.unsure}
	case 'P' & 0x1f:
		l.up(1, history)
	case 'N' & 0x1f:
		l.up(-1, history)
	case '\t': // completes a name: whatever it is, the pattern holds it
		l.insert('*')
		if more {
			l.insert('/')
		}
	case 0, 'L' & 0x1f, '[' & 0x1f, 'S' & 0x1f, 'Q' & 0x1f:
	default:
		l.unsure = true
	}
}

func (l *lineEditor) wordStart() int {
	i := l.at
	for i > 0 && unicode.IsSpace(l.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(l.text[i-1]) {
		i--
	}
	return i
}

// up goes n lines up in the history; what is not known to be there makes the line unsure.
func (l *lineEditor) up(n int, history []string) {
	l.back += n
	switch {
	case l.back <= 0:
		l.back = 0
		l.set("")
	case l.back <= len(history):
		l.set(history[len(history)-l.back])
	default: // of a file, perhaps, that was written before
		l.unsure = true
	}
}

// escape presses the key that ESC begins, and gives how many more characters it took.
func (l *lineEditor) escape(keys []rune, history []string) int {
	if len(keys) == 0 {
		return 0
	}
	if keys[0] != '[' && keys[0] != 'O' {
		switch keys[0] {
		case 0x7f, '\b':
			l.cut(l.wordStart(), l.at)
		default:
			l.unsure = true
		}
		return 1
	}
	n := 1
	for n < len(keys) && keys[n] < 0x40 {
		n++
	}
	if n == len(keys) {
		return n
	}
	switch seq := string(keys[1 : n+1]); seq {
	case "A":
		l.up(1, history)
	case "B":
		l.up(-1, history)
	case "C":
		l.at = min(l.at+1, len(l.text))
	case "D":
		l.at = max(l.at-1, 0)
	case "H", "1~", "7~":
		l.at = 0
	case "F", "4~", "8~":
		l.at = len(l.text)
	case "3~":
		l.cut(l.at, l.at+1)
	case "200~", "201~": // a paste's ends
	default:
		l.unsure = true
	}
	return n + 1
}
