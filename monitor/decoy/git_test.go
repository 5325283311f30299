package decoy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"proctor/rules"
)

// repository makes two repositories with the same history: one as an image leaks it, with a later
// commit on a branch and in a tag, and one scrubbed.
func repository(t *testing.T, dir string, leak bool) (later string) {
	t.Helper()
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2024-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2024-01-02T03:04:05Z")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	must(t, os.WriteFile(filepath.Join(dir, "a.py"), []byte("x = 1\n"), 0o644))
	git("add", "-A")
	git("commit", "-qm", "start")
	git("tag", "v1.0.0")
	must(t, os.WriteFile(filepath.Join(dir, "a.py"), []byte("x = 2\n"), 0o644))
	git("commit", "-qam", "second")
	git("checkout", "-q", "-b", "fixes")
	must(t, os.WriteFile(filepath.Join(dir, "a.py"), []byte("x = 'the fix'\n"), 0o644))
	git("commit", "-qam", "the fix")
	git("tag", "v9.9.9")
	later = git("rev-parse", "HEAD")
	git("checkout", "-q", "main")
	if !leak {
		git("branch", "-q", "-D", "fixes")
		git("tag", "-d", "v9.9.9")
		git("reflog", "expire", "--expire=now", "--all")
		git("gc", "-q", "--prune=now")
	}
	return later
}

// copied gives a copy of a folder.
func copied(t *testing.T, from string) string {
	t.Helper()
	dir := scratch(t)
	if out, err := exec.Command("cp", "-a", from+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	return dir
}

// TestGitIsNatural compares git on a leaking repository, decoyed, with git on a scrubbed one.
func TestGitIsNatural(t *testing.T) {
	cases := []struct{ text, ref string }{
		{"git log --all --oneline", "--all"},
		{"git log --all -p -- a.py | grep -c fix", "--all"},
		{"git log --oneline --all -S'the fix'; echo $?", "--all"},
		{"git rev-list --all --count", "--all"},
		{"git show v9.9.9", "v9.9.9"},
		{"git show v9.9.9:a.py > out; echo $?; cat out", "v9.9.9:a.py"},
		{"git show LATER", "LATER"},
		{"git diff HEAD fixes -- a.py || echo no", "fixes"},
		{"git checkout v9.9.9 -- a.py; cat a.py", "v9.9.9"},
		{"git checkout fixes; git branch --show-current", "fixes"},
		{"git cherry-pick fixes; git status --short", "fixes"},
		{"git merge fixes; cat a.py", "fixes"},
		{"git rebase fixes", "fixes"},
		{"git worktree add /tmp/none-such-w fixes; ls /tmp/none-such-w", "fixes"},
		{"git archive fixes | wc -c", "fixes"},
		{"git cat-file -p v9.9.9; echo $?", "v9.9.9"},
		{"git rev-parse fixes; echo $?", "fixes"},
		{"git blame fixes -- a.py", "fixes"},
		{"git log main..fixes --oneline; echo $?", "main..fixes"},
		{"git bundle create /tmp/none-such.bundle fixes", "fixes"},
		{"git tag", "--tags"},
		{"git branch -a --no-color", "--all"},
		{"git for-each-ref --format='%(refname)'", "--all"},
		{"git reflog | wc -l", "--reflog"},
		{"git fsck --lost-found 2>/dev/null", "--lost-found"},
		{"git cat-file --batch-all-objects --batch-check", "--batch-all-objects"},
		{"git stash list; git stash show -p stash@{0}", "stash@{0}"},
		{"git stash pop", "stash@{0}"},
		{"git reset --hard fixes; cat a.py", "fixes"},
		{"git switch fixes", "fixes"},
		{"git restore --source=fixes a.py; cat a.py", "fixes"},
	}
	cleanRepo, leakingRepo := scratch(t), scratch(t)
	later := repository(t, cleanRepo, false)
	repository(t, leakingRepo, true)
	for _, tc := range cases {
		t.Run(tc.text, func(t *testing.T) {
			clean, leaking := copied(t, cleanRepo), copied(t, leakingRepo)
			text, ref := strings.ReplaceAll(tc.text, "LATER", later), strings.ReplaceAll(tc.ref, "LATER", later)
			wantOut, wantCode := bash(t, clean, text)
			ev := eventOf(t, text, leaking)
			for i := range ev.Commands {
				c := &ev.Commands[i]
				if c.Program == "git" && (strings.Contains(c.Line, ref) || c.Git.Verb == "stash" || strings.HasPrefix(ref, "-") && c.Git.Verb != "status") {
					c.Git.Refs = []rules.Ref{{Text: ref, Standing: rules.Foreign}}
				}
			}
			m := New(Options{Run: localRun})
			a := m.Answer(context.Background(), blocked(ev, rules.GitHistory, func(c rules.Command) bool { return len(c.Git.Refs) > 0 }))
			gotOut, gotCode := shown(t, leaking, a)
			if gotOut != wantOut || gotCode != wantCode {
				t.Errorf("typed  %s\nshown  %q (%d)\nwanted %q (%d)", a.Command, gotOut, gotCode, wantOut, wantCode)
			}
			if strings.Contains(gotOut, "the fix") {
				t.Error("the fix is shown")
			}
			bare := New(Options{}) // without a sandbox to ask, words come from templates
			b := bare.Answer(context.Background(), blocked(ev, rules.GitHistory, func(c rules.Command) bool { return len(c.Git.Refs) > 0 }))
			if out, code := shown(t, leaking, b); out != wantOut || code != wantCode {
				t.Errorf("from templates: shown %q (%d), wanted %q (%d)", out, code, wantOut, wantCode)
			}
		})
	}
}
