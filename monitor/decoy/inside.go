package decoy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// inside cuts a command out of the literal text that `bash -c` or eval is given, so that what stands
// around it in there still runs. The text is put back in single quotes, which say the same whatever
// it was quoted with.
func inside(chain []link, text string, t *target, r reply) (cut, bool) {
	l := chain[len(chain)-1]
	call, ok := l.stmt.Cmd.(*syntax.CallExpr)
	if !ok || l.opaque || l.varies || len(call.Args) < 2 {
		return cut{}, false
	}
	at := scriptArg(call)
	if at < 0 {
		return cut{}, false
	}
	inner, ok := literalWord(call.Args[at])
	if !ok || nesting(inner) > nestLimit || strings.ContainsRune(inner, '\n') {
		return cut{}, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(inner), "")
	if err != nil {
		return cut{}, false
	}
	c, ok := findWords(file, inner, t, r)
	if !ok {
		return cut{}, false
	}
	w := call.Args[at]
	return cut{int(w.Pos().Offset()), int(w.End().Offset()), quote(inner[:c.start] + c.text + inner[c.end:]), true}, true
}

// scriptArg gives the index of the word that holds shell text: behind bash -c, or eval's only one.
func scriptArg(call *syntax.CallExpr) int {
	switch name := path.Base(call.Args[0].Lit()); {
	case name == "eval" && len(call.Args) == 2:
		return 1
	case name == "bash" || name == "sh" || name == "dash":
		for i, w := range call.Args[1:] {
			if lit := w.Lit(); strings.HasPrefix(lit, "-") && strings.HasSuffix(lit, "c") && i+2 < len(call.Args) {
				return i + 2
			}
		}
	}
	return -1
}

// literalWord gives what a word of quotes and plain text stands for.
func literalWord(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		if len(p.Parts) == 1 && !p.Dollar {
			if l, ok := p.Parts[0].(*syntax.Lit); ok && !strings.Contains(l.Value, `\`) {
				return l.Value, true
			}
		}
	}
	return "", false
}

// findWords finds the one call in file whose literal words are the target's, and replaces it; false
// where there is none, or more than one.
func findWords(file *syntax.File, text string, t *target, r reply) (cut, bool) {
	var found []cut
	var stack []syntax.Node
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		stmt, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		call, ok := stmt.Cmd.(*syntax.CallExpr)
		chain := links(stack)
		if !ok || !slices.Equal(literals(call), words(t)) || chain[len(chain)-1].opaque || chain[len(chain)-1].varies {
			return true
		}
		if r.edit != nil {
			if c, ok := edited(call, text, t, r); ok {
				found = append(found, c)
			}
			return true
		}
		start, end, redirs := extent(stmt, call, text, r.drops)
		found = append(found, cut{start, end, literal(r, lastWord(call, text)) + redirs, true})
		return true
	})
	if len(found) != 1 {
		return cut{}, false
	}
	return found[0], true
}

// literals gives a call's words, nil where one is not literal.
func literals(call *syntax.CallExpr) []string {
	var out []string
	for _, w := range call.Args {
		if lit := w.Lit(); lit != "" && !strings.Contains(lit, `\`) {
			out = append(out, lit)
			continue
		}
		s, ok := literalWord(w)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}
