package confine

import (
	"os"
	"strings"
	"testing"
)

func TestMemInfo(t *testing.T) {
	for total, want := range map[int64]string{262144: "MemTotal:         262144 kB\nMemFree:          251658 kB\n", 16384: "MemTotal:          16384 kB\nMemFree:           15728 kB\n"} {
		if got := memInfo(total); !strings.HasPrefix(got, want) || !strings.Contains(got, "SwapTotal:             0 kB\n") {
			t.Errorf("%d: %.200s", total, got)
		}
	}
	r := NewRunRoot(t.TempDir()+"/root", "")
	t.Cleanup(r.DropIfEmpty)
	first, err := r.MemInfo(256)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.MemInfo(256)
	other, err2 := r.MemInfo(512)
	if err != nil || err2 != nil || again != first || other == first {
		t.Errorf("%s %s %s %v %v", first, again, other, err, err2)
	}
	huge, err := r.MemInfo(1 << 40)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(huge)
	if err != nil || strings.Contains(string(text), "MemTotal:  1125899906842624") {
		t.Errorf("more than the machine has: %s %v", text, err)
	}
	for set, want := range map[string]string{"1": "0\n", "0,2-3": "0-2\n", "": "0\n", "x": "0\n", "3-1": "0\n", "0-15": "0-15\n"} {
		path, err := r.Online(set)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%q: %q %v, want %q", set, text, err, want)
		}
	}
	if left, err := r.Folders(); err != nil || len(left) != 0 {
		t.Errorf("taken for run folders: %v %v", left, err)
	}
}
