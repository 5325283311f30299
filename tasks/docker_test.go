package tasks_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/docker"
	"proctor/tasks"
)

const dockerImage = "proctor/base:dev"

// dockerEngine gives the real engine. Without a daemon or the base image the test fails where a run
// demands Docker, and is skipped, loudly, elsewhere.
func dockerEngine(t *testing.T) *docker.Engine {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs Docker")
	}
	lack := ""
	if out, err := exec.Command("docker", "image", "inspect", dockerImage).CombinedOutput(); err != nil {
		lack = "run `make image`: " + strings.TrimSpace(string(out))
	}
	if lack != "" {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatal(lack)
		}
		t.Skipf("NOT TESTED, needs Docker: %s", lack)
	}
	boxd := filepath.Join(t.TempDir(), "boxd")
	build := exec.Command("go", "build", "-o", boxd, "proctor/cmd/boxd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the box agent: %v: %s", err, out)
	}
	engine, err := docker.New(docker.Options{Owner: "tasks-test-" + filepath.Base(t.TempDir()) + t.Name(), BoxPath: boxd, NoPull: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listed, _ := engine.List(context.Background())
		for _, l := range listed {
			t.Errorf("a sandbox was left: %s", l.Name)
			_ = engine.Remove(context.Background(), l.ID)
		}
		_ = engine.Close()
	})
	return engine
}

// removeImages takes back what a test made.
func removeImages(t *testing.T, refs ...string) {
	t.Helper()
	for _, ref := range refs {
		if strings.HasPrefix(ref, "proctor/prepared:") || strings.HasPrefix(ref, "proctor/built:") {
			_ = exec.Command("docker", "image", "rm", "-f", ref).Run()
		}
	}
}

func demoTask(t *testing.T) *tasks.Task {
	t.Helper()
	loaded, problems := tasks.Load(context.Background(), "../testdata/tasks/interval-merge")
	if len(loaded) != 1 {
		t.Fatal(problems)
	}
	task := loaded[0]
	task.Env = map[string]string{"TEST_OF": t.Name()} // a key of its own: images are removed afterwards
	return task
}

func TestDockerPrepareDemo(t *testing.T) {
	engine, ctx := dockerEngine(t), context.Background()
	p := &tasks.Preparer{Engine: engine, Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Build: tasks.HostAccess(os.Getenv)}
	task := demoTask(t)
	started := time.Now()
	hard, err := p.Prepare(ctx, task, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeImages(t, hard.Image.Ref, hard.Raw.Ref) })
	t.Logf("built and hardened in %s", time.Since(started))
	started = time.Now()
	if _, err := p.Prepare(ctx, task, true); err != nil {
		t.Fatal(err)
	}
	t.Logf("from the cache in %s", time.Since(started))
	if time.Since(started) > time.Second {
		t.Error("the cache is slow")
	}
	for _, leak := range hard.Leaks {
		t.Log(leak)
	}
	if hard.Base != task.Vars.BaseCommit {
		t.Errorf("base is %s, want %s", hard.Base, task.Vars.BaseCommit)
	}
	checkDemo(t, engine, task, hard)
	soft, err := p.Prepare(ctx, task, false)
	if err != nil {
		t.Fatal(err)
	}
	if soft.Image.Digest != hard.Raw.Digest || soft.Base != hard.Base {
		t.Errorf("raw is %+v", soft)
	}
	box := startBox(t, engine, task, soft)
	if out := run(t, box, "git log --all --oneline; cat .eval/secret_cases.json; ls /hidden"); !strings.Contains(out, "tests") {
		t.Errorf("the raw image has lost something: %s", out)
	}
	if got := soft.Facts(box).Ref(ctx, "/testbed", "release/1.4"); got != tasks.RefForeign {
		t.Errorf("release/1.4 in the raw image is %s", got)
	}
}

func startBox(t *testing.T, engine sandbox.Engine, task *tasks.Task, p *tasks.Prepared) sandbox.Session {
	t.Helper()
	box, err := engine.Create(context.Background(), sandbox.Spec{Name: "test", Image: p.Image.Ref, Workdir: task.Workdir, User: task.User})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close(context.Background()) })
	return box
}

func run(t *testing.T, box sandbox.Session, line string) string {
	t.Helper()
	res, err := box.Exec(context.Background(), sandbox.Exec{Argv: []string{"/bin/sh", "-c", line}})
	if err != nil || res.Exit == nil || *res.Exit != 0 {
		t.Fatalf("%s: %v: %s%s", line, err, res.Stdout, res.Stderr)
	}
	return strings.TrimSpace(string(res.Stdout))
}

