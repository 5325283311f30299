package tasks

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/tasks/tasktest"
)

// leaky is the script that makes a work tree whose repository leaks the fix.
const leaky = `set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main .
for i in 1 2 3 4; do echo "line $i" >> a.py; git add -A; GIT_AUTHOR_DATE="170000000$i +0000" GIT_COMMITTER_DATE="170000000$i +0000" git commit -q -m "change $i"; done
git tag v1.3
git checkout -q -b release
echo "the answer" > a.py; git commit -q -a -m "Fix touching intervals"; git tag v1.4
git checkout -q main; git reset -q --hard release; git reset -q --hard v1.3; git stash list >/dev/null
mkdir -p .eval; echo '{"secret": 1}' > .eval/cases.json
`

type prepareLab struct {
	t        *testing.T
	engine   *tasktest.Engine
	preparer *Preparer
	task     *Task
	created  atomic.Int64
	fix      string
	base     string
}

func newPrepareLab(t *testing.T) *prepareLab {
	t.Helper()
	dir := t.TempDir()
	image := filepath.Join(dir, "image", "w")
	for _, d := range []string{image, filepath.Join(dir, "image", "tmp"), filepath.Join(dir, "image", "root")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", leaky)
	cmd.Dir = image
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making the work tree needs git: %v: %s", err, out)
	}
	l := &prepareLab{t: t}
	l.fix, l.base = gitOut(t, image, "rev-parse", "release"), gitOut(t, image, "rev-parse", "main")
	l.engine = &tasktest.Engine{Dir: filepath.Join(dir, "engine"), Created: func(*tasktest.Box) { l.created.Add(1) }}
	if err := l.engine.AddImage("leaky:1", filepath.Join(dir, "image")); err != nil {
		t.Fatal(err)
	}
	l.preparer = &Preparer{Engine: l.engine, Dir: filepath.Join(dir, "cache")}
	l.task = &Task{ID: "t", Instruction: "i", Image: "leaky:1", Workdir: "/w", HiddenPaths: []string{"/w/.eval", "/hidden"}}
	return l
}

func gitOut(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (l *prepareLab) prepare(hardening bool) *Prepared {
	l.t.Helper()
	p, err := l.preparer.Prepare(context.Background(), l.task, hardening)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// start makes a sandbox of a prepared image, as a rollout would.
func (l *prepareLab) start(p *Prepared) *tasktest.Box {
	l.t.Helper()
	sess, err := l.engine.Create(context.Background(), sandbox.Spec{Image: p.Image.Ref, Workdir: "/w"})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = sess.Close(context.Background()) })
	return sess.(*tasktest.Box)
}

