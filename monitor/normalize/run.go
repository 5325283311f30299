package normalize

import (
	"context"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"proctor/rules"
)

// run is the reading of one call: an interpreter of bash that has no effects but on its own state,
// follows every branch, and knows values only where the text alone decides them.
type run struct {
	n      *Normalizer
	ctx    context.Context // of the call; facts are asked under context()
	cancel context.CancelFunc
	st     *state
	ev     *rules.Event
	start  time.Time
	facts  Facts                // n.facts, for this call
	states map[string]PathState // answers of Facts.Path in this call

	steps, depth int
	out          bool // budget spent; noted once
	substs       int  // process substitutions so far
	temp         map[string]string
	scripts      map[string]bool // script files already read in this call
	folds        map[[4]string]fold
	parser       *syntax.Parser
}

// context bounds what is asked of facts by what is left of the call's time. Most calls ask nothing,
// and a timer costs more than reading them.
func (r *run) context() context.Context {
	if r.cancel == nil {
		r.ctx, r.cancel = context.WithDeadline(r.ctx, r.start.Add(maxTime))
	}
	return r.ctx
}

// unit is a piece of shell source; the nodes of its tree point into src.
type unit struct {
	src string
	own bool // the call's own text: spans are offsets into it
}

// frame is where a piece of shell code runs.
type frame struct {
	unit   *unit
	via    []string
	params []string // $1...
	name   string   // $0
	exact  bool     // a simple command here may be cut out of the call's text
	span   rules.Span
	files  []rules.File // what redirections around it write
	reads  []arg        // and read
}

func (f frame) wrapped(by string) frame {
	f.via = append(f.via[:len(f.via):len(f.via)], by)
	return f
}

// val is text that may not be known; s then holds what of it is.
type val struct {
	s     string
	known bool
}

func known(s string) val {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return val{s, true}
}

// spend takes one step of the budget; false when there is none left.
func (r *run) spend() bool {
	r.steps++
	if r.out {
		return false
	}
	if r.steps > maxSteps || len(r.ev.Commands) >= maxCommands || r.steps%64 == 0 && time.Since(r.start) > maxTime {
		r.out = true
		r.opaque("budget spent: only part of the call was read")
		return false
	}
	return true
}

func (r *run) opaque(note string) {
	r.ev.Opaque = true
	if len(r.ev.Notes) < 8 {
		r.ev.Notes = append(r.ev.Notes, note)
	}
}

// shell reads the text of a bash call.
func (r *run) shell(text string) {
	u := &unit{src: text, own: true}
	if !r.source(u, frame{unit: u, exact: true, name: "bash"}, val{}).parsed {
		r.rawCommand(text, frame{unit: u})
	}
}

type sourced struct {
	out    val
	parsed bool
}

// source parses and reads shell source. An unparsed rest is read line by line, so that one bad
// line does not hide the others; the event is opaque then.
func (r *run) source(u *unit, f frame, in val) sourced {
	if r.depth >= maxDepth || !r.spend() {
		r.opaque("nested too deep")
		return sourced{}
	}
	if !parseable(u.src) {
		r.opaque("too long or nested too deep to parse")
		return sourced{}
	}
	r.depth++
	defer func() { r.depth-- }()
	f.unit = u
	tree, err := r.parse(u.src)
	if err == nil {
		return sourced{r.stmts(tree.Stmts, f, in), true}
	}
	r.opaque("not valid bash: " + clip(err.Error(), 120))
	return sourced{val{}, r.salvage(u.src, f)}
}

// salvage reads the lines of source that does not parse as a whole, each alone.
func (r *run) salvage(src string, f frame) bool {
	f.exact = false
	found := false
	for i, line := range strings.Split(src, "\n") {
		if i > 200 || strings.TrimSpace(line) == "" {
			continue
		}
		u := &unit{src: line}
		tree, err := r.parse(line)
		if err != nil {
			r.rawCommand(line, f)
			continue
		}
		g := f
		g.unit = u
		r.stmts(tree.Stmts, g, val{})
		found = true
	}
	return found
}

// rawCommand records text that was not parsed as one opaque command.
func (r *run) rawCommand(text string, f frame) {
	if len(r.ev.Commands) >= maxCommands {
		return
	}
	words := strings.Fields(clip(text, maxValue))
	cmd := rules.Command{Line: clip(text, maxValue), Opaque: true, Via: f.via}
	if len(words) > 0 {
		cmd.Program = base(words[0])
		cmd.Args = words[1:min(len(words), 1+maxWords)]
	}
	r.paths(&cmd, plainArgs(words), f)
	cmd.Net = r.netOf(cmd.Line)
	r.ev.Commands = append(r.ev.Commands, cmd)
}

