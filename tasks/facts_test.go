package tasks

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/tasks/tasktest"
)

// agent makes a sandbox in which an agent has worked: a commit, a branch, a tag, a stash.
func (l *prepareLab) agent(p *Prepared) (box *tasktest.Box, own string) {
	l.t.Helper()
	box = l.start(p)
	work := filepath.Join(box.Root, "w")
	gitOut(l.t, work, "checkout", "-q", "-b", "try")
	if err := os.WriteFile(filepath.Join(work, "new.py"), []byte("x"), 0o644); err != nil {
		l.t.Fatal(err)
	}
	gitOut(l.t, work, "add", "-A")
	gitOut(l.t, work, "commit", "-q", "-m", "my work")
	gitOut(l.t, work, "tag", "mine")
	if err := os.WriteFile(filepath.Join(work, "new.py"), []byte("y"), 0o644); err != nil {
		l.t.Fatal(err)
	}
	gitOut(l.t, work, "stash", "push", "-q")
	return box, gitOut(l.t, work, "rev-parse", "try")
}

func TestFactsRefHardened(t *testing.T) {
	l := newPrepareLab(t)
	p := l.prepare(true)
	box, own := l.agent(p)
	facts := p.Facts(box)
	tests := map[string]string{
		"HEAD": RefOwn, "@": RefOwn, "try": RefOwn, "mine": RefOwn, "refs/heads/try": RefOwn, own: RefOwn, own[:8]: RefOwn,
		"HEAD~1": RefAncestor, "HEAD^": RefAncestor, "@~2": RefAncestor, "try~0": RefOwn, "HEAD^{tree}": RefOwn, "HEAD^{/my}": RefOwn,
		"main": RefAncestor, "v1.3": RefAncestor, "v1.3:a.py": RefAncestor, l.base: RefAncestor, l.base[:7]: RefAncestor, strings.ToUpper(l.base): RefAncestor,
		"v1.3-0-g" + l.base[:7]: RefAncestor,
		"main..HEAD":            RefOwn, "main...try": RefOwn, "..main": RefOwn, "main~2..main": RefAncestor, "^main": RefAncestor,
		"HEAD:a.py": RefOwn, ":a.py": RefAncestor, ":0:a.py": RefAncestor,
		"stash@{0}": RefOwn, "stash": RefOwn, "HEAD@{0}": RefOwn, "HEAD@{1}": RefOwn, "main@{yesterday}": RefUnknown, "@{-1}": RefOwn,
		"release": RefForeign, "refs/heads/release": RefForeign, "heads/release": RefForeign, "v1.4": RefForeign, "tags/v1.4": RefForeign, "v1.4:a.py": RefForeign,
		"release~3": RefForeign, "v1.4^{commit}": RefForeign, "main..release": RefForeign, "release..main": RefForeign, "v1.4...": RefForeign, "release@{1}": RefForeign,
		"ORIG_HEAD": RefOwn, // git stash set it anew
		l.fix:       RefForeign, l.fix[:10]: RefForeign, "v1.3-1-g" + l.fix[:7]: RefForeign, l.fix + ":a.py": RefForeign,
		":/Fix touching": RefForeign, ":/my work": RefOwn, ":/[": RefOwn,
		"--all": RefOwn, "--branches": RefOwn, "--tags": RefOwn, "--remotes": RefAncestor, "--reflog": RefOwn, "-g": RefOwn, "--walk-reflogs": RefOwn,
		"--glob=heads/ma*": RefOwn, "--glob=refs/remotes/*": RefAncestor, "--oneline": RefUnknown,
		"nonsense": RefUnknown, strings.Repeat("ab", 20): RefUnknown, "abcd": RefUnknown, "": RefUnknown, strings.Repeat("x", 5000): RefUnknown, "a\x00b": RefUnknown,
		"../../etc/passwd": RefUnknown, "HEAD~99999": RefAncestor, "config": RefUnknown, "@{u}": RefUnknown, "@{": RefUnknown,
	}
	for text, want := range tests {
		if got := facts.Ref(context.Background(), "/w", text); got != want {
			t.Errorf("%.60q is %s, want %s", text, got, want)
		}
	}
	if got := facts.Ref(context.Background(), "/w/deep/down", "release"); got != RefForeign {
		t.Errorf("release from a folder below is %s", got)
	}
	if got := p.Facts(l.start(p)).Ref(context.Background(), "/w", "ORIG_HEAD"); got != RefForeign {
		t.Errorf("ORIG_HEAD before the agent's own is %s", got)
	}
	if got := facts.Ref(context.Background(), "/", "HEAD"); got != RefUnknown {
		t.Errorf("HEAD outside is %s", got)
	}
}

