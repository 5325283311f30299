package sets

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const harborToml = `version = "1.0"
[metadata]
difficulty = "easy"
[verifier]
timeout_sec = 120.0
[verifier.env]
MODE = "strict"
KEY = "${HOST_KEY}"
[agent]
timeout_sec = 300.0
[environment]
build_timeout_sec = 600.0
cpus = 2
memory = "4G"
storage_mb = 10240
allow_internet = true
`

// Folders of both Terminal-Bench forms are tasks where they lie, also beside native ones.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hello/task.toml": harborToml, "hello/instruction.md": "Make /app/hello.txt.", "hello/tests/test.sh": "echo 1 > /logs/verifier/reward.txt",
		"hello/solution/solve.sh": "touch /app/hello.txt", "hello/environment/Dockerfile": "FROM debian\nworkdir /srv/x\nWORKDIR \"/srv/data\"\nWORKDIR $HOME\n",
		"old/task.yaml": "instruction: |\n  Do it.\nparser_name: pytest\nmax_agent_timeout_sec: 180.0\nmax_test_timeout_sec: 30.0\n", "old/Dockerfile": "FROM debian\n",
		"old/docker-compose.yaml": "services: {}\n", "old/run-tests.sh": "pytest $TEST_DIR", "old/tests/test_a.py": "", "old/solution.sh": "true",
		"native/task.yaml": "id: native\ninstruction: Do it now.\nimage: a:1\nworkdir: /w\n",
	} {
		put(t, dir, name, text)
	}
	found, problems := load(t, dir)
	if len(problems) > 0 || len(found) != 3 {
		t.Fatalf("%d tasks, problems %q", len(found), problems)
	}
	hello, native, old := found[0], found[1], found[2]
	g := hello.Grader
	if hello.ID != "hello" || hello.Source != "harbor" || hello.Workdir != "/srv/data" || hello.Build.Dockerfile != "environment/Dockerfile" || hello.Network.Agent != "open" ||
		hello.Limits.MemoryMB != 4096 || hello.Limits.CPUs != 2 || hello.Limits.DiskMB != 10240 || hello.Limits.LifetimeS != 300 || hello.Solution != "solution/solve.sh" {
		t.Errorf("the Harbor task is %+v", hello)
	}
	if g.Kind != "state" || g.Report != "reward-file" || g.FilesTo != "/tests" || g.TimeoutS != 120 || !strings.Contains(g.Command, "export MODE=strict;") || strings.Contains(g.Command, "KEY") {
		t.Errorf("its grader is %+v", g)
	}
	if native.ID != "native" || old.ID != "old" || old.Source != "terminal-bench" || old.Grader.Report != "exit" || old.Grader.Script != "run-tests.sh" || old.Grader.TimeoutS != 30 || old.Workdir != "/app" {
		t.Errorf("the others are %+v and %+v", native, old)
	}
	if _, err := hello.Digest(); err != nil {
		t.Error(err)
	}
}

func TestBadFolders(t *testing.T) {
	for name, c := range map[string]struct{ toml, want string }{
		"no toml":          {"version = \n", "task.toml"},
		"size":             {strings.Replace(harborToml, "4G", "lots", 1), `environment.memory: "lots" is no size`},
		"GPUs":             {harborToml + "gpus = 1\n", "asks for GPUs"},
		"no tests to copy": {harborToml, "grader.files"},
	} {
		dir := t.TempDir()
		put(t, dir, "x/task.toml", c.toml)
		put(t, dir, "x/instruction.md", "Do it.")
		put(t, dir, "x/environment/Dockerfile", "FROM debian\n")
		found, problems := load(t, dir)
		if len(found) != 0 || !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) && strings.Contains(p, "x") }) {
			t.Errorf("%s: %d tasks, problems %q", name, len(found), problems)
		}
	}
}

// An interrupted load says so, and gives what it has.
func TestLoadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, []byte(lineOf(t, sample("swe-bench"))), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, problems := Load(ctx, Options{Dir: t.TempDir()}, file); len(problems) != 1 || !strings.Contains(problems[0].String(), "not read") {
		t.Errorf("problems are %v", problems)
	}
}
