package box_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// withoutBash is an agent in an image that has sh only.
func withoutBash(t *testing.T) *testBox {
	bash, err := filepath.EvalSymlinks("/bin/bash")
	if err != nil {
		t.Fatal(err)
	}
	b := startBox(t, bash)
	c, err := b.dial(box.Init{Workdir: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Shell() != "/bin/sh" {
		t.Fatalf("the shell is %s", c.Shell())
	}
	b.Client = c
	return b
}

func TestFallsBackToSh(t *testing.T) {
	steps := map[string][]step{
		"state":    {{"mkdir -p '/tmp/p é' && cd '/tmp/p é'; plain='a  b'; export EXPORTED='c*'; f() { echo f; }", "", nil, 0}, {`echo "$PWD|$plain|$EXPORTED"; f`, "/tmp/p é|a  b|c*\nf\n", nil, 0}},
		"codes":    {{"(exit 42)", "", nil, 42}, {"echo $?", "42\n", nil, 0}, {"false", "", nil, 1}, {"echo $?", "1\n", nil, 0}},
		"exit":     {keep, {"echo before; exit 3; echo never", "before\n", nil, 3}, kept, alive},
		"kill":     {keep, {"kill -9 $$", "", nil, 137}, kept, alive},
		"syntax":   append([]step{keep}, after([]string{"if then )) fi", "echo 'open", "cat <<EOF\nopen", "set -e; false"}, kept, alive, clean)...),
		"redirect": after([]string{"exec >/dev/null 2>&1", "exec </dev/zero", "exec 7>&- 8>&- 9>&-"}, clean, match("wc -c", "^ *0\n$", 0)),
		"pid 1":    after([]string{"kill -TERM 1", "kill -KILL 1"}, alive),
		"long":     {{"x=" + strings.Repeat("a", 1<<20) + "; echo ${#x}", "1048576\n", nil, 0}, alive},
		"env": {{`export A='x'"'"'y
z"$'`, "", nil, 0}, {"kill -9 $$", "", nil, 137}, {`echo "$A"`, "x'y\nz\"$\n", nil, 0}},
		"children": {match("sh -c 'ls /proc/self/fd | wc -l'", `^ *4\n$`, 0)},
	}
	for name, s := range steps {
		t.Run(name, func(t *testing.T) { withoutBash(t).talk(s...) })
	}
	b := withoutBash(t)
	b.talk(keep)
	if res := b.do(sandbox.Call{Op: sandbox.OpShell, Command: "sleep 300", Timeout: 300 * time.Millisecond}); !res.TimedOut {
		t.Errorf("%+v", res)
	}
	b.talk(kept)
	bg := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "echo $KEPT; exit 5"})
	if out, last := b.poll(bg.Handle); out != "a b\n" || code(last) != 5 {
		t.Errorf("%q, exit %d", out, code(last))
	}
}

func TestNoShell(t *testing.T) {
	var hide []string
	for _, path := range []string{"/bin/bash", "/bin/sh"} {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Fatal(err)
		}
		hide = append(hide, real)
	}
	if _, err := os.Stat("/usr/local/bin/bash"); err == nil {
		hide = append(hide, "/usr/local/bin/bash")
	}
	began := time.Now()
	_, err := startBox(t, hide...).dial(box.Init{})
	if !errors.Is(err, sandbox.ErrNoShell) {
		t.Errorf("%v; want ErrNoShell", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s to say so", took)
	}
}
