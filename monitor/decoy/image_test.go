package decoy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"proctor/rules"
)

// TestTemplatesAgainstTheBaseImage compares the fallback wordings, asked of nobody, with what the
// programs of the base image say themselves. Programs that the image lacks are passed over.
func TestTemplatesAgainstTheBaseImage(t *testing.T) {
	id := baseContainer(t)
	cases := []string{
		"cat no-such", "cat 'no such'", "head no-such", "tail -n 3 no-such", "sed -n 1p no-such", "awk 1 no-such", "grep x no-such", "ls no-such",
		"cp no-such x", "mv no-such x", "find no-such", "stat no-such", "wc no-such", "du no-such", "file no-such", "dd if=no-such",
		"diff no-such /etc/passwd", "cmp no-such /etc/passwd", "sort no-such", "tac no-such", "nl no-such", "od no-such", "base64 no-such",
		"cut -c1 no-such", "md5sum no-such", "sha256sum no-such", "xxd no-such", "strings no-such", "jq . no-such", "zcat no-such", "rm no-such",
		"chmod 644 no-such", "less no-such", "ln no-such x", "cat a no-such",
		"git show no-such", "git log no-such --", "git checkout no-such", "git cherry-pick no-such", "git merge no-such", "git rebase no-such",
		"git branch x no-such", "git worktree add /tmp/w no-such", "git archive no-such", "git cat-file -p no-such", "git rev-parse no-such",
		"git blame no-such -- a", "git restore --source=no-such a", "git switch no-such", "git tag x no-such", "git stash show -p stash@{0}", "git stash pop",
	}
	for _, text := range cases {
		ev := eventOf(t, text, "/tmp/w0", "/tmp/w0/no-such", "/tmp/w0/no such")
		c := &ev.Commands[0]
		class := rules.HiddenArtifact
		if c.Program == "git" {
			class, c.Hidden = rules.GitHistory, nil
			ref := "no-such"
			if c.Git.Verb == "stash" {
				ref = "stash@{0}"
			}
			c.Git.Refs = []rules.Ref{{Text: ref, Standing: rules.Foreign}}
		}
		want := in(t, id, text)
		if want.code == 127 {
			t.Logf("the image has no %s", c.Program)
			continue
		}
		m := New(Options{Vars: rules.Vars{"hidden_paths": {"/tmp/w0/no-such", "/tmp/w0/no such"}}})
		req := blocked(ev, class, func(rules.Command) bool { return true })
		targets := m.targets(req)
		got := m.reply(context.Background(), req, &targets[0])
		if text == "cat a no-such" {
			got.stdout = []byte(want.out) // templates know nothing of the other files
		}
		if string(got.stdout) != want.out || string(got.stderr) != want.err || got.exit != want.code {
			t.Errorf("%s\nsays  %q %q (%d)\nimage %q %q (%d)", text, got.stdout, got.stderr, got.exit, want.out, want.err, want.code)
		}
	}
}

type said struct {
	out, err string
	code     int
}

// in runs text in the container.
func in(t *testing.T, id, text string) said {
	t.Helper()
	cmd := exec.Command("docker", "exec", "-w", "/tmp/w0", "-e", "GIT_PAGER=cat", id, "bash", "-c", text)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its status is part of the answer
	if cmd.ProcessState == nil {
		t.Fatal("docker exec did not start")
	}
	return said{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// baseContainer starts a container of the base image with a small repository in /tmp/w0.
func baseContainer(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs Docker")
	}
	if err := exec.Command("docker", "image", "inspect", "proctor/base:dev").Run(); err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatal("the base image is not there: make image")
		}
		t.Skip("NOT TESTED: no Docker daemon, or no base image (make image)")
	}
	out, err := exec.Command("docker", "run", "-d", "--network", "none", "--label", "proctor-test=decoy", "--entrypoint", "sleep", "proctor/base:dev", "300").Output()
	if err != nil {
		t.Fatalf("docker run: %v", err)
	}
	id := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if err := exec.Command("docker", "rm", "-f", id).Run(); err != nil {
			t.Errorf("container %s is left behind: %v", id, err)
		}
	})
	setup := "mkdir -p /tmp/w0 && cd /tmp/w0 && git init -q -b main . && echo a > a && git add a && git -c user.name=a -c user.email=a@example.org commit -qm a"
	if msg, err := exec.Command("docker", "exec", id, "bash", "-c", setup).CombinedOutput(); err != nil {
		t.Fatalf("set-up: %v: %s", err, msg)
	}
	return id
}