func checkDemo(t *testing.T, engine sandbox.Engine, task *tasks.Task, p *tasks.Prepared) {
	t.Helper()
	ctx := context.Background()
	box := startBox(t, engine, task, p)
	started := time.Now()
	if err := p.Verify(ctx, box); err != nil {
		t.Errorf("verify: %v", err)
	}
	t.Logf("verified in %s", time.Since(started))
	if got := run(t, box, "git status --porcelain; git fsck --full --strict 2>&1; git remote; git stash list; git reflog; git for-each-ref --format='%(refname)'"); got != "refs/heads/main\nrefs/tags/v1.2\nrefs/tags/v1.3" {
		t.Errorf("git shows %q", got)
	}
	if got := run(t, box, "git rev-parse HEAD; git log --oneline --all | wc -l; git rev-list HEAD | wc -l"); strings.Fields(got)[1] != strings.Fields(got)[2] {
		t.Errorf("git shows %q", got)
	}
	for _, hidden := range task.HiddenPaths {
		if _, err := box.Stat(ctx, hidden); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", hidden, err)
		}
	}
	facts := p.Facts(box)
	started = time.Now()
	for text, want := range map[string]string{"HEAD~3": tasks.RefAncestor, "v1.2": tasks.RefAncestor, "release/1.4": tasks.RefForeign, "v1.4": tasks.RefForeign,
		"v1.2.1": tasks.RefForeign, "ORIG_HEAD": tasks.RefForeign, "origin/main": tasks.RefForeign, "--all": tasks.RefAncestor} {
		if got := facts.Ref(ctx, task.Workdir, text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	t.Logf("eight revisions in %s", time.Since(started))
	if got := facts.Path(ctx, "/testbed/.eval/secret_cases.json"); got != tasks.PathHidden {
		t.Errorf("the secret cases are %s", got)
	}
	run(t, box, "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m mine")
	if got := facts.Ref(ctx, task.Workdir, "HEAD"); got != tasks.RefOwn {
		t.Errorf("the agent's commit is %s", got)
	}
	run(t, box, "mkdir -p /testbed/.eval")
	if err := p.Verify(ctx, box); !errors.Is(err, tasks.ErrNotClean) {
		t.Errorf("verify after a change: %v", err)
	}
}

func TestDockerPrepareBundle(t *testing.T) {
	engine, ctx := dockerEngine(t), context.Background()
	dir := t.TempDir()
	make := exec.Command("sh", "-c", `set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main r; cd r; echo 1 > a; git add a; git commit -q -m one; git tag v1; git checkout -q -b next; echo 2 > a; git commit -q -a -m two; git tag v2; git checkout -q main; git bundle create -q ../x.bundle --all HEAD`)
	make.Dir = dir
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	task := &tasks.Task{ID: "bundle", Instruction: "i", Workdir: "/testbed", Dir: dir, Env: map[string]string{"TEST_OF": t.Name()},
		Build: &tasks.Build{Base: dockerImage, Bundle: "x.bundle", Run: []string{"test \"$(cat a)\" = 1 && git rev-parse next v2"}}, Network: tasks.Network{Setup: "none"}}
	p := &tasks.Preparer{Engine: engine, Dir: t.TempDir(), Build: tasks.HostAccess(os.Getenv)}
	hard, err := p.Prepare(ctx, task, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeImages(t, hard.Image.Ref, hard.Raw.Ref) })
	box := startBox(t, engine, task, hard)
	if got := run(t, box, "git log --all --format=%s; git tag; ls -a /tmp"); got != "one\nv1\n.\n.." {
		t.Errorf("the sandbox shows %q", got)
	}
}

// A Dockerfile of a task sees its folder without what only the grader may see, fetches packages by this
// host's own settings, and leaves none of them. It needs a package index, so it is part of make swebench.
func TestDockerPrepareDockerfile(t *testing.T) {
	if os.Getenv("PROCTOR_SWEBENCH_ALL") != "1" {
		t.Skip("SKIPPED: fetches a package; run by make swebench")
	}
	engine, ctx, dir := dockerEngine(t), context.Background(), t.TempDir()
	for name, text := range map[string]string{
		"Dockerfile":    "FROM " + dockerImage + "\nRUN pip3 install --break-system-packages --no-cache-dir six==1.17.0 && python3 -c 'import six'\nCOPY . /ctx\nRUN mkdir /testbed && cd /testbed && git init -q && echo 1 > a\n",
		"hidden/t.py":   "secret",
		"gold.patch":    "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n",
		"shown/data.md": "x",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	task := &tasks.Task{ID: "dockerfile", Instruction: "i", Workdir: "/testbed", Dir: dir, Build: &tasks.Build{Dockerfile: "Dockerfile"}, Solution: "gold.patch",
		Grader: &tasks.Grader{Kind: "patch", Files: "hidden", Command: "true", Report: "exit"}}
	p := &tasks.Preparer{Engine: engine, Dir: t.TempDir(), Build: tasks.HostAccess(os.Getenv)}
	started := time.Now()
	hard, err := p.Prepare(ctx, task, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeImages(t, hard.Image.Ref, hard.Raw.Ref) })
	t.Logf("built and hardened in %s", time.Since(started))
	box := startBox(t, engine, task, hard)
	if got := run(t, box, "cd /ctx && find . -type f | sort; python3 -c 'import six'; ls -A /tmp; env | grep -e PIP_INDEX -e CERT || true"); got != "./Dockerfile\n./shown/data.md" {
		t.Errorf("the sandbox shows %q", got)
	}
	started = time.Now()
	if _, err := p.Prepare(ctx, task, true); err != nil || time.Since(started) > 2*time.Second {
		t.Errorf("a second preparation took %s: %v", time.Since(started), err)
	}
}
