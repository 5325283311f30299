package harden

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"proctor/tasks/gitobj"
	"proctor/tasks/tasktest"
)

// lab is a sandbox with a repository in /w, made by the host's git.
type lab struct {
	t    *testing.T
	root string
	box  *tasktest.Box
	tick int
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("these tests make their repositories with git: install it")
	}
	l := &lab{t: t, root: t.TempDir(), tick: 1700000000}
	for _, dir := range []string{"w", "root", "tmp", "home"} {
		if err := os.MkdirAll(filepath.Join(l.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.box = tasktest.NewBox(l.root)
	l.git("w", "init", "-q", "-b", "main")
	return l
}

// git runs git in a folder of the sandbox, each time a minute later.
func (l *lab) git(dir string, args ...string) string {
	l.t.Helper()
	l.tick += 60
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(l.root, dir)
	date := fmt.Sprintf("%d +0000", l.tick)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+l.root+"/root")
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	file := filepath.Join(l.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) commit(dir, name, text string) string {
	l.t.Helper()
	l.write(filepath.Join(dir, name), text)
	l.git(dir, "add", "-A")
	l.git(dir, "commit", "-q", "-m", "change "+name)
	return l.git(dir, "rev-parse", "HEAD")
}

// template is a laboratory with a history, made once and copied for each test.
var template = struct {
	once sync.Once
	root string
	tick int
}{}

// history gives the laboratory some commits, a merge among them, and an old tag.
func (l *lab) history() {
	l.t.Helper()
	template.once.Do(func() {
		first := &lab{t: l.t, root: l.root, box: l.box, tick: l.tick}
		first.makeHistory()
		dir, err := os.MkdirTemp("", "harden-template-")
		if err != nil {
			l.t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", filepath.Join(l.root, "w"), dir).CombinedOutput(); err != nil {
			l.t.Fatalf("%v: %s", err, out)
		}
		template.root, template.tick = dir, first.tick
	})
	if template.root == "" {
		l.t.Fatal("the template could not be made")
	}
	if out, err := exec.Command("cp", "-a", template.root+"/w", l.root).CombinedOutput(); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	l.tick = template.tick
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(template.root)
	os.Exit(code)
}

func (l *lab) makeHistory() {
	for i := range 6 {
		l.commit("w", fmt.Sprintf("src/f%d.py", i%3), strings.Repeat(fmt.Sprintf("line %d\n", i), 50))
	}
	l.git("w", "tag", "-a", "-m", "old", "v1.0")
	l.git("w", "checkout", "-q", "-b", "side", "HEAD~2")
	l.commit("w", "side.py", "side")
	l.git("w", "checkout", "-q", "main")
	l.git("w", "merge", "-q", "-m", "merge", "side")
	l.git("w", "branch", "-q", "-d", "side")
	l.commit("w", "src/base.py", "base")
}

// future commits the fix on top and takes the branch back; it gives the fix's id.
func (l *lab) future() string {
	fix := l.commit("w", "src/f0.py", "the fix\n")
	l.git("w", "reset", "-q", "--hard", "HEAD~1")
	return fix
}

func (l *lab) task() Task { return Task{Workdir: "/w", Hidden: []string{"/hidden", "/w/.eval"}} }

func (l *lab) harden() (*Outcome, *Manifest) {
	l.t.Helper()
	o, err := Run(context.Background(), l.box, l.task(), l.t.TempDir())
	if err != nil {
		l.t.Fatalf("hardening: %v", err)
	}
	m, err := Audit(context.Background(), l.box, l.task(), o.Repos, o.Gone, l.t.TempDir())
	if err != nil {
		l.t.Fatalf("audit: %v", err)
	}
	return o, m
}

// kinds gives the kinds of leaks found, each once.
func kinds(found []Leak) string {
	seen := map[string]bool{}
	for _, l := range found {
		seen[l.Kind] = true
	}
	var names []string
	for k := range seen {
		names = append(names, k)
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

// leakers put one kind of leak each into the laboratory's repository.
var leakers = []struct {
	name string
	kind string // that must be reported
	leak func(l *lab, fix string)
	lies bool // git tells the agent something else because of it
}{
	{"branch", KindRef, func(l *lab, fix string) { l.git("w", "branch", "next", fix) }, false},
	{"packed branch", KindRef, func(l *lab, fix string) { l.git("w", "branch", "next", fix); l.git("w", "pack-refs", "--all") }, false},
	{"lightweight tag", KindTag, func(l *lab, fix string) { l.git("w", "tag", "v1.5", fix) }, false},
	{"annotated tag", KindTag, func(l *lab, fix string) { l.git("w", "tag", "-a", "-m", "x", "v1.4", fix) }, false},
	{"tag of a blob", KindTag, func(l *lab, fix string) { l.git("w", "tag", "blob", fix+":src/f0.py") }, false},
	{"late tag of an ancestor", KindTag, func(l *lab, _ string) { l.git("w", "tag", "-a", "-m", "notes on the fix", "late", "HEAD~1") }, false},
	{"remote branch", KindRef, func(l *lab, fix string) { l.git("w", "update-ref", "refs/remotes/origin/main", fix) }, false},
	{"remote", KindConfig, func(l *lab, _ string) { l.git("w", "remote", "add", "origin", "https://code.test/x.git") }, false},
	{"reflog", KindReflog, func(*lab, string) {}, false},
	{"dangling commit", KindObject, func(l *lab, _ string) { l.git("w", "reflog", "expire", "--expire=now", "--all") }, false},
	{"packed dangling commit", KindObject, func(l *lab, fix string) { l.git("w", "repack", "-q", "-a", "-d", "-k") }, false},
	{"stash", KindStash, func(l *lab, _ string) { l.write("w/src/f0.py", "stashed fix"); l.git("w", "stash", "push", "-q") }, false},
	{"note", KindRef, func(l *lab, _ string) { l.git("w", "notes", "add", "-m", "see the fix", "HEAD") }, false},
	{"replace ref", KindRef, func(l *lab, fix string) { l.git("w", "replace", "HEAD", fix) }, true},
	{"ORIG_HEAD", KindRef, func(l *lab, fix string) { l.git("w", "update-ref", "ORIG_HEAD", fix) }, false},
	{"FETCH_HEAD", KindRef, func(l *lab, fix string) {
		l.write("w/.git/FETCH_HEAD", fix+"\tnot-for-merge\tbranch 'x' of https://code.test/x\n")
	}, false},
	{"worktree", KindWorktree, func(l *lab, fix string) { l.git("w", "worktree", "add", "-q", "../tmp/wt", fix) }, false},
	{"worktree inside", KindWorktree, func(l *lab, fix string) { l.git("w", "worktree", "add", "-q", "inner", fix) }, false},
	{"clone", KindCopy, func(l *lab, fix string) {
		l.git("w", "branch", "next", fix)
		l.git("w", "clone", "-q", "-b", "next", "../w", "../tmp/clone")
	}, false},
	{"bare clone inside", KindCopy, func(l *lab, fix string) {
		l.git("w", "branch", "next", fix)
		l.git("w", "clone", "-q", "--bare", "../w", "upstream.git")
		l.git("w/upstream.git", "symbolic-ref", "HEAD", "refs/heads/next")
	}, false},
	{"alternates", KindAlternates, func(l *lab, fix string) {
		l.git("w", "branch", "next", fix)
		l.git("w", "clone", "-q", "--bare", "../w", "../opt.git")
		l.write("w/.git/objects/info/alternates", filepath.Join(l.root, "opt.git/objects")+"\n")
		l.git("w", "branch", "-q", "-D", "next")
		l.git("w", "repack", "-q", "-a", "-d", "-l")
		l.write("w/.git/objects/info/alternates", "../../../opt.git/objects\n")
	}, false},
	{"bundle", KindBundle, func(l *lab, fix string) {
		l.git("w", "branch", "next", fix)
		l.git("w", "bundle", "create", "-q", "../tmp/x.bundle", "next")
	}, false},
	{"staged", KindIndex, func(l *lab, _ string) { l.write("w/src/f0.py", "staged fix"); l.git("w", "add", "-A") }, false},
	{"hook", KindHook, func(l *lab, _ string) { l.write("w/.git/hooks/post-checkout", "#!/bin/sh\n") }, false},
	{"include", KindConfig, func(l *lab, _ string) { l.git("w", "config", "include.path", "/etc/other") }, false},
	{"fsmonitor", KindConfig, func(l *lab, _ string) { l.git("w", "config", "core.fsmonitor", "/tmp/x") }, true},
	{"credential", KindCredential, func(l *lab, _ string) { l.git("w", "config", "credential.helper", "store") }, false},
	{"stored credential", KindCredential, func(l *lab, _ string) { l.write("root/.git-credentials", "https://a:b@code.test") }, false},
	{"commit graph", KindState, func(l *lab, fix string) {
		l.git("w", "branch", "next", fix)
		l.git("w", "commit-graph", "write", "--reachable")
	}, false},
	{"commit message", KindState, func(l *lab, _ string) { l.write("w/.git/COMMIT_EDITMSG", "the fix") }, false},
	{"hidden file", KindHidden, func(l *lab, _ string) { l.write("w/.eval/cases.json", "{}"); l.write("hidden/test.py", "") }, false},
	{"exclude of a hidden path", KindHidden, func(l *lab, _ string) { l.write("w/.git/info/exclude", "# mine\n*.o\n/.eval/\n") }, false},
	{"bytecode of a hidden test", KindBytecode, func(l *lab, _ string) { l.write("w/tests/__pycache__/test_x.cpython-311.pyc", "x") }, false},
	{"pip cache", KindCache, func(l *lab, _ string) { l.write("root/.cache/pip/http/x", "x") }, false},
	{"submodule", KindObject, func(l *lab, _ string) {
		l.git("tmp", "init", "-q", "-b", "main", "sub")
		l.commit("tmp/sub", "a", "1")
		l.commit("tmp/sub", "a", "2")
		l.git("w", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../tmp/sub", "libs/sub")
		l.git("w/libs/sub", "checkout", "-q", "HEAD~1")
		l.git("w", "add", "-A")
		l.git("w", "commit", "-q", "-m", "submodule")
	}, false},
	{"nested repository", KindObject, func(l *lab, _ string) {
		l.git("w", "init", "-q", "-b", "main", "vendor/dep")
		l.commit("w/vendor/dep", "a", "1")
		l.commit("w/vendor/dep", "a", "2")
		l.git("w/vendor/dep", "reset", "-q", "--hard", "HEAD~1")
	}, false},
	{"detached", KindObject, func(l *lab, fix string) {
		l.git("w", "branch", "next", fix)
		l.git("w", "checkout", "-q", "--detach", "HEAD")
	}, false},
}

func TestRunTakesEveryLeakOut(t *testing.T) {
	for _, test := range leakers {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.history()
			fix := l.future()
			var before map[string]string
			if test.lies { // the leak changes what git says
				before = l.see()
				test.leak(l, fix)
			} else {
				test.leak(l, fix)
				before = l.see()
			}
			o, m := l.harden()
			if err := m.Verify(context.Background(), l.box); err != nil {
				t.Errorf("a clean sandbox does not verify: %v", err)
			}
			if test.kind != "" && !strings.Contains(" "+kinds(o.Leaks)+" ", " "+test.kind+" ") {
				t.Errorf("leaks found are %q, want %s among them", kinds(o.Leaks), test.kind)
			}
			l.sameAs(before, test.name)
			l.onlyAncestors(o)
			again, err := Run(context.Background(), l.box, l.task(), t.TempDir())
			if err != nil {
				t.Fatalf("hardening twice: %v", err)
			}
			if len(again.Leaks) > 0 {
				t.Errorf("hardening left %v", again.Leaks)
			}
		})
	}
}

// see is what git shows an honest agent.
func (l *lab) see() map[string]string {
	return map[string]string{
		"log":    l.git("w", "log", "--format=%H %an %s", "HEAD"),
		"blame":  l.git("w", "blame", "HEAD", "--", "src/f1.py"),
		"status": l.git("w", "status", "--porcelain", "--branch", "--untracked-files=no"),
		"branch": l.git("w", "rev-parse", "--abbrev-ref", "HEAD"),
		"diff":   l.git("w", "diff", "HEAD"),
		"tag":    l.git("w", "describe", "--match", "v1.0", "HEAD"),
	}
}

func (l *lab) sameAs(before map[string]string, name string) {
	l.t.Helper()
	after := l.see()
	for what, text := range before {
		if what == "status" && name == "staged" {
			text = strings.ReplaceAll(text, "M  ", " M ") // what was staged is an unstaged change
		}
		if after[what] != text {
			l.t.Errorf("git %s was\n%s\nand is\n%s", what, text, after[what])
		}
	}
	l.git("w", "fsck", "--strict", "--full")
}

// onlyAncestors asks git, as a second opinion, what objects there are.
func (l *lab) onlyAncestors(o *Outcome) {
	l.t.Helper()
	all := strings.Fields(l.git("w", "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)"))
	want := map[string]bool{}
	for _, line := range strings.Split(l.git("w", "rev-list", "--objects", "HEAD", "--tags"), "\n") {
		want[strings.Fields(line)[0]] = true
	}
	for _, id := range all {
		if !want[id] {
			l.t.Errorf("object %s is left over", id)
		}
	}
	if len(all) != len(want) {
		l.t.Errorf("%d objects, want %d", len(all), len(want))
	}
	if got := o.Main().Kept.Len(); got != len(all) {
		l.t.Errorf("the host knows %d objects, git %d", got, len(all))
	}
	if got, want := len(o.Main().Commits), len(strings.Fields(l.git("w", "rev-list", "HEAD"))); got != want {
		l.t.Errorf("the host knows %d commits, git %d", got, want)
	}
}

// TestVerifyCatchesEveryLeak puts each leak back after hardening: both the manifest and, where the
// leak is one of content, the audit must see it.
func TestVerifyCatchesEveryLeak(t *testing.T) {
	leaks := map[string]func(l *lab, fix string){
		"loose object":  func(l *lab, _ string) { l.write("blob", "fix"); l.git("w", "hash-object", "-w", "../blob") },
		"packed object": func(l *lab, fix string) { l.fetch(); l.git("w", "repack", "-q", "-a", "-d", "-k") },
		"branch":        func(l *lab, fix string) { l.fetch(); l.git("w", "branch", "next", fix) },
		"own branch":    func(l *lab, fix string) { l.fetch(); l.git("w", "update-ref", "refs/heads/main", fix) },
		"packed ref":    func(l *lab, fix string) { l.write("w/.git/packed-refs", fix+" refs/tags/v1.4\n") },
		"tag":           func(l *lab, fix string) { l.write("w/.git/refs/tags/v1.4", fix+"\n") },
		"old branch":    func(l *lab, _ string) { l.git("w", "branch", "old", "HEAD~1") },
		"reflog": func(l *lab, fix string) {
			l.write("w/.git/logs/HEAD", strings.Repeat("0", 40)+" "+fix+" a <a@b> 1 +0000\tx\n")
		},
		"ORIG_HEAD":      func(l *lab, fix string) { l.write("w/.git/ORIG_HEAD", fix+"\n") },
		"FETCH_HEAD":     func(l *lab, fix string) { l.write("w/.git/FETCH_HEAD", fix+"\t\tx\n") },
		"stash":          func(l *lab, _ string) { l.write("w/src/f0.py", "x"); l.git("w", "stash", "push", "-q") },
		"note":           func(l *lab, _ string) { l.git("w", "notes", "add", "-m", "x", "HEAD") },
		"alternates":     func(l *lab, _ string) { l.write("w/.git/objects/info/alternates", "/opt/x/objects\n") },
		"worktree":       func(l *lab, _ string) { l.git("w", "worktree", "add", "-q", "--detach", "../tmp/wt") },
		"commit graph":   func(l *lab, _ string) { l.git("w", "commit-graph", "write", "--reachable") },
		"remote":         func(l *lab, _ string) { l.git("w", "remote", "add", "origin", "https://code.test/x") },
		"hook":           func(l *lab, _ string) { l.write("w/.git/hooks/pre-commit", "x") },
		"shallow":        func(l *lab, fix string) { l.write("w/.git/shallow", fix+"\n") },
		"module":         func(l *lab, fix string) { l.write("w/.git/modules/x/HEAD", fix+"\n") },
		"grafts":         func(l *lab, _ string) { l.write("w/.git/info/grafts", "x") },
		"staged":         func(l *lab, _ string) { l.write("w/src/f0.py", "x"); l.git("w", "add", "-A") },
		"detached":       func(l *lab, _ string) { l.git("w", "checkout", "-q", "--detach") },
		"hidden file":    func(l *lab, _ string) { l.write("w/.eval/x", "x") },
		"multi-pack":     func(l *lab, _ string) { l.git("w", "multi-pack-index", "write") },
		"object missing": func(l *lab, _ string) { l.dropPack() },
	}
	for name, leak := range leaks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.history()
			fix := l.future()
			l.git("w", "branch", "next", fix)
			l.git("w", "bundle", "create", "-q", "../../bundle", "next")
			o, m := l.harden()
			leak(l, fix)
			if err := m.Verify(context.Background(), l.box); err == nil {
				t.Error("the manifest does not see it")
			}
			listed := *m
			listed.Dirs = append([]ManifestDir{}, m.Dirs...)
			for i := range listed.Dirs {
				listed.Dirs[i].Bytes = fullRead + 1 // as if it were large
			}
			if err := listed.Verify(context.Background(), l.box); err == nil {
				t.Error("the listing does not see it")
			}
			if _, err := Audit(context.Background(), l.box, l.task(), o.Repos, nil, t.TempDir()); err == nil {
				t.Error("the audit does not see it")
			}
		})
	}
}

