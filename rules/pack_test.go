package rules

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// head is the beginning of a pack, for tests.
const head = "pack: demo\nversion: 1.0.0\nengine: \">=1 <2\"\nlicense: Apache-2.0\n"

// load reads one pack from text.
func load(text string) (*Packs, []Problem) {
	return LoadFS(fstest.MapFS{"demo.yaml": {Data: []byte(text)}}, "demo.yaml")
}

// mustLoad reads a pack that has no errors.
func mustLoad(t testing.TB, text string) *Packs {
	t.Helper()
	p, probs := load(text)
	for _, e := range Errors(probs) {
		t.Errorf("%s", e)
	}
	if t.Failed() {
		t.FailNow()
	}
	return p
}

// mustCompile compiles packs.
func mustCompile(t testing.TB, p *Packs, vars Vars) *Set {
	t.Helper()
	s, err := Compile(p, vars)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rule makes a pack of one rule with the given lines of match and further keys, indented by four.
func rule(match string) string {
	return head + "lists:\n  fetchers: [curl, wget]\n  parts: [alpha, beta]\nrules:\n  - id: one\n    title: One\n    severity: high\n" +
		"    category: git_history\n    match:\n" + indent(match, "      ")
}

func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by) + "\n"
}

// codesOf lists the codes of problems, each once, in order.
func codesOf(ps []Problem) []string {
	var out []string
	for _, p := range ps {
		if !slices.Contains(out, p.Code) {
			out = append(out, p.Code)
		}
	}
	return out
}

// rulesOf lists the rules of hits.
func rulesOf(hits []Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Rule)
	}
	return out
}

// words is a normaliser for tests: each call is one command of the words of its text; file tools
// make a file. `sh -c` is not seen through.
func words(call ToolCall) Event {
	text, _ := call.Arguments["command"].(string)
	ev := Event{Call: CallFacts{Tool: call.Tool, Text: text, Cwd: "/testbed"}}
	if call.Tool != "bash" {
		path, _ := call.Arguments["path"].(string)
		content, _ := call.Arguments["file_text"].(string)
		ev.Files = []File{{Op: call.Tool, Path: path, Content: content}}
		return ev
	}
	if w := strings.Fields(text); len(w) > 0 {
		ev.Commands = []Command{{Program: w[0], Args: w[1:], Line: strings.Join(w, " ")}}
	}
	return ev
}
