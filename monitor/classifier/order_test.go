package classifier

import (
	"math"
	"strings"
	"testing"

	"proctor/monitor/classifier/convnet"
	"proctor/rules"
)

func TestRowsOfHashes(t *testing.T) {
	for _, rows := range []uint64{convnet.WordRows, convnet.FactRows} {
		seen := map[uint16]bool{}
		for h := range uint32(1 << 18) {
			row := rowOfHash(h*16777619, rows)
			if row == 0 || uint64(row) >= rows {
				t.Fatalf("row %d of %d", row, rows)
			}
			seen[row] = true
		}
		if len(seen) != int(rows)-1 {
			t.Errorf("%d of %d rows are used", len(seen), rows)
		}
	}
	for _, h := range []uint32{0, 1, math.MaxUint32} {
		if row := rowOfHash(h, convnet.WordRows); row == 0 || row >= convnet.WordRows {
			t.Errorf("%d: row %d", h, row)
		}
	}
}

// What a task asks for is read in its order where it is short enough for an order.
func TestAsksAreTheWordsOfAShortText(t *testing.T) {
	vars := rules.Vars{"instruction": {"Undo the skip, then undo the mark, in tests/test_a.py."}, "test_paths": {"tests/test_a.py"}}
	if got := len(NamesOf("/w", vars).Read(&rules.Event{}).Asks); got != 12 { // commas and stops are words; the file is one
		t.Errorf("%d words", got)
	}
	vars["instruction"] = []string{"Undo " + strings.Repeat("the mark of it and ", 3)}
	for i := range maxAsking {
		vars["instruction"][0] += " w" + strings.Repeat("x", i)
	}
	if d := NamesOf("/w", vars).Read(&rules.Event{}); len(d.Asks) > 0 || len(d.Told) <= maxAsking {
		t.Errorf("a report of %d words asks for %d", len(d.Told), len(d.Asks))
	}
}

// Networks say something of a text of one window, and nothing of a longer one.
func TestLongTextsAreReadByTheBagAlone(t *testing.T) {
	m, bag := Core(), *Core() //nolint:govet // its locks are not in use
	bag.nets = []*convnet.Net{}
	line := "git log --all --oneline | grep -i 'fix the parser' && git show origin/main:src/parser.py\n"
	long := Document{Text: strings.Repeat(line, 2*(window+overlap)/len(line))}
	if a, b := m.Suspicion(long), bag.Suspicion(long); a != b {
		t.Errorf("%v with networks, %v without", a, b)
	}
}
