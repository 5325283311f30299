package decoy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"proctor/rules"
)

// Splicing: cutting just the offending simple command out of the agent's text, and putting a
// compound command in its place that says what the program would have said.
//
// Why: in `cd src && cat .eval/x; make` the rest of the call is honest. It must run, and &&, ;, |,
// redirections, $? and the shell's folder must mean what they meant.
//
// How: the text is parsed again, the statement at the event's span is found, and the bytes of its
// words are replaced; its redirections stay, byte for byte, behind the replacement. The replacement
// is one `{ ...; }`, which POSIX lets stand wherever a simple command can, on one line, so that
// heredocs below keep their places.
//
// When in doubt: a statement inside a function (declare -f would show it), inside backquotes (they
// change quoting), or in a loop whose words vary is not cut; the smallest enclosing statement that
// can be is. Where the shell may show what it runs (set -x, a DEBUG trap, history), nothing is.

// textLimit is the longest text that is parsed, and nestLimit the deepest nesting; beyond them the
// parser could overflow its stack (see the normaliser).
const (
	textLimit = 64 << 10
	nestLimit = 100
)

// cut is one replacement of bytes.
type cut struct {
	start, end int
	text       string
	exact      bool // the words of just one command
}

// splice gives the call's text with every target replaced; false where that cannot be proven safe.
// With loose, statements around a command may go with it.
func (m *Maker) splice(req Request, targets []target, replies []reply, loose bool) (string, bool) {
	text := req.Call.Command
	file := m.parse(text)
	if file == nil {
		return "", false
	}
	var cuts []cut
	for i := range targets {
		t := &targets[i]
		if t.cmd == nil || t.index < 0 || t.cmd.Span.End <= t.cmd.Span.Start {
			return "", false
		}
		c, ok := place(file, text, t, replies[i])
		if !ok || !c.exact && !loose {
			return "", false
		}
		cuts = append(cuts, c)
	}
	return apply(text, cuts)
}