func TestPrepareHardens(t *testing.T) {
	l := newPrepareLab(t)
	p := l.prepare(true)
	if p.Base != l.base || !p.Hardened || p.Raw.Ref != "leaky:1" || p.Image.Ref == p.Raw.Ref {
		t.Errorf("prepared is %+v", p)
	}
	box := l.start(p)
	if err := p.Verify(context.Background(), box); err != nil {
		t.Errorf("verify: %v", err)
	}
	work := filepath.Join(box.Root, "w")
	if _, err := os.Stat(filepath.Join(work, ".eval")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf(".eval: %v", err)
	}
	if out := gitOut(t, work, "log", "--all", "--format=%s"); strings.Contains(out, "Fix") || strings.Count(out, "\n") != 3 {
		t.Errorf("log --all is %q", out)
	}
	text := ""
	for _, leak := range p.Leaks {
		text += leak.String() + "\n"
	}
	for _, want := range []string{"refs/heads/release", "refs/tags/v1.4", "reflog", ".eval"} {
		if !strings.Contains(text, want) {
			t.Errorf("leaks lack %s:\n%s", want, text)
		}
	}
	if err := os.WriteFile(filepath.Join(work, ".git/ORIG_HEAD"), []byte(l.fix+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(context.Background(), box); !errors.Is(err, ErrNotClean) {
		t.Errorf("verify of a sandbox with a leak: %v", err)
	}
	if open, _ := l.engine.List(context.Background()); len(open) != 1 {
		t.Errorf("sandboxes left: %v", open)
	}
}

func TestPrepareRawIsUntouched(t *testing.T) {
	l := newPrepareLab(t)
	p := l.prepare(false)
	if p.Image.Digest != p.Raw.Digest || p.Image.Ref != "leaky:1" || p.Base != l.base || len(p.Leaks) == 0 {
		t.Errorf("prepared is %+v", p)
	}
	box := l.start(p)
	if err := p.Verify(context.Background(), box); err != nil {
		t.Errorf("verify: %v", err)
	}
	if _, err := os.Stat(filepath.Join(box.Root, "w/.eval/cases.json")); err != nil {
		t.Error(err)
	}
	if out := gitOut(t, filepath.Join(box.Root, "w"), "log", "--all", "--format=%s"); !strings.Contains(out, "Fix") {
		t.Errorf("log --all is %q", out)
	}
}

func TestPrepareSweepsLeftovers(t *testing.T) {
	l := newPrepareLab(t)
	old, young := filepath.Join(l.preparer.Dir, "scratch-1"), filepath.Join(l.preparer.Dir, "scratch-2")
	for _, dir := range []string{old, young} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Now().Add(-2 * leftoverAge)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	l.prepare(true)
	left, err := filepath.Glob(filepath.Join(l.preparer.Dir, "scratch-*"))
	if err != nil || len(left) != 1 || left[0] != young {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestPrepareIsCached(t *testing.T) {
	l := newPrepareLab(t)
	first := l.prepare(true)
	made := l.created.Load()
	for range 3 {
		if again := l.prepare(true); again.Image.Digest != first.Image.Digest || again.Key != first.Key {
			t.Errorf("prepared again: %+v", again)
		}
	}
	fresh := &Preparer{Engine: l.engine, Dir: l.preparer.Dir} // as after a restart
	started := time.Now()
	again, err := fresh.Prepare(context.Background(), l.task, true)
	if err != nil || again.Image.Digest != first.Image.Digest || len(again.Leaks) != len(first.Leaks) {
		t.Fatalf("after a restart: %+v, %v", again, err)
	}
	t.Logf("from the cache on disk: %s", time.Since(started))
	if l.created.Load() != made {
		t.Error("the cache was not used")
	}
	box := l.start(again)
	if err := again.Verify(context.Background(), box); err != nil {
		t.Errorf("verify after a restart: %v", err)
	}
	opened, err := (&Preparer{Engine: l.engine, Dir: l.preparer.Dir}).Open(context.Background(), l.task, first.Key)
	if err != nil || opened.Image.Digest != first.Image.Digest || opened.Base != l.base {
		t.Errorf("opened %+v, %v", opened, err)
	}
	if _, err := l.preparer.Open(context.Background(), l.task, "../../etc"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open of a strange key: %v", err)
	}
}

func TestPrepareMakesAgain(t *testing.T) {
	tests := map[string]func(l *prepareLab, p *Prepared) error{
		"image gone": func(l *prepareLab, p *Prepared) error { return l.engine.RemoveImage(p.Image.Ref) },
		"state cut off": func(l *prepareLab, p *Prepared) error {
			return os.Truncate(filepath.Join(l.preparer.Dir, p.Key, "state.json"), 10)
		},
		"repo missing": func(l *prepareLab, p *Prepared) error {
			return os.Remove(filepath.Join(l.preparer.Dir, p.Key, "repo0"))
		},
		"image replaced": func(l *prepareLab, p *Prepared) error {
			return l.engine.AddImage(p.Image.Ref, filepath.Join(filepath.Dir(l.engine.Dir), "image"))
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			l := newPrepareLab(t)
			p := l.prepare(true)
			made := l.created.Load()
			if err := damage(l, p); err != nil {
				t.Fatal(err)
			}
			fresh := &Preparer{Engine: l.engine, Dir: l.preparer.Dir}
			again, err := fresh.Prepare(context.Background(), l.task, true)
			if err != nil {
				t.Fatal(err)
			}
			if l.created.Load() == made {
				t.Error("was not made again")
			}
			if err := again.Verify(context.Background(), l.start(again)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPrepareAdopts has two data folders on one engine: each takes up the image that the other made
// under the same name, and neither makes the other's work void.
func TestPrepareAdopts(t *testing.T) {
	l := newPrepareLab(t)
	first := l.prepare(true)
	other := &Preparer{Engine: l.engine, Dir: filepath.Join(t.TempDir(), "other")}
	theirs, err := other.Prepare(context.Background(), l.task, true)
	if err != nil || theirs.Image.Ref != first.Image.Ref || theirs.Image.Digest == first.Image.Digest {
		t.Fatalf("%+v, %v", theirs, err)
	}
	made := l.created.Load()
	again := l.prepare(true)
	if again.Image.Digest != theirs.Image.Digest || l.created.Load() != made+1 { // audited once
		t.Errorf("image %s after %d sandboxes", again.Image.Digest, l.created.Load()-made)
	}
	if err := again.Verify(context.Background(), l.start(again)); err != nil {
		t.Error(err)
	}
	made = l.created.Load()
	l.prepare(true)
	if _, err := other.Prepare(context.Background(), l.task, true); err != nil || l.created.Load() != made {
		t.Errorf("the folders undo each other: %v", err)
	}
}

func TestPrepareAtOnce(t *testing.T) {
	l := newPrepareLab(t)
	other := &Preparer{Engine: l.engine, Dir: l.preparer.Dir} // another process
	var group sync.WaitGroup
	for i := range 8 {
		p := l.preparer
		if i%2 == 1 {
			p = other
		}
		group.Go(func() {
			if _, err := p.Prepare(context.Background(), l.task, true); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := l.created.Load(); n != 2 { // one to harden, one to audit
		t.Errorf("%d sandboxes were made", n)
	}
}

func TestPrepareBuilds(t *testing.T) {
	l := newPrepareLab(t)
	dir := t.TempDir()
	files := map[string]string{"files/src/a.py": "a\n", "files/make.sh": "git init -q .; git add -A; git -c user.name=a -c user.email=a@b commit -q -m one\n"}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.task = &Task{ID: "b", Instruction: "i", Workdir: "/built", Dir: dir, Build: &Build{Base: "leaky:1", Files: "files/", Run: []string{"sh make.sh"}},
		Setup: []string{"echo $PIP_INDEX_URL > .set"}, Network: Network{Setup: "none"}}
	l.preparer.Build = BuildAccess{Env: map[string]string{"PIP_INDEX_URL": "http://index.test/simple"}}
	p := l.prepare(true)
	box := l.start(p)
	if data, err := os.ReadFile(filepath.Join(box.Root, "built/.set")); err != nil || string(data) != "http://index.test/simple\n" {
		t.Errorf("setup saw %q, %v", data, err)
	}
	if p.Base == "" || gitOut(t, filepath.Join(box.Root, "built"), "log", "--format=%s") != "one" {
		t.Errorf("base is %q", p.Base)
	}
	made := l.created.Load()
	l.prepare(true)
	if l.created.Load() != made {
		t.Error("the build was not kept")
	}
	if err := os.WriteFile(filepath.Join(dir, "files/src/a.py"), []byte("b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if again := l.prepare(true); again.Image.Ref == p.Image.Ref {
		t.Error("a changed file gave the same image")
	}
}

func TestPrepareErrors(t *testing.T) {
	tests := map[string]struct {
		change func(task *Task)
		is     error
		want   string
	}{
		"no image":       {func(task *Task) { task.Image = "none:1" }, sandbox.ErrNoImage, "preparing task t: "},
		"setup fails":    {func(task *Task) { task.Setup = []string{"true", "echo oops >&2; exit 3"} }, ErrSetup, "setup[1]: exit 3: echo oops >&2; exit 3\noops"},
		"no Dockerfiles": {func(task *Task) { task.Image, task.Build, task.Dir = "", &Build{Dockerfile: "Dockerfile"}, t.TempDir() }, ErrSetup, "does not build Dockerfiles"},
		"allowlist":      {func(task *Task) { task.Setup, task.Network.Setup = []string{"true"}, "allowlist" }, ErrSetup, "write open or none"},
		"hidden in git":  {func(task *Task) { task.HiddenPaths = []string{"/w/a.py"} }, nil, "hidden path /w/a.py is in commit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newPrepareLab(t)
			test.change(l.task)
			_, err := l.preparer.Prepare(context.Background(), l.task, true)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
			if open, _ := l.engine.List(context.Background()); len(open) != 0 {
				t.Errorf("sandboxes left: %v", open)
			}
		})
	}
}

func TestHostAccess(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"https_proxy": "http://p:3128", "SSL_CERT_FILE": ca, "SECRET_TOKEN": "x"}
	a := HostAccess(func(name string) string { return vars[name] })
	lines := strings.Join(a.lines(), "\n")
	if string(a.CA) != "PEM" || !strings.Contains(lines, "https_proxy=http://p:3128") || !strings.Contains(lines, "PIP_CERT="+caFile) || strings.Contains(lines, "SECRET") || strings.Contains(lines, ca) {
		t.Errorf("access is %+v, lines %s", a, lines)
	}
}