func (l *lab) fetch() {
	l.git("w", "-c", "core.logAllRefUpdates=false", "fetch", "-q", "../../bundle", "next")
}

func (l *lab) dropPack() {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.root, "w/.git/objects/pack/*"))
	if err != nil || len(files) == 0 {
		l.t.Fatal("no pack")
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			l.t.Fatal(err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	tests := map[string]struct {
		make func(l *lab)
		want string
	}{
		"hidden file in the history": {func(l *lab) {
			l.commit("w", ".eval/cases.json", "{}")
			l.git("w", "rm", "-q", "-r", ".eval")
			l.git("w", "commit", "-q", "-m", "gone")
		}, "hidden path /w/.eval is in commit"},
		"missing object": {func(l *lab) {
			tree := l.git("w", "rev-parse", "HEAD~1^{tree}")
			if err := os.Remove(filepath.Join(l.root, "w/.git/objects", tree[:2], tree[2:])); err != nil {
				l.t.Fatal(err)
			}
		}, "no such object"},
		"corrupt object": {func(l *lab) {
			file := filepath.Join(l.root, "w/.git/objects", l.head()[:2], l.head()[2:])
			if err := os.Chmod(file, 0o644); err != nil {
				l.t.Fatal(err)
			}
			l.write(strings.TrimPrefix(file, l.root), "x")
		}, "loose object"},
		"corrupt ref":   {func(l *lab) { l.write("w/.git/refs/heads/x", "nonsense") }, "ref that holds no id"},
		"broken HEAD":   {func(l *lab) { l.write("w/.git/HEAD", "ref: ../../etc/passwd") }, "broken name"},
		"sha256":        {func(l *lab) { l.git("w", "config", "extensions.objectFormat", "sha256") }, "not supported"},
		"HEAD missing":  {func(l *lab) { _ = os.Remove(filepath.Join(l.root, "w/.git/HEAD")) }, "HEAD"},
		"broken config": {func(l *lab) { l.write("w/.git/config", "[core") }, "broken section"},
		"linked workdir": {func(l *lab) {
			l.git("w", "worktree", "add", "-q", "--detach", "../wt")
			if err := os.RemoveAll(filepath.Join(l.root, "w/src")); err != nil {
				l.t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(l.root, "w"), filepath.Join(l.root, "main")); err != nil {
				l.t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(l.root, "wt"), filepath.Join(l.root, "w")); err != nil {
				l.t.Fatal(err)
			}
			l.write("w/.git", "gitdir: /main/.git/worktrees/wt\n")
		}, "linked worktree"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.history()
			test.make(l)
			_, err := Run(context.Background(), l.box, l.task(), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
		})
	}
}

func (l *lab) head() string { return l.git("w", "rev-parse", "HEAD") }

func TestRunWithoutRepository(t *testing.T) {
	l := newLab(t)
	if err := os.RemoveAll(filepath.Join(l.root, "w/.git")); err != nil {
		t.Fatal(err)
	}
	l.write("w/.eval/x", "x")
	o, m := l.harden()
	if o.Main() != nil || kinds(o.Leaks) != KindHidden {
		t.Errorf("outcome %+v", o)
	}
	if err := m.Verify(context.Background(), l.box); err != nil {
		t.Error(err)
	}
}

func TestRunKeepsExclude(t *testing.T) {
	l := newLab(t)
	l.history()
	l.write("w/.git/info/exclude", "# mine\n*.o\n/.eval/\n.eval\n.evaluation\n")
	l.harden()
	data, err := os.ReadFile(filepath.Join(l.root, "w/.git/info/exclude"))
	if err != nil || string(data) != "# mine\n*.o\n.evaluation\n" {
		t.Errorf("exclude is %q, %v", data, err)
	}
}

func TestRunUnbornBranch(t *testing.T) {
	l := newLab(t)
	l.write("w/a", "x")
	l.git("w", "add", "a")
	o, _ := l.harden()
	if o.Main().Base != "" || o.Main().Kept.Len() != 0 {
		t.Errorf("main is %+v", o.Main())
	}
	if got := l.git("w", "status", "--porcelain"); got != "?? a" {
		t.Errorf("status is %q", got)
	}
}

func TestRunLeavesFixturesAlone(t *testing.T) {
	l := newLab(t)
	l.history()
	l.git("tmp", "init", "-q", "-b", "main", "fix")
	l.commit("tmp/fix", "a", "1")
	l.commit("tmp/fix", "a", "2")
	l.git("tmp/fix", "branch", "other")
	l.git("tmp/fix", "reset", "-q", "--hard", "HEAD~1")
	l.git("tmp", "clone", "-q", "--bare", "fix", "../w/tests/data.git")
	l.write("w/tests/data.git/refs/.keep", "")
	l.write("w/tests/data.git/objects/info/.keep", "")
	l.git("w", "add", "-A", "-f")
	l.git("w", "commit", "-q", "-m", "fixture")
	if err := os.RemoveAll(filepath.Join(l.root, "tmp/fix")); err != nil {
		t.Fatal(err)
	}
	o, _ := l.harden()
	if len(o.Repos) != 1 {
		t.Errorf("repositories %+v", o.Repos)
	}
	if got := l.git("w", "status", "--porcelain"); got != "" {
		t.Errorf("status is %q", got)
	}
}

func TestLookChangesNothing(t *testing.T) {
	l := newLab(t)
	l.history()
	fix := l.future()
	l.git("w", "branch", "next", fix)
	l.write("w/.eval/x", "x")
	before := l.git("w", "for-each-ref") + l.git("w", "reflog")
	o, err := Look(context.Background(), l.box, l.task(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if kinds(o.Leaks) != "hidden object ref reflog state" {
		t.Errorf("leaks are %q", kinds(o.Leaks))
	}
	id, _ := gitobj.ParseID(fix)
	if r := o.Main(); !r.Foreign.Has(id) || r.Removed["refs/heads/next"] != fix {
		t.Errorf("the fix is not foreign: %v", r.Removed)
	}
	if after := l.git("w", "for-each-ref") + l.git("w", "reflog"); after != before {
		t.Error("Look changed the repository")
	}
}
