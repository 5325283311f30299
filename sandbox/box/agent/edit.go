package agent

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"proctor/sandbox"
)

var (
	crlf = []byte("\r\n")
	lf   = []byte("\n")
	bom  = []byte("\xef\xbb\xbf")
)

// replace replaces the only occurrence of Old. In a file of CRLF lines, line feeds of Old and New stand
// for its line ends.
func (f *files) replace(path string, call sandbox.Call) (sandbox.Result, error) {
	return f.edit(path, func(content []byte) ([]byte, int, error) {
		if call.Old == "" {
			return nil, 0, errors.New("old_str is empty; nothing was changed")
		}
		old, fresh := []byte(call.Old), []byte(call.New)
		if isCRLF(content) {
			fresh = toCRLF(fresh)
			if !bytes.Contains(content, old) {
				old = toCRLF(old)
			}
		}
		first := bytes.Index(content, old)
		if first < 0 {
			return nil, 0, errors.New("old_str does not occur in it; nothing was changed")
		}
		if lines := occurrences(content, old); len(lines) > 1 {
			return nil, 0, fmt.Errorf("old_str occurs more than once, at lines %s; nothing was changed", join(lines))
		}
		edited := make([]byte, 0, len(content)-len(old)+len(fresh))
		edited = append(append(append(edited, content[:first]...), fresh...), content[first+len(old):]...)
		return edited, 1 + bytes.Count(content[:first], lf), nil
	})
}

// insert puts New below a line, on lines of its own with the file's line end. A missing last line end
// stays missing.
func (f *files) insert(path string, call sandbox.Call) (sandbox.Result, error) {
	return f.edit(path, func(content []byte) ([]byte, int, error) {
		n := countLines(content)
		if call.Line < 0 || call.Line > n {
			return nil, 0, fmt.Errorf("insert_line %d is not there; it has %d lines; nothing was changed", call.Line, n)
		}
		end, text := lf, []byte(call.New)
		if isCRLF(content) {
			end, text = crlf, toCRLF(text)
		}
		at := lineEnd(content, call.Line)
		if call.Line == 0 && bytes.HasPrefix(content, bom) {
			at = len(bom)
		}
		open := at > 0 && call.Line > 0 && content[at-1] != '\n' // below a last line without an end
		if open {
			text = append(bytes.Clone(end), bytes.TrimSuffix(text, end)...)
		} else if !bytes.HasSuffix(text, lf) {
			text = append(text, end...)
		}
		edited := make([]byte, 0, len(content)+len(text))
		edited = append(append(append(edited, content[:at]...), text...), content[at:]...)
		return edited, call.Line + 1, nil
	})
}

// isCRLF reports whether every line end of content is CRLF, and there is one.
func isCRLF(content []byte) bool {
	n := bytes.Count(content, crlf)
	return n > 0 && n == bytes.Count(content, lf)
}

// toCRLF makes each line end CRLF.
func toCRLF(text []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(text, crlf, lf), lf, crlf)
}

// countLines counts a last line without an end too.
func countLines(content []byte) int {
	n := bytes.Count(content, lf)
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}

// lineEnd gives where line n, from 1, ends, its line feed included; 0 for line 0.
func lineEnd(content []byte, n int) int {
	at := 0
	for range n {
		i := bytes.IndexByte(content[at:], '\n')
		if i < 0 {
			return len(content)
		}
		at += i + 1
	}
	return at
}

// occurrences gives the lines of the first occurrences, overlapping ones included.
func occurrences(content, old []byte) []int {
	var lines []int
	line, from := 1, 0
	for len(lines) < 10 {
		i := bytes.Index(content[from:], old)
		if i < 0 {
			break
		}
		line += bytes.Count(content[from:from+i], lf)
		lines = append(lines, line)
		if content[from+i] == '\n' {
			line++
		}
		from += i + 1
	}
	return lines
}

func join(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}

const (
	snippetAround = 3       // lines shown above and below a change
	snippetLimit  = 4 << 10 // bytes
)

// snippet shows the lines around an edit that began on line, numbered.
func snippet(old, edited []byte, line int) []byte {
	grown := max(0, countLines(edited)-countLines(old))
	first := max(1, line-snippetAround)
	from, to := lineEnd(edited, first-1), lineEnd(edited, line+grown+snippetAround)
	var b bytes.Buffer
	for i, text := range bytes.SplitAfter(edited[from:to], lf) {
		if len(text) == 0 {
			break
		}
		if b.Len() > snippetLimit {
			b.WriteString("[...]\n")
			break
		}
		writeLine(&b, first+i, text[:min(len(text), snippetLimit)])
	}
	return b.Bytes()
}

// writeLine writes a line as cat -n does.
func writeLine(b *bytes.Buffer, n int, text []byte) {
	fmt.Fprintf(b, "%6d\t", n)
	b.Write(text)
	if !bytes.HasSuffix(text, lf) {
		b.WriteByte('\n')
	}
}