// parse parses text where splicing is allowed at all, else nil.
func (m *Maker) parse(text string) *syntax.File {
	if m.watched(text) || len(text) > textLimit || strings.ContainsRune(text, 0) || nesting(text) > nestLimit {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	return file
}

// watched reports whether the shell would show what else than the agent's text is run in it.
func (m *Maker) watched(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.traced || m.bent || showsItself(text)
}

// nesting counts the brackets of text: an upper bound of how deep it nests.
func nesting(text string) int {
	deepest, depth := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[', '`':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
	}
	return deepest
}

// apply replaces the cuts, innermost dropped where one encloses another.
func apply(text string, cuts []cut) (string, bool) {
	slices.SortStableFunc(cuts, func(a, b cut) int {
		switch {
		case a.start != b.start:
			return a.start - b.start
		case a.end != b.end:
			return b.end - a.end
		case a.exact != b.exact && a.exact: // find -exec cat: find speaks, not the cat that it never runs
			return -1
		case a.exact != b.exact:
			return 1
		}
		return 0
	})
	var b strings.Builder
	at := 0
	for _, c := range cuts {
		if c.start < at {
			if c.end <= at {
				continue // inside what is replaced already
			}
			return "", false
		}
		b.WriteString(text[at:c.start] + c.text)
		at = c.end
	}
	return b.String() + text[at:], true
}

// place finds where target t stands and what to put there.
func place(file *syntax.File, text string, t *target, r reply) (cut, bool) {
	chain := chainTo(file, t.cmd.Span)
	if len(chain) == 0 {
		return cut{}, false
	}
	if stmt, call, ok := exact(chain, t); ok {
		start, end, redirs := extent(stmt, call, text, r.drops)
		if r.edit != nil {
			return edited(call, text, t, r)
		}
		return cut{start, end, literal(r, lastWord(call, text)) + redirs, true}, true
	}
	if r.edit != nil && !r.silent() {
		return cut{}, false // a filtered run needs its own words; without them the call is answered whole
	}
	if c, ok := inside(chain, text, t, r); ok {
		return c, true
	}
	// The smallest statement around it that can be cut whole.
	stmt := enclosing(chain)
	if stmt == nil {
		return cut{}, false
	}
	end := int(stmt.Cmd.End().Offset())
	for _, rd := range stmt.Redirs {
		if rd.Hdoc != nil {
			return cut{}, false
		}
		end = max(end, int(rd.Word.End().Offset()))
	}
	return cut{int(stmt.Cmd.Pos().Offset()), end, literal(r, ""), false}, true
}

// link is one node on the way from the file to a statement.
type link struct {
	stmt   *syntax.Stmt
	opaque bool // inside a function, backquotes, or a coprocess
	varies bool // inside a loop
}

// chainTo gives the statements around span, outermost first.
func chainTo(file *syntax.File, span rules.Span) []link {
	var best []link
	var stack []syntax.Node
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if s, ok := n.(*syntax.Stmt); ok && int(s.Pos().Offset()) <= span.Start && int(s.End().Offset()) >= span.End {
			if chain := links(stack); len(chain) >= len(best) {
				best = chain
			}
		}
		return true
	})
	return best
}

// links turns a stack of nodes into the statements on it.
func links(stack []syntax.Node) []link {
	var out []link
	opaque, loop := false, false
	for _, n := range stack {
		switch n := n.(type) {
		case *syntax.FuncDecl, *syntax.CoprocClause:
			opaque = true
		case *syntax.CmdSubst:
			opaque = opaque || n.Backquotes
		case *syntax.WhileClause, *syntax.ForClause:
			loop = true
		case *syntax.Stmt:
			out = append(out, link{stmt: n, opaque: opaque, varies: loop})
		}
	}
	return out
}

// exact gives the statement and call whose words are just the span's, where it may be cut.
func exact(chain []link, t *target) (*syntax.Stmt, *syntax.CallExpr, bool) {
	l, span := chain[len(chain)-1], t.cmd.Span
	call, ok := l.stmt.Cmd.(*syntax.CallExpr)
	if !ok || !span.Exact || l.opaque || len(call.Args) == 0 || l.stmt.Coprocess {
		return nil, nil, false
	}
	if s := int(call.Pos().Offset()); s != span.Start && int(l.stmt.Pos().Offset()) != span.Start && int(call.Args[0].Pos().Offset()) != span.Start {
		return nil, nil, false
	}
	if !names(call, t.cmd.Program) {
		return nil, nil, false // eval, bash -c: the words hold the command's text, and are not its words
	}
	for _, w := range call.Args {
		if acts(w) || l.varies && !still(w) {
			return nil, nil, false
		}
	}
	for _, a := range call.Assigns {
		if a.Value != nil && acts(a.Value) {
			return nil, nil, false
		}
	}
	return l.stmt, call, true
}

// names reports whether one of a call's words is program, or the first is not literal.
func names(call *syntax.CallExpr, program string) bool {
	for i, w := range call.Args {
		lit := strings.ReplaceAll(w.Lit(), `\`, "")
		if s, ok := literalWord(w); ok {
			lit = s
		}
		if path.Base(lit) == program || lit == program || i == 0 && lit == "" {
			return true
		}
	}
	return false
}

// acts reports whether expanding w does something: runs a command, assigns, counts.
func acts(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
			found = true
		case *syntax.ParamExp:
			found = found || n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull)
		}
		return !found
	})
	return found
}

// still reports whether w is the same each time round.
func still(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		if _, ok := n.(*syntax.ParamExp); ok {
			found = true
		}
		return !found
	})
	return !found
}

// enclosing gives the innermost statement that may be replaced whole: outside functions, loops and
// backquotes, so that what is replaced is run once and seen nowhere.
func enclosing(chain []link) *syntax.Stmt {
	for i := len(chain) - 1; i >= 0; i-- {
		l := chain[i]
		if _, fn := l.stmt.Cmd.(*syntax.FuncDecl); fn || l.opaque || l.varies || l.stmt.Cmd == nil {
			continue
		}
		return l.stmt
	}
	return nil
}

// extent gives the bytes of a call's words, assignments and redirections, and the redirections that
// stay, as they were written. Drop names redirection targets that go.
func extent(stmt *syntax.Stmt, call *syntax.CallExpr, text string, drop []string) (start, end int, redirs string) {
	start, end = int(call.Pos().Offset()), int(call.End().Offset())
	for _, r := range stmt.Redirs {
		a, z := int(r.Pos().Offset()), int(r.Word.End().Offset())
		start, end = min(start, a), max(end, z)
		if lit := r.Word.Lit(); slices.Contains(drop, lit) || slices.Contains(drop, text[int(r.Word.Pos().Offset()):z]) {
			continue
		}
		redirs += " " + text[a:z]
	}
	return start, end, redirs
}

// edited gives the call's words, edited; what stands around them stays.
func edited(call *syntax.CallExpr, text string, t *target, r reply) (cut, bool) {
	var src []string
	for _, w := range call.Args {
		src = append(src, text[int(w.Pos().Offset()):int(w.End().Offset())])
	}
	val := words(t)
	lead := len(src) - len(val) // wrappers before the program: timeout 5 find ...
	if lead < 0 || !strings.Contains(src[lead], t.cmd.Program) && !strings.ContainsAny(src[lead], "$\"'\\") {
		return cut{}, false // the words do not line up: an alias, or a program inside a wrapper's text
	}
	out := append(append([]string{}, src[:lead]...), r.edit(src[lead:], val)...)
	a, z := call.Args[0], call.Args[len(call.Args)-1]
	return cut{int(a.Pos().Offset()), int(z.End().Offset()), strings.Join(out, " "), true}, true
}

// lastWord gives a call's last word as $_ is to hold it: quoted where an expansion could now give
// something else than it would where nothing is.
func lastWord(call *syntax.CallExpr, text string) string {
	w := call.Args[len(call.Args)-1]
	src := text[int(w.Pos().Offset()):int(w.End().Offset())]
	if lit := w.Lit(); lit != "" {
		return quote(strings.ReplaceAll(lit, "\\", ""))
	}
	if strings.ContainsAny(src, "*?[{~\n") {
		return quote(strings.Trim(src, `"'`))
	}
	return src
}
