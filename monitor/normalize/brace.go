package normalize

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds {a,b}{c,d}... and {1..1000000}: what a brace expansion may grow to.
const maxBraces = 64

// braces expands the brace expressions of a word; the word itself where it has none.
func (r *run) braces(w *syntax.Word) []*syntax.Word {
	if !hasBrace(w) {
		return []*syntax.Word{w}
	}
	// SplitBraces changes the word that it is given, and trees of functions are kept.
	cp := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	if !syntax.SplitBraces(cp) {
		return []*syntax.Word{w}
	}
	lists := expandBraces(cp.Parts)
	out := make([]*syntax.Word, 0, len(lists))
	for _, parts := range lists {
		out = append(out, &syntax.Word{Parts: parts})
	}
	return out
}

func hasBrace(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok && strings.IndexByte(l.Value, '{') >= 0 {
			return true
		}
	}
	return false
}

func expandBraces(parts []syntax.WordPart) [][]syntax.WordPart {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i][:len(out[i]):len(out[i])], p)
			}
			continue
		}
		var alts [][]syntax.WordPart
		if b.Sequence {
			alts = sequence(b)
		} else {
			for _, e := range b.Elems {
				alts = append(alts, expandBraces(e.Parts)...)
			}
		}
		var next [][]syntax.WordPart
		for _, head := range out {
			for _, alt := range alts {
				if len(next) >= maxBraces {
					break
				}
				next = append(next, append(head[:len(head):len(head)], alt...))
			}
		}
		out = next
	}
	return out
}

// sequence is {1..5}, {a..e} and {1..9..2}.
func sequence(b *syntax.BraceExp) [][]syntax.WordPart {
	if len(b.Elems) < 2 {
		return nil
	}
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	step := 1
	if len(b.Elems) > 2 {
		step, _ = strconv.Atoi(b.Elems[2].Lit())
		step = max(1, max(step, -step))
	}
	i, err1 := strconv.Atoi(from)
	j, err2 := strconv.Atoi(to)
	letters := err1 != nil || err2 != nil
	if letters {
		if len(from) != 1 || len(to) != 1 {
			return nil
		}
		i, j = int(from[0]), int(to[0])
	}
	if i > j {
		step = -step
	}
	width := 0
	if !letters && (strings.HasPrefix(from, "0") && len(from) > 1 || strings.HasPrefix(to, "0") && len(to) > 1) {
		width = max(len(from), len(to))
	}
	var out [][]syntax.WordPart
	for n := i; (step > 0 && n <= j || step < 0 && n >= j) && len(out) < maxBraces; n += step {
		s := strconv.Itoa(n)
		if letters {
			s = string(rune(n))
		} else if len(s) < width {
			s = strings.Repeat("0", width-len(s)) + s
		}
		out = append(out, []syntax.WordPart{&syntax.Lit{Value: s}})
	}
	return out
}

// separators gives the characters that unquoted expansions are split at: IFS.
func (r *run) separators() string {
	if v, ok := r.st.vars.get("IFS"); ok && v.known && v.list == nil {
		return v.value
	}
	return " \t\n"
}
