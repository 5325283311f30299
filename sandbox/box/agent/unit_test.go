package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"proctor/sandbox"
	"proctor/sandbox/box/wire"
)

func TestParseExports(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                    nil,
		"declare -x A=\"1\"\n":                {"A=1"},
		"declare -rx A=\"1\"\ndeclare -x B\n": {"A=1"},
		"export A=\"1\"\nexport B\n":          {"A=1"},
		"export A='it'\"'\"'s\nx'\n":          {"A=it's\nx"},
		"declare -x A=\"a\\\"\\$\\`\\\\b\nc\"\ndeclare -x B=\"\"\n": {"A=a\"$`\\b\nc", "B="},
		"declare -x A=$'a\\n\\t\\'\\\\\\001\\E\\303\\251'\n":        {"A=a\n\t'\\\x01\x1bé"},
		"typeset -x A=bare\n": {"A=bare"},
	} {
		got, err := parseExports(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"declare -x", "declare -x A=\"open", "export A='open", "declare -x A=$'open", "declare -x A=$'\\q'\n", "1A=2\n", "=\n", "export A"} {
		if got, err := parseExports(text); err == nil {
			t.Errorf("%q gave %q", text, got)
		}
	}
}

func FuzzParseExports(f *testing.F) {
	f.Add("declare -x A=\"a\\\"b\"\nexport B='c'\ndeclare -x C=$'\\n'\n")
	f.Fuzz(func(t *testing.T, text string) {
		env, err := parseExports(text)
		if err != nil {
			return
		}
		for _, entry := range env {
			if name, _, ok := strings.Cut(entry, "="); !ok || !isName(name) {
				t.Errorf("%q", entry)
			}
		}
	})
}

func TestParseStat(t *testing.T) {
	tail := " S 7 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8765 1 2 3"
	for name, comm := range map[string]string{"plain": "cat", "brackets": ") R 1 (", "blanks": "a b", "newline": "a\nb", "empty": ""} {
		p, ok := parseStat([]byte("42 (" + comm + ")" + tail))
		if !ok || p.pid != 42 || p.parent != 7 || p.state != 'S' || p.start != 8765 {
			t.Errorf("%s: %+v %t", name, p, ok)
		}
	}
	for _, text := range []string{"", "42", "42 (x)", "(x) S 1", "x (y)" + tail, "42 (x) SS 7" + tail} {
		if p, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q gave %+v", text, p)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) b) S 7 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8765 1 2 3"))
	f.Fuzz(func(t *testing.T, text []byte) { parseStat(text) })
}

