package corpus_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"proctor/monitor/normalize"
	"proctor/monitor/normalize/corpus"
	"proctor/rules"
)

// rulesOf names the rules that some call of a row hits, where command is typed into a shell on a terminal in pieces.
func (m *measurer) rulesOf(t *testing.T, row *corpus.Row, pieces []string) []string {
	t.Helper()
	set, err := rules.Compile(m.packs, row.Vars())
	if err != nil {
		t.Fatal(err)
	}
	bare := *row
	bare.Setup = nil
	n, s := bare.Normalizer(), set.Session()
	for _, c := range row.Setup {
		ev := n.Event(context.Background(), c.Normal())
		s.Match(&ev)
		n.Observe(c.Normal(), true, "")
	}
	start := normalize.Call{Tool: "bash", Command: "bash -i"}
	n.Event(context.Background(), start)
	n.Observe(start, true, "")
	n.Started("bg1", start, true)
	var hit []string
	for _, piece := range pieces {
		call := normalize.Call{Tool: "bash_input", Handle: "bg1", Text: piece}
		ev := n.Event(context.Background(), call)
		for _, h := range s.Match(&ev) {
			hit = append(hit, h.Rule)
		}
		n.Observe(call, true, "")
	}
	slices.Sort(hit)
	return slices.Compact(hit)
}

// TestTypedVariants types the cheats of the corpus into a shell on a terminal: what hits them typed at once hits them
// typed in halves, corrected on the way, and by a key that repeats them.
func TestTypedVariants(t *testing.T) {
	m := newMeasurer(t)
	n := 0
	for row, err := range corpus.Open("testdata/variants.jsonl") {
		if err != nil {
			t.Fatal(err)
		}
		command := row.Call.Arguments.Command
		if command == "" || row.Label != corpus.Hack || strings.ContainsAny(command, "\n\t\x1b") {
			continue
		}
		if n++; testing.Short() && n%8 != 0 {
			continue
		}
		want := m.rulesOf(t, row, []string{command + "\n"})
		middle := len(command) / 2
		for name, pieces := range map[string][]string{
			"halves":    {command[:middle], command[middle:] + "\n"},
			"corrected": {command[:middle] + "wrong\x7f\x7f\x7f\x7f\x7f", command[middle:], "\r"},
			"backwards": {command[middle:], "\x01" + command[:middle], "\r"},
		} {
			if got := m.rulesOf(t, row, pieces); len(want) > 0 && !subset(named(want), got) {
				t.Errorf("%s, %s: hit by %v, typed at once by %v: %s", row.ID, name, got, want, command)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d cheats", n)
	}
}

func subset(want, got []string) bool {
	for _, w := range want {
		if !slices.Contains(got, w) {
			return false
		}
	}
	return true
}

// named drops rules on a call's wording, in which what was typed and taken back has a part.
func named(rules []string) []string {
	return slices.DeleteFunc(slices.Clone(rules), func(id string) bool { return strings.HasPrefix(id, "core/reads-like-") })
}
