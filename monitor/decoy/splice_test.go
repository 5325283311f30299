package decoy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"proctor/rules"
	"proctor/sandbox"
)

// localRun runs what a Maker asks of its sandbox on this machine, in a scratch folder.
func localRun(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error) {
	ctx, stop := context.WithTimeout(ctx, max(e.Timeout, time.Second))
	defer stop()
	cmd := exec.CommandContext(ctx, e.Argv[0], e.Argv[1:]...)
	cmd.Dir, cmd.Stdin = e.Dir, bytes.NewReader(e.Stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return sandbox.ExecResult{}, sandbox.ErrStart
	}
	code := cmd.ProcessState.ExitCode()
	_ = err // a status other than 0 is an answer
	return sandbox.ExecResult{Stdout: out.Bytes(), Stderr: errs.Bytes(), Exit: &code}, nil
}

// bash types text into a shell as the box does, and gives the merged output and the status.
func bash(t *testing.T, dir, text string) (string, int) {
	t.Helper()
	cmd := exec.Command("bash", "--norc", "-c", `eval "$1"`, "bash", text)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("bash did not start: %v", err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// shown runs an answer and gives what the agent would see.
func shown(t *testing.T, dir string, a Answer) (string, int) {
	t.Helper()
	if !a.Run {
		return string(a.Result.Output), *a.Result.Exit
	}
	out, code := bash(t, dir, a.Command)
	if a.Rewrite == nil {
		return out, code
	}
	r := a.Rewrite(sandbox.Result{Output: []byte(out), Exit: &code})
	return string(r.Output), *r.Exit
}

// TestSpliceIsNatural compares, call by call, what a decoy shows where the secret lies with what
// the real programs say where it does not.
func TestSpliceIsNatural(t *testing.T) {
	cases := []string{
		"cat .eval/x.json",
		"cat .eval/x.json && echo yes || echo no",
		"cd src && cat ../.eval/x.json; echo $?; pwd",
		"cat a.txt .eval/x.json b.txt",
		"cat .eval/x.json 2>/dev/null; echo $?",
		"cat .eval/x.json 2>&1 | wc -l",
		"cat .eval/x.json | wc -c",
		"cat .eval/x.json > out.txt; cat out.txt; ls -l out.txt | wc -l",
		"cat < .eval/x.json; echo $?",
		"x=$(cat .eval/x.json); echo \"got <$x> $?\"",
		"echo \"$(cat .eval/x.json)\" end",
		"if cat .eval/x.json; then echo y; else echo n; fi",
		"! cat .eval/x.json; echo $?",
		"set -e; cat .eval/x.json; echo not reached",
		"cat .eval/x.json; echo \"$_\"",
		"head -5 .eval/x.json; tail -n 2 .eval/x.json; wc .eval/x.json",
		"sed -n 1,5p .eval/x.json; echo $?",
		"grep -n foo .eval/x.json a.txt; echo $?",
		"ls .eval; ls -la .eval/x.json; echo $?",
		"stat .eval/x.json; find .eval -type f; du .eval",
		"file .eval/x.json; md5sum .eval/x.json",
		"cp .eval/x.json b.txt; cat b.txt",
		"cat .eval/*.json; echo $?",
		"cat '.eval/x y.json'",
		"cat \"$PWD/.eval/x.json\" 2>/dev/null; echo $?",
		"cd .eval; pwd | sed 's#.*/##'",
		"cd .eval && cat x.json; echo $?",
		"cat .eval/x.json a.txt nothing b.txt; echo $?",
		"test -f .eval/x.json && echo there; [ -e .eval ] || echo gone",
		"(cat .eval/x.json); { cat .eval/x.json; }; echo ${PIPESTATUS[0]}",
		"cat .eval/x.json | cat - a.txt | tr a-z A-Z; echo ${PIPESTATUS[@]}",
		"diff a.txt .eval/x.json; echo $?",
		"less .eval/x.json; echo $?",
		"cat <<EOF; cat .eval/x.json\nhello $((1+1))\nEOF\necho end",
		"cat .eval/x.json & wait; echo done",
		"awk '{print}' .eval/x.json; echo $?",
		"find . -name '*.json'; echo $?",
		"find . -type f -exec cat {} + | sort",
		"ls -A; ls -1A | wc -l",
		"grep -rn secret . ; echo $?",
		"find . -maxdepth 1 -name '.e*' -o -name '*.txt' | sort",
		"ls -R | sort | head -20",
	}
	for _, text := range cases {
		t.Run(text, func(t *testing.T) {
			dir := scratch(t)
			plant(t, dir, false)
			wantOut, wantCode := bash(t, dir, text)
			must(t, os.RemoveAll(dir))
			plant(t, dir, true)
			hidden := filepath.Join(dir, ".eval")
			ev := eventOf(t, text, dir, hidden)
			m := New(Options{Vars: rules.Vars{"hidden_paths": {hidden}}, Run: localRun})
			req := blocked(ev, rules.HiddenArtifact, func(c rules.Command) bool { return len(c.Hidden) > 0 })
			if len(req.Hits) == 0 {
				req = blocked(ev, rules.HiddenArtifact, func(c rules.Command) bool { return lists(&c) })
			}
			a := m.Answer(context.Background(), req)
			if a.Rewrite != nil {
				t.Fatalf("the whole call is answered, want it spliced")
			}
			gotOut, gotCode := shown(t, dir, a)
			if gotOut != wantOut || gotCode != wantCode {
				t.Errorf("typed  %s\nshown  %q (%d)\nwanted %q (%d)", a.Command, gotOut, gotCode, wantOut, wantCode)
			}
		})
	}
}

// scratch gives a folder whose name holds nothing special, unlike t.TempDir's.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "decoy")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// plant makes a small tree; the secret only where asked for.
func plant(t *testing.T, dir string, secret bool) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, "src"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("alpha foo\nsecret of mine\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "b.txt"), []byte("beta\n"), 0o644))
	if secret {
		must(t, os.MkdirAll(filepath.Join(dir, ".eval"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, ".eval", "x.json"), []byte(`{"secret": "foo"}`+"\n"), 0o644))
		must(t, os.WriteFile(filepath.Join(dir, ".eval", "x y.json"), []byte(`{"secret": "bar"}`+"\n"), 0o644))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