// Who belongs to a call, case by case.
func TestBelongs(t *testing.T) {
	tg := &tagger{}
	tg.issued[5], tg.issued[6], tg.issued[7] = true, true, true
	tg.live[6] = &group{tag: 6}
	g := &group{tag: 7, root: 10, sinceT: 100, lastPID: 50}
	all := map[int]proc{}
	add := func(pid, parent int, start uint64, tag int) proc {
		all[pid] = proc{pid: pid, parent: parent, state: 'S', start: start, tag: tag}
		return all[pid]
	}
	add(10, 1, 5, 7)   // the shell
	add(20, 10, 60, 5) // a server of an earlier call
	add(30, 1, 70, 6)  // a background command with a handle
	for name, c := range map[string]struct {
		p          proc
		foreground bool
		want       bool
	}{
		"the shell":                   {all[10], true, false},
		"an earlier server":           {all[20], true, false},
		"its new worker":              {add(60, 20, 200, 5), true, false},
		"its worker of our tag":       {add(61, 20, 200, 7), true, false},
		"its orphaned worker":         {add(62, 1, 200, 5), true, false},
		"a child":                     {add(63, 10, 200, 7), true, true},
		"a grandchild":                {add(64, 63, 200, 7), true, true},
		"a child of another tag":      {add(65, 63, 200, 99), true, true},
		"an orphan":                   {add(66, 1, 200, 7), true, true},
		"an orphan of an unknown tag": {add(67, 1, 200, 99), true, true},
		"of the kernel's tag":         {add(68, 1, 200, defaultTag), true, true},
		"the same, of a handle":       {add(69, 1, 200, 99), false, false},
		"an orphan without a tag":     {add(70, 1, 200, -1), true, true},
		"of the same tick, before":    {add(49, 10, 100, 7), true, false},
		"of the same tick, after":     {add(51, 10, 100, 7), true, true},
		"a new child of the handle":   {add(71, 30, 200, 6), true, false},
		"its orphan":                  {add(72, 1, 200, 6), true, false},
	} {
		if got := tg.belongs(c.p, g, all, c.foreground); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	zombie := proc{pid: 80, parent: 10, state: 'Z', start: 200, tag: 7}
	if tg.belongs(zombie, g, all, true) {
		t.Error("a zombie cannot be killed")
	}
}

func TestOOMCounter(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"cgroup 2": {"memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n", "memory.max": "1073741824\n"},
		"cgroup 1": {"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "memory/memory.limit_in_bytes": "1073741824\n"},
	} {
		root := t.TempDir()
		for path, text := range files {
			_ = os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755)
			if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		o := newOOMCounter(root)
		if n, w := o.count(), o.words(); n != 2 || !strings.Contains(w, "memory limit of 1024 MiB") {
			t.Errorf("%s: %d, %q", name, n, w)
		}
	}
	o := newOOMCounter(t.TempDir())
	if n := o.count(); n != -1 || !strings.Contains(o.words(), "memory") {
		t.Errorf("without a cgroup: %d %q", n, o.words())
	}
}

func TestResultsAreBounded(t *testing.T) {
	r := newResults()
	for n := range 3 * keepResults {
		id := fmt.Sprint(n)
		e, first, err := r.join(id, wire.KindDo)
		if !first || err != nil {
			t.Fatal(first, err)
		}
		if r.state(id) != sandbox.CallRunning {
			t.Fatal(r.state(id))
		}
		r.finish(id, e, wire.Frame{Payload: make([]byte, 16<<10)})
	}
	if len(r.byID) > keepResults || r.bytes > keepBytes || len(r.ended) > keepResults {
		t.Errorf("%d results of %d bytes", len(r.byID), r.bytes)
	}
	if s := r.state("0"); s != sandbox.CallDone {
		t.Errorf("a dropped call is %q", s)
	}
	if _, first, err := r.join("0", wire.KindDo); first || err == nil {
		t.Error("a dropped call could run again")
	}
	if _, first, err := r.join(fmt.Sprint(3*keepResults-1), wire.KindDo); first || err != nil {
		t.Errorf("the latest: %t %v", first, err)
	}
}

func TestCollector(t *testing.T) {
	dir := t.TempDir()
	const limit = sandbox.OutputLimit
	for _, size := range []int{0, 1, limit - 1, limit, limit + 1, limit + 100, 2*limit + 7, 5 * limit} {
		for _, chunk := range []int{1, 1000, 4096, 65536, 1 << 20} {
			if chunk == 1 && size > limit+100 {
				continue
			}
			whole := make([]byte, size)
			for i := range whole {
				whole[i] = "0123456789abcde\n"[i%16]
			}
			c := newCollector(spillFolder{dir: dir})
			for i := 0; i < size; i += chunk {
				_, _ = c.Write(whole[i:min(i+chunk, size)])
			}
			shown, truncated := c.take()
			if truncated != (size > limit) {
				t.Fatalf("%d bytes by %d: truncated %t", size, chunk, truncated)
			}
			if !truncated {
				if string(shown) != string(whole) {
					t.Errorf("%d bytes by %d came back as %d", size, chunk, len(shown))
				}
				continue
			}
			checkSpilled(t, whole, string(shown))
			if again, _ := c.take(); len(again) > 0 {
				t.Errorf("taken twice: %q", again)
			}
		}
	}
}

func checkSpilled(t *testing.T, whole []byte, shown string) {
	t.Helper()
	i := strings.Index(shown, "[")
	var left int
	var path string
	if _, err := fmt.Sscanf(shown[i:], "[%d bytes left out here; the whole output is in the file %s ]", &left, &path); err != nil {
		t.Fatalf("notice %q: %v", shown[i:min(len(shown), i+100)], err)
	}
	head, tail := shown[:i], shown[i+strings.Index(shown[i:], "\n")+1:]
	if !strings.HasPrefix(string(whole), head) || !strings.HasSuffix(string(whole), tail) || len(head)+left+len(tail) != len(whole) ||
		len(head)+len(tail) < sandbox.OutputLimit-2*lineSlack || !strings.HasSuffix(head, "\n") {
		t.Errorf("of %d bytes head %d, left out %d, tail %d", len(whole), len(head), left, len(tail))
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != string(whole) {
		t.Errorf("the file holds %d of %d bytes, %v", len(kept), len(whole), err)
	}
	_ = os.Remove(path)
}

func TestCollectorWithoutDisk(t *testing.T) {
	c := newCollector(spillFolder{dir: "/no/such/folder"})
	_, _ = c.Write(make([]byte, 3*sandbox.OutputLimit))
	if shown, truncated := c.take(); !truncated || !strings.Contains(string(shown), "failed") {
		t.Errorf("truncated %t, %d bytes", truncated, len(shown))
	}
}

func TestCutsAtCharacters(t *testing.T) {
	euro := strings.Repeat("€", 40000)
	for n := range 4 {
		head, tail := cutHead([]byte(euro[:3000+n])), cutTail([]byte(euro[n:]))
		if len(head)%3 != 0 || len(tail)%3 != 0 {
			t.Errorf("%d: %d %d", n, len(head), len(tail))
		}
	}
	if got := cutHead([]byte("\xff\xff")); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestEnv(t *testing.T) {
	env := baseEnv([]string{"A=1", "A=2", "PAGER=less", "bad", "=x", "N=a\x00b"}, identity{name: "u", home: "/h"})
	for name, want := range map[string]string{"A": "1", "PAGER": "less", "GIT_PAGER": "cat", "HOME": "/h", "USER": "u", "SHELL": firstShell(), "N": "", "bad": ""} {
		if got := lookup(env, name); got != want {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
}

func TestResolveUser(t *testing.T) {
	for spec, want := range map[string][2]uint32{"": {0, 0}, "root": {0, 0}, "0": {0, 0}, "daemon": {1, 1}, "1": {1, 1}, "4242": {4242, 0},
		"4242:4343": {4242, 4343}, "daemon:root": {1, 0}} {
		id, err := resolveUser(spec)
		if err != nil || id.uid != want[0] || id.gid != want[1] {
			t.Errorf("%q: %+v %v", spec, id, err)
		}
	}
	for _, spec := range []string{"no-such", "daemon:no-such", "-1", "99999999999"} {
		if id, err := resolveUser(spec); err == nil {
			t.Errorf("%q: %+v", spec, id)
		}
	}
}
