package agent

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"proctor/sandbox"
)

// shows draws text on a screen of 5 rows and 20 cols and gives what is shown.
func shows(t *testing.T, text string) string {
	t.Helper()
	s := newScreen(5, 20, func([]byte) {})
	_, _ = s.Write([]byte(text))
	out, _ := s.take()
	return string(out)
}

func TestScreen(t *testing.T) {
	for name, c := range map[string][2]string{
		"plain":            {"a\r\nb", "a\nb\n"},
		"nothing":          {"", ""},
		"blank lines":      {"\r\n\r\nc\r\n\r\n", "\n\nc\n"},
		"overwritten":      {"abc\rX", "Xbc\n"},
		"moved":            {"\x1b[2;3Hhere", "\n  here\n"},
		"colours":          {"\x1b[31mred\x1b[0m", "red\n"},
		"scrolled":         {"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7", "1\n2\n3\n4\n5\n6\n7\n"},
		"wide":             {"\u4e2d\u6587x", "\u4e2d\u6587x\n"},
		"marks":            {"e\u0301", "e\u0301\n"},
		"not UTF-8":        {"a\xffb", "ab\n"},
		"wrapped":          {strings.Repeat("x", 25), strings.Repeat("x", 25) + "\n"},
		"wrapped, gone":    {strings.Repeat("x", 25) + "\r\n1\r\n2\r\n3\r\n4\r\n5", strings.Repeat("x", 25) + "\n1\n2\n3\n4\n5\n"},
		"full screen":      {"shell\x1b[?1049h\x1b[Hfull", "full\n"},
		"and back":         {"shell\x1b[?1049h\x1b[Hfull\x1b[?1049l", "shell\n"},
		"old alternate":    {"shell\x1b[?47h\x1b[Hfull\x1b[?47l!", "shell!\n"},
		"a link":           {"\x1b]8;;http://x\x1b\\name\x1b]8;;\x1b\\", "name\n"},
		"a huge count":     {"a\x1b[65535b", strings.Repeat("a", 21) + "\n"},
		"repeated":         {"a\x1b[3b", "aaaa\n"},
		"erased":           {"abc\x1b[2J\x1b[Hd", "abc\nd\n"}, // what is wiped off the screen went by, too
		"cut in sequences": {"\x1b[?10" + "49hx", "x\n"},
	} {
		if got := shows(t, c[0]); got != c[1] {
			t.Errorf("%s: %q, want %q", name, got, c[1])
		}
	}
}

// However a stream is cut, the screen is the same.
func TestScreenCut(t *testing.T) {
	text := "one\x1b[?1049h\x1b[2;2Htwo\x1b[?25l\x1b[?1049lthree\x1b[31m\u4e2d\r\nfour"
	want := shows(t, text)
	for n := 1; n < len(text); n++ {
		s := newScreen(5, 20, func([]byte) {})
		for part := range chunks(text, n) {
			_, _ = s.Write([]byte(part))
		}
		if got, _ := s.take(); string(got) != want {
			t.Errorf("cut every %d bytes: %q, want %q", n, got, want)
		}
	}
}

func chunks(text string, n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			if !yield(text[:min(n, len(text))]) {
				return
			}
			text = text[min(n, len(text)):]
		}
	}
}

// Lines that scroll off are given once; of too many the last.
func TestScreenScrolled(t *testing.T) {
	s := newScreen(5, 20, func([]byte) {})
	for i := range 20 {
		fmt.Fprintf(s, "line %d\r\n", i)
	}
	first, cut := s.take()
	if cut || strings.Count(string(first), "line") != 20 {
		t.Errorf("%v %q", cut, first)
	}
	if again, _ := s.take(); string(again) != "line 16\nline 17\nline 18\nline 19\n" {
		t.Errorf("again %q", again)
	}
	for i := range 20000 {
		fmt.Fprintf(s, "line %d\r\n", i)
	}
	got, cut := s.take()
	if !cut || !bytes.HasSuffix(got, []byte("line 19999\n")) || !bytes.HasPrefix(got, []byte("[")) || len(got) > sandbox.OutputLimit {
		t.Errorf("%v, %d bytes: %.100q", cut, len(got), got)
	}
}

func TestScreenAnswers(t *testing.T) {
	said := make(chan string, 16)
	s := newScreen(5, 20, func(b []byte) { said <- string(b) })
	_, _ = s.Write([]byte("ab\x1b[6n")) // where is the cursor?
	select {
	case got := <-said:
		if got != "\x1b[1;3R" {
			t.Errorf("%q", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("no answer")
	}
}

func TestScreenResizes(t *testing.T) {
	s := newScreen(5, 20, func([]byte) {})
	_, _ = s.Write([]byte(strings.Repeat("x", 15)))
	s.resize(2, 10)
	if s.where() != "screen of 2 rows and 10 cols, cursor at row 1, col 10" {
		t.Error(s.where())
	}
	s.resize(sandbox.MaxRows, sandbox.MaxCols)
	_, _ = s.Write([]byte("\x1b[100;250Hend"))
	if got, _ := s.take(); !bytes.Contains(got, []byte("e")) {
		t.Errorf("%q", got)
	}
}

// FuzzScreen draws any bytes on any size, resizing on the way: no panic comes out, and what is shown is bounded.
func FuzzScreen(f *testing.F) {
	for _, text := range []string{"a\x1b[?1049hb\x1b[?1049l", "\x1b[999;999H\x1b[5L\x1b[5M\x1b[5S\x1b[5T\x1b[5@\x1b[5P\x1b[5X", "\x1b[2;4r\x1b[?69h\x1b[3;9s\n\n\n\n\n\n",
		"\x1b]0;title\a\x1bP1$r\x1b\\\x1b_x\x1b\\\x1bc\x1b#8", "e\u0301\u0301\u4e2d\U0001f469\u200d\U0001f469", "\x1b[6n\x1b[c\x1b[>c\x1b[?1h\x1b[?7l\x1b[4h"} {
		f.Add([]byte(text), uint8(24), uint8(80), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, rows, cols, split uint8) {
		r, c := 1+int(rows)%sandbox.MaxRows, 1+int(cols)%sandbox.MaxCols
		s := newScreen(r, c, func([]byte) {})
		at := min(len(b), int(split))
		_, _ = s.Write(b[:at])
		s.resize(1+int(cols)%sandbox.MaxRows, 1+int(rows)%sandbox.MaxCols)
		_, _ = s.Write(b[at:])
		got, _ := s.take()
		if len(got) > sandbox.OutputLimit || !utf8.Valid(got) {
			t.Errorf("%d bytes, valid %v", len(got), utf8.Valid(got))
		}
		_ = s.where()
	})
}
