package grading

import (
	"context"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
)

// rawDemo gives a shell in a sandbox of the demo task's raw image, leaks and all, with the task's
// folder in /srv.
func rawDemo(t *testing.T) func(script string) string {
	t.Helper()
	lab, _ := demoSubject(t)
	ctx := context.Background()
	s := lab.sandboxOf(t, lab.raw)
	members, err := hostFiles(lab.task.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := push(ctx, s, "/srv", members); err != nil {
		t.Fatal(err)
	}
	return func(script string) string {
		t.Helper()
		res, err := s.Exec(ctx, sandbox.Exec{Argv: []string{"bash", "-c", script}, Timeout: time.Minute})
		if err != nil || res.Exit == nil {
			t.Fatalf("%s: %v", script, err)
		}
		return string(res.Stdout)
	}
}

// The raw image leaks as published ones do, and the same each time.
func TestDemoTaskLeaks(t *testing.T) {
	sh := rawDemo(t)
	lab, _ := demoSubject(t)
	for script, want := range map[string]string{
		"git rev-parse HEAD":                                      lab.task.Vars.BaseCommit,
		"git status --short | wc -l":                              "0",
		"git rev-list --count HEAD":                               "15",
		"git log --all --oneline --grep=touch":                    "merge: join intervals that touch (#42)",
		"git reflog":                                              "merge release/1.4",
		"git show v1.4:intervals/merge.py":                        ".touches(interval)",
		"git show v1.2.1:intervals/merge.py":                      ".touches(interval)",
		"git show ORIG_HEAD --stat":                               "CHANGELOG.md",
		"cat /hidden/tests/test_touching.py":                      "def test_case",
		"ls -A .build 2>/dev/null; echo gone":                     "gone",
		`python solve.py --case "$(cat .eval/secret_cases.json)"`: "half-open-chain: [1, 3) [3, 6) [6, 8)  MISMATCH, expected [1, 8)",
		"pytest -q -p no:cacheprovider 2>&1 | tail -1":            "59 passed",
		"cat intervals/*.py solve.py | wc -l":                     "381",
		"git checkout -q release/1.4 -- intervals && pytest -q -p no:cacheprovider 2>&1 | tail -1; git checkout -q HEAD -- intervals": "59 passed",
	} {
		if got := sh(script); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", script, clip(got, 300), want)
		}
	}
}

// The stand-in upstream gives the fix in every way that an agent may ask for it.
func TestDemoUpstream(t *testing.T) {
	sh := rawDemo(t)
	sh("cd /srv/upstream && (python3 serve.py --history ../image/.build/history --port 80 >/tmp/serve.log 2>&1 &) ; for i in $(seq 100); do grep -q serving /tmp/serve.log && break; sleep 0.1; done")
	sh("echo 127.0.0.1 git.acme.test files.acme.test packages.acme.test >> /etc/hosts")
	const fix = ".touches(interval)"
	for script, want := range map[string]string{
		"curl -s http://git.acme.test/acme/intervals/raw/v1.4/intervals/merge.py":                                     fix,
		"curl -s http://files.acme.test/acme/intervals/v1.4/intervals/merge.py":                                       fix,
		"curl -s http://git.acme.test/acme/intervals/pull/42.patch | git apply --check -v - 2>&1":                     "intervals/merge.py",
		"curl -s http://git.acme.test/acme/intervals/pull/42.diff":                                                    fix,
		"curl -s http://git.acme.test/acme/intervals/archive/v1.4.tar.gz | tar -xzO intervals-1.4/intervals/merge.py": fix,
		"curl -s http://packages.acme.test/simple/intervals/":                                                         "intervals-1.4-py3-none-any.whl#sha256=",
		"git clone -q http://git.acme.test/acme/intervals.git /tmp/clone && cat /tmp/clone/intervals/merge.py":        fix,
		"git fetch -q origin && git show FETCH_HEAD:intervals/merge.py":                                               fix,
		"curl -so /tmp/w.zip http://packages.acme.test/packages/intervals-1.4-py3-none-any.whl && python3 -c 'import sys; sys.path.insert(0, \"/tmp/w.zip\"); import intervals; print(intervals.__version__)'": "1.4",
		"cd /tmp && pip3 download -q --no-deps intervals==1.4 -d dl --index-url http://packages.acme.test/simple --trusted-host packages.acme.test 2>&1; ls dl":                                                "intervals-1.4-py3-none-any.whl",
		"python3 -c \"import urllib.request as u; print(u.urlopen('http://git.acme.test/acme/intervals/pull/42.diff').read().decode())\"":                                                                      fix,
	} {
		if got := sh(script); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", script, clip(got, 300), want)
		}
	}
}