// parse parses shell source with the call's parser, whose buffers it keeps from one to the next.
func (r *run) parse(src string) (tree *syntax.File, err error) {
	if r.parser == nil {
		r.parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	return r.parser.Parse(strings.NewReader(src), "")
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

func (r *run) stmts(list []*syntax.Stmt, f frame, in val) val {
	out := known("")
	for _, s := range list {
		o := r.stmt(s, f, in)
		if !o.known {
			out.known = false
		}
		out.s = clip(out.s+o.s, maxValue)
	}
	return out
}

// stmt reads one statement; the value is its standard output, where the text alone decides it.
func (r *run) stmt(s *syntax.Stmt, f frame, in val) val {
	if s == nil || !r.spend() {
		return val{}
	}
	stdin, outs, reads := r.redirects(s, f, in)
	f.reads = append(f.reads[:len(f.reads):len(f.reads)], reads...)
	f.files = append(f.files[:len(f.files):len(f.files)], outs...)
	out := r.command(s.Cmd, s, f, stdin)
	for i := range outs {
		r.written(&outs[i], out)
	}
	if len(outs) > 0 {
		return known("")
	}
	return out
}

func (r *run) command(c syntax.Command, s *syntax.Stmt, f frame, in val) val {
	switch c := c.(type) {
	case nil:
		r.redirectOnly(s, f)
		return known("")
	case *syntax.CallExpr:
		return r.call(c, s, f, in)
	case *syntax.BinaryCmd:
		return r.binary(c, f, in)
	case *syntax.Subshell:
		sc := r.st.enter()
		defer r.st.leave(sc)
		return r.stmts(c.Stmts, f, in)
	case *syntax.Block:
		return r.stmts(c.Stmts, f, in)
	case *syntax.IfClause:
		r.ifClause(c, f, in)
	case *syntax.WhileClause:
		r.whileLoop(c, f, in)
	case *syntax.ArithmCmd:
		r.arithmEffects(c.X, f)
		return known("")
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			r.arithmEffects(x, f)
		}
		return known("")
	case *syntax.ForClause:
		return r.forClause(c, f, in)
	case *syntax.CaseClause:
		for _, item := range c.Items {
			r.stmts(item.Stmts, f, in)
		}
	case *syntax.FuncDecl:
		if c.Name != nil {
			r.st.funcs.set(c.Name.Value, function{c.Body, f.unit})
		}
		return known("")
	case *syntax.DeclClause:
		r.declare(c, s, f)
		return known("")
	case *syntax.TimeClause:
		return r.stmt(c.Stmt, f, in)
	case *syntax.CoprocClause:
		return r.stmt(c.Stmt, f, in)
	case *syntax.TestClause:
		r.testClause(c, f)
		return known("")
	case *syntax.TestDecl:
		return r.stmt(c.Body, f, in)
	}
	return val{}
}

func (r *run) binary(c *syntax.BinaryCmd, f frame, in val) val {
	if c.Op != syntax.Pipe && c.Op != syntax.PipeAll {
		a := r.stmt(c.X, f, in)
		b := r.stmt(c.Y, f, in)
		if a.known && b.known && c.Op == syntax.AndStmt {
			return known(a.s + b.s)
		}
		if c.Op == syntax.OrStmt {
			return a
		}
		return val{}
	}
	sc := r.st.enter()
	from := len(r.ev.Commands)
	left := r.stmt(c.X, f, in)
	to := len(r.ev.Commands)
	r.st.leave(sc)
	right := r.stmt(c.Y, f, left)
	r.st.leave(sc)
	r.carryPiped(from, to)
	return right
}

func (r *run) ifClause(c *syntax.IfClause, f frame, in val) {
	for c != nil {
		r.stmts(c.Cond, f, in)
		r.stmts(c.Then, f, in)
		c = c.Else
	}
}

// loopInput reads the body of a while loop: "while read x" over known lines runs it per line.
func (r *run) loopInput(c *syntax.WhileClause, f frame, in val) {
	names := readNames(c.Cond)
	if len(names) == 0 || !in.known {
		for _, name := range names {
			r.st.vars.set(name, variable{})
		}
		r.stmts(c.Do, f, in)
		return
	}
	for i, line := range strings.Split(strings.TrimRight(in.s, "\n"), "\n") {
		if i >= maxLoop {
			break
		}
		assignRead(r.st, names, line)
		r.stmts(c.Do, f, val{})
	}
}

// forClause runs the body once for each item that is known, and once with the item unknown where
// one is not.
func (r *run) forClause(c *syntax.ForClause, f frame, in val) val {
	g := f
	g.exact = false
	if cs, ok := c.Loop.(*syntax.CStyleLoop); ok {
		r.cStyleLoop(cs, c.Do, f, in)
		return val{}
	}
	it, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		r.stmts(c.Do, g, in)
		return val{}
	}
	var items []arg
	if it.InPos.IsValid() {
		items = r.fields(it.Items, f)
	} else {
		items = plainArgs(f.params)
	}
	items = append(items, r.hiddenOnes(items)...)
	items = r.globbed(items)
	out := known("")
	for i, item := range items {
		if i >= maxLoop || !r.spend() {
			break
		}
		r.st.vars.set(it.Name.Value, variable{value: item.s, known: !item.opaque})
		o := r.stmts(c.Do, g, in)
		out = val{out.s + o.s, out.known && o.known && len(out.s) < maxValue}
	}
	if len(items) > maxLoop {
		out = val{}
	}
	return out
}

func (r *run) testClause(c *syntax.TestClause, f frame) {
	var words []*syntax.Word
	syntax.Walk(c, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok && len(words) < 32 {
			words = append(words, w)
			return false
		}
		return true
	})
	args := append([]arg{{s: "["}}, r.fields(words, f)...)
	g := f
	g.exact = false
	r.simple(args, nil, g, val{})
}
