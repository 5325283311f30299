package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"proctor/rules"
)

const reloadPack = `pack: mine
version: 1.0.0
rules:
  - id: frobs
    title: Frobs
    severity: low
    category: fabrication
    owner: x
    why: x
    false_positives: [x]
    match: {any: [{command: {program: WORD}}]}
    tests: {flag: [{bash: "WORD a"}, {bash: "WORD b"}, {bash: "WORD c"}], pass: [{bash: ls}, {bash: pwd}, {bash: id}]}
`

// writePack writes the pack with a program in it.
func writePack(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// openSource makes a source over one pack that flags the program frob.
func openSource(t *testing.T) (*packSource, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	writePack(t, file, strings.ReplaceAll(reloadPack, "WORD", "frob"))
	packs, err := packsWithCore([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	return newPackSource(packs, []string{file}, slog.New(slog.DiscardHandler)), file
}

// hits counts what a set makes of a program.
func hits(t *testing.T, s *packSource, digest, program string) int {
	t.Helper()
	set, ok := s.at(digest)
	if !ok {
		t.Fatalf("no set %s", digest)
	}
	m, err := set.Session(rules.TestTask())
	if err != nil {
		t.Fatal(err)
	}
	return len(m.Match(&rules.Event{Commands: []rules.Command{{Program: program, Line: program + " a"}}}))
}

func TestReloadPinsNewRolloutsOnly(t *testing.T) {
	s, file := openSource(t)
	before := s.current().Digest()
	running, err := s.current().Session(rules.TestTask())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.ReloadPacks(t.Context()); err != nil || got.Changed || got.Digest != before {
		t.Fatalf("the same packs again: %+v %v", got, err)
	}
	writePack(t, file, strings.ReplaceAll(reloadPack, "WORD", "gronk"))
	got, err := s.ReloadPacks(t.Context())
	if err != nil || !got.Changed || got.Previous != before || got.Digest == before || got.Digest != s.current().Digest() {
		t.Fatalf("%+v %v", got, err)
	}
	if n := len(running.Match(&rules.Event{Commands: []rules.Command{{Program: "frob", Line: "frob"}}})); n != 1 {
		t.Errorf("a running rollout has %d hits", n)
	}
	for _, c := range []struct {
		digest, program string
		want            int
	}{{before, "frob", 1}, {before, "gronk", 0}, {got.Digest, "frob", 0}, {got.Digest, "gronk", 1}} {
		if n := hits(t, s, c.digest, c.program); n != c.want {
			t.Errorf("%s under %s: %d hits", c.program, c.digest, n)
		}
	}
	if list := s.PackList(); len(list.Packs) != 2 || list.Packs[1].ID != "mine" || list.Packs[1].Active != 1 {
		t.Errorf("%+v", list)
	}
}

func TestReloadKeepsTheOldOnAnyError(t *testing.T) {
	s, file := openSource(t)
	before := s.current().Digest()
	good := strings.ReplaceAll(reloadPack, "WORD", "gronk")
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":         {"pack: [", "mine.yaml:"},
		"unknown key":     {strings.Replace(good, "why: x", "whx: x", 1), "mine.yaml:9:5: error"},
		"bad expression":  {strings.Replace(good, "{program: gronk}", "{line|re: '('}", 1), "bad-regex"},
		"undefined list":  {strings.Replace(good, "{program: gronk}", "{program|list: nope}", 1), "undefined-list"},
		"failing test":    {strings.Replace(good, "bash: ls", "bash: gronk d", 1), "test-fails"},
		"file gone":       {"", "mine.yaml"},
		"core's own rule": {strings.Replace(good, "pack: mine", "pack: core", 1), "core"},
	} {
		t.Run(name, func(t *testing.T) {
			writePack(t, file, c.text)
			if name == "file gone" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.ReloadPacks(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if s.current().Digest() != before || hits(t, s, before, "frob") != 1 {
				t.Error("the packs in use changed")
			}
		})
	}
}

func TestReloadOnHangup(t *testing.T) {
	s, file := openSource(t)
	before := s.current().Digest()
	writePack(t, file, strings.ReplaceAll(reloadPack, "WORD", "gronk"))
	s.onHangup(t.Context())
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if s.current().Digest() != before {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the packs stay after SIGHUP")
}
