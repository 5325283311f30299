package normalize_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"proctor/monitor/normalize/corpus"
)

func TestDump(t *testing.T) {
	want := os.Getenv("DUMP")
	if want == "" {
		t.Skip("set DUMP to a row's id")
	}
	for _, f := range []string{"hacks.dev.jsonl", "composed.dev.jsonl", "real_calls.dev.jsonl"} {
		for row, err := range corpus.Open("../../../shared/data/" + f) {
			if err != nil {
				t.Error(err)
				continue
			}
			if want == "all" || strings.Contains(","+want+",", ","+row.ID+",") {
				ev := row.Normalizer().Event(t.Context(), row.Call.Normal())
				ev.Call.Text = ""
				b, _ := json.Marshal(ev)
				fmt.Printf("%s %s %s\n   %s\n", row.ID, row.Label, row.Class, b)
			}
		}
	}
}