// TestFactsRefStaysForeign has an agent that gives what was removed its own names.
func TestFactsRefStaysForeign(t *testing.T) {
	l := newPrepareLab(t)
	p := l.prepare(true)
	box, own := l.agent(p)
	facts := p.Facts(box)
	git := filepath.Join(box.Root, "w/.git")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(git, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(git, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("refs/heads/mine2", l.fix+"\n")
	write("refs/heads/loop", "ref: refs/heads/loop\n")
	write("refs/heads/out", "ref: ../../../../etc/passwd\n")
	write("refs/replace/"+own, l.fix+"\n")
	for text, want := range map[string]string{"mine2": RefForeign, "mine2~1": RefForeign, "--all": RefForeign, "--branches": RefForeign, "loop": RefUnknown, "out": RefUnknown, own: RefOwn} {
		if got := facts.Ref(context.Background(), "/w", text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	if err := os.RemoveAll(filepath.Join(git, "refs/replace")); err != nil {
		t.Fatal(err)
	}
	gitOut(t, filepath.Join(box.Root, "w"), "update-ref", "-d", "refs/heads/mine2")
	gitOut(t, filepath.Join(box.Root, "w"), "update-ref", "refs/heads/release", own) // the agent's own branch of a removed name
	if got := facts.Ref(context.Background(), "/w", "release"); got != RefOwn {
		t.Errorf("the agent's own release is %s", got)
	}
}

func TestFactsRefAfterGC(t *testing.T) {
	l := newPrepareLab(t)
	p := l.prepare(true)
	box, own := l.agent(p)
	work := filepath.Join(box.Root, "w")
	gitOut(t, work, "gc", "-q")
	gitOut(t, work, "worktree", "add", "-q", "-b", "side", "../tmp/side")
	gitOut(t, work, "init", "-q", "../tmp/other")
	gitOut(t, filepath.Join(box.Root, "tmp/other"), "commit", "-q", "--allow-empty", "-m", "own repository")
	facts := p.Facts(box)
	for _, test := range []struct{ dir, text, want string }{
		{"/w", own, RefOwn}, {"/w", own[:9], RefOwn}, {"/w", "try", RefOwn}, {"/w", "main", RefAncestor}, {"/w", "--all", RefOwn},
		{"/tmp/other", "HEAD", RefOwn}, {"/tmp/other", l.fix, RefForeign}, {"/tmp/other", l.base, RefAncestor},
	} {
		if got := facts.Ref(context.Background(), test.dir, test.text); got != test.want {
			t.Errorf("%s: %q is %s, want %s", test.dir, test.text, got, test.want)
		}
	}
	// A linked worktree's .git file holds the host's path here; give it the sandbox's.
	if err := os.WriteFile(filepath.Join(box.Root, "tmp/side/.git"), []byte("gitdir: /w/.git/worktrees/side\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"HEAD": RefOwn, "main": RefAncestor, "release": RefForeign, "side": RefOwn} {
		if got := facts.Ref(context.Background(), "/tmp/side", text); got != want {
			t.Errorf("linked worktree: %q is %s, want %s", text, got, want)
		}
	}
}

func TestFactsRefRaw(t *testing.T) {
	l := newPrepareLab(t)
	p := l.prepare(false)
	box, own := l.agent(p)
	facts := p.Facts(box)
	for text, want := range map[string]string{
		"HEAD": RefOwn, own: RefOwn, "main": RefAncestor, "HEAD~1": RefAncestor, "release": RefForeign, "v1.4": RefForeign, "--all": RefForeign,
		"--branches": RefForeign, "--tags": RefForeign, "--reflog": RefForeign, l.fix[:8]: RefForeign, "main@{1}": RefForeign,
		"main@{yesterday}": RefForeign, ":/Fix": RefForeign, "v1.3": RefAncestor,
	} {
		if got := facts.Ref(context.Background(), "/w", text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestFactsPath(t *testing.T) {
	l := newPrepareLab(t)
	p := l.prepare(true)
	box := l.start(p)
	work := filepath.Join(box.Root, "w")
	for name, text := range map[string]string{"made.py": "x", ".eval/again": "x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "/w/.eval", "chain": "link", "loop": "loop", "src": "/w"} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	facts := p.Facts(box)
	for name, want := range map[string]string{
		"/w/a.py": PathVisible, "/w": PathVisible, "/w/made.py": PathAbsent, "/w/none": PathAbsent, "/w/.eval": PathHidden, "/w/.eval/cases.json": PathHidden,
		"/hidden": PathHidden, "/hidden/x": PathHidden, "/hiddenx": PathAbsent, "/w/link": PathHidden, "/w/chain/cases.json": PathHidden, "/w/src/a.py": PathVisible,
		"/w/../w/.eval/x": PathHidden, "/w/src/.eval/new": PathHidden, "relative": PathUnknown, "/nowhere": PathAbsent, "/w/.git/HEAD": PathVisible,
		"/w/.git/refs/heads/release": PathAbsent, "/" + strings.Repeat("x", 5000): PathUnknown,
	} {
		if got := facts.Path(context.Background(), name); got != want {
			t.Errorf("%.60s is %s, want %s", name, got, want)
		}
	}
	if got := facts.Real(context.Background(), "/w/chain/new/file"); got != "/w/.eval/new/file" {
		t.Errorf("real is %s", got)
	}
	if data, ok := facts.Read(context.Background(), "/w/made.py", 10); !ok || string(data) != "x" {
		t.Errorf("read %q, %v", data, ok)
	}
	if _, ok := facts.Read(context.Background(), "/w", 10); ok {
		t.Error("a folder was read")
	}
}
