package decoy

import (
	"path"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"proctor/rules"
	"proctor/sandbox"
)

// eventOf makes the facts of text that a decoy needs, for literal words: one command per call
// expression, with the span as the normaliser gives it.
func eventOf(t *testing.T, text, cwd string, hidden ...string) rules.Event {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("test command does not parse: %v", err)
	}
	ev := rules.Event{Call: rules.CallFacts{Tool: "bash", Text: text, Cwd: cwd}}
	syntax.Walk(file, func(n syntax.Node) bool {
		stmt, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		call, ok := stmt.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		ev.Commands = append(ev.Commands, commandOf(stmt, call, dirAt(&ev, len(ev.Commands)), hidden))
		return true
	})
	return ev
}

func commandOf(stmt *syntax.Stmt, call *syntax.CallExpr, cwd string, hidden []string) rules.Command {
	var words []string
	for _, w := range call.Args {
		words = append(words, strings.ReplaceAll(plainWord(w), "$PWD", cwd))
	}
	c := rules.Command{Program: path.Base(words[0]), Args: words[1:], Line: strings.Join(words, " "),
		Span: rules.Span{Start: int(call.Pos().Offset()), End: int(call.End().Offset()), Exact: true}}
	if c.Program == "git" {
		c.Git.Verb = gitVerb(c.Args)
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && !strings.ContainsAny(w, "$#") && c.Program != "echo" {
			c.Paths = append(c.Paths, absOf(cwd, w))
		}
	}
	for _, r := range stmt.Redirs {
		if r.Hdoc != nil {
			c.Stdin = plainWord(r.Hdoc)
			continue
		}
		p := absOf(cwd, plainWord(r.Word))
		if r.Op == syntax.RdrIn {
			c.Paths = append(c.Paths, p)
		} else if r.Op == syntax.RdrOut || r.Op == syntax.AppOut {
			c.Writes = append(c.Writes, p)
		}
	}
	for _, p := range c.Paths {
		for _, h := range hidden {
			if under(p, h) || !strings.Contains(p, "$") && !under(h, p) && globLeads(p, h) {
				c.Hidden = append(c.Hidden, p)
			}
		}
	}
	return c
}

func absOf(cwd, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(cwd, p)
}

func plainWord(w *syntax.Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if v, ok := q.(*syntax.ParamExp); ok && v.Param.Value == "PWD" {
					b.WriteString("$PWD")
				}
				if l, ok := q.(*syntax.Lit); ok {
					b.WriteString(l.Value)
				}
			}
		}
	}
	return b.String()
}

// blocked is the request for a call whose commands of program are blocked as class.
func blocked(ev rules.Event, class string, match func(rules.Command) bool) Request {
	req := Request{Ordinal: 1, Tool: "bash", Event: ev, Call: sandbox.Call{Op: sandbox.OpShell, Command: ev.Call.Text}}
	for i, c := range ev.Commands {
		if match(c) {
			req.Hits = append(req.Hits, rules.Hit{Rule: "core/some-rule", Class: class, Entity: "command", Index: i})
		}
	}
	return req
}

func callOf(text string) sandbox.Call { return sandbox.Call{Op: sandbox.OpShell, Command: text} }
