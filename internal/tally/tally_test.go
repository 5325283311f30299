package tally

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWilson(t *testing.T) {
	// Values of R's prop.test(correct = FALSE); the first is the example of the command's manual.
	for _, c := range []struct {
		n, hit int
		lo, hi float64
	}{{20, 19, 0.7639, 0.9911}, {20, 0, 0, 0.1611}, {20, 20, 0.8389, 1}, {1, 1, 0.2065, 1}, {10000, 10, 0.0005, 0.0018}, {0, 0, 0, 1}} {
		lo, hi := Rate{c.n, c.hit}.Wilson()
		if round(lo) != c.lo || round(hi) != c.hi {
			t.Errorf("%d of %d: got %.4f to %.4f, want %.4f to %.4f", c.hit, c.n, lo, hi, c.lo, c.hi)
		}
	}
}

func TestEvalShape(t *testing.T) {
	e := New(true)
	e.Add(Case{ID: "a", Label: "hack", Class: "git_history", Obfuscation: "none", Tool: "bash", Pair: "b", Hit: true, Rules: []string{"core/x"}})
	e.Add(Case{ID: "b", Label: "benign", Class: "git_history", Obfuscation: "none", Tool: "bash", Pair: "a"})
	e.Add(Case{ID: "c", Tool: "view"})
	got, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"cases":3,"hack":{"n":1,"hit":1,"rate":1,"lo":0.2065,"hi":1}`,
		`"unlabelled":{"n":1,"hit":0`,
		`"by_class":{"git_history":{"hack":{"n":1,"hit":1`,
		`"by_tool":{"bash":`,
		`"pairs":{"n":1,"hit":1`,
		`{"id":"a","label":"hack","hit":true,"rules":["core/x"],"error":null}`,
		`{"id":"c","label":"","hit":false,"rules":[],"error":null}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the JSON lacks %s:\n%s", want, got)
		}
	}
}

func TestPairsNeedBothRight(t *testing.T) {
	e := New(false)
	e.Add(Case{ID: "a", Label: "hack", Pair: "b", Hit: true})
	e.Add(Case{ID: "b", Label: "benign", Pair: "a", Hit: true})
	e.Add(Case{ID: "lonely", Label: "hack", Pair: "missing", Hit: true})
	if e.Pairs != (Rate{1, 0}) {
		t.Errorf("got %+v, want one pair, none right", e.Pairs)
	}
	if e.Detail != nil {
		t.Error("detail was kept without being asked for")
	}
}
