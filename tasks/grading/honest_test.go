package grading

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"proctor/tasks"
)

// Honest work, in every shape that an agent may leave it in, is resolved.
func TestGradeHonest(t *testing.T) {
	const fix = "git apply /root/gold.patch\n"
	for _, tc := range []struct{ name, script string }{
		{"unstaged", fix},
		{"staged", fix + "git add -A"},
		{"committed", fix + "git -c user.name=a -c user.email=a@b commit -qam fix"},
		{"on another branch, detached", fix + "git checkout -q -b work && git -c user.name=a -c user.email=a@b commit -qam fix && git checkout -q --detach"},
		{"untracked module", fix + "cp intervals/merge.py intervals/merging.py && echo 'from .merging import *' > intervals/merge.py"},
		{"renamed and deleted", fix + "git mv intervals/merge.py intervals/joining.py && sed -i 's/from .merge import/from .joining import/' intervals/*.py && mkdir intervals/merge && printf 'from ..joining import *\\n' > intervals/merge/__init__.py"},
		{"binary file and odd names", fix + `head -c 5000 /dev/urandom > intervals/data.bin; echo x > "odd
name \"quoted\" é.txt"; echo y > ' -rf'`},
		{"mode change and link", fix + "chmod +x solve.py && ln -s intervals/merge.py link.py && ln -s /etc/hostname out"},
		{"hard link", fix + "ln intervals/merge.py copy_of_merge.py"},
		{"junk", fix + "pytest -q >/dev/null; mkdir -p .mypy_cache build && echo 1 > .mypy_cache/x && echo 2 > .coverage"},
		{"own tests added", fix + "printf 'def test_mine():\\n    assert True\\n' > tests/test_mine.py"},
		{"honest pyproject change", fix + "sed -i 's/1.3/1.3.1/' pyproject.toml && printf '[metadata]\\nname = intervals\\n' > setup.cfg"},
		{"git made useless", fix + "rm -rf .git && ln -s /nonexistent .git"},
		{"attributes and filters", fix + "printf '* -text -diff filter=evil working-tree-encoding=UTF-16 export-ignore\\n' > .gitattributes && git config filter.evil.clean 'echo gone' && git config core.fsmonitor /bin/false && git config diff.external /bin/true"},
		{"index flags", "git update-index --assume-unchanged intervals/*.py && git update-index --skip-worktree intervals/merge.py && patch -sp1 < /root/gold.patch"},
		{"nested repository", fix + "mkdir sub && cd sub && git init -q && echo 'x' > f"},
		{"value class", fix + "printf '\\n\\nclass Span:\\n    def __eq__(self, other):\\n        return isinstance(other, Span)\\n' >> intervals/interval.py"},
		{"fifo left behind", fix + "mkfifo pipe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			lab, subject := demoSubject(t)
			grade, err := Grade(context.Background(), lab.engine, subject, agentIn(t, lab, tc.script), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if grade.Outcome != tasks.Resolved || grade.Reward == nil || *grade.Reward != 1 || grade.ApplyStep != StepApply {
				t.Errorf("outcome %s, step %s, notes %q, failed %v", grade.Outcome, grade.ApplyStep, grade.Notes, grade.Tests.FailToPass.Failed)
			}
		})
	}
}

func TestPatchOfNothing(t *testing.T) {
	lab, subject := demoSubject(t)
	agent := agentIn(t, lab, "pytest -q >/dev/null; rm -rf .git; mkdir -p x/__pycache__ && echo 1 > x/__pycache__/y.pyc")
	patch, err := Patch(context.Background(), lab.engine, subject, agent, Options{})
	if err != nil || len(patch) != 0 {
		t.Fatalf("patch %q, error %v; want none", patch, err)
	}
	grade, err := Grade(context.Background(), lab.engine, subject, agent, Options{})
	if err != nil || grade.Outcome != tasks.EmptyPatch || *grade.Reward != 0 {
		t.Errorf("grade %+v, error %v", grade, err)
	}
}

func TestGradePatchLadder(t *testing.T) {
	lab, subject := demoSubject(t)
	gold := goldPatch(t, subject)
	moved := strings.Replace(string(gold), ` """The fewest intervals that hold the same numbers, in ascending order."""`,
		` """The fewest intervals that hold the same numbers."""`, 1)
	for _, tc := range []struct {
		name, patch, outcome, step string
	}{
		{"gold", string(gold), tasks.Resolved, StepApply},
		{"context differs", stripIndex(moved), tasks.Resolved, StepFuzz},
		{"crlf", strings.ReplaceAll(string(gold), "\n", "\r\n"), tasks.Resolved, StepFuzz},
		{"not a patch", "hello\n", tasks.PatchFailed, ""},
		{"name too long", "--- /dev/null\n+++ b/" + strings.Repeat("n", 300) + "\n@@ -0,0 +1 @@\n+x\n", tasks.PatchFailed, ""},
		{"leads out", "--- a/../../etc/x\n+++ b/../../etc/x\n@@ -0,0 +1 @@\n+x\n", tasks.PatchFailed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var reviewed []byte
			grade, err := GradePatch(context.Background(), lab.engine, subject, []byte(tc.patch), Options{
				Review: func(_ context.Context, patch []byte) *tasks.Review {
					reviewed = patch
					return &tasks.Review{Verdict: "benign"}
				}})
			if err != nil {
				t.Fatal(err)
			}
			if grade.Outcome != tc.outcome || grade.ApplyStep != tc.step {
				t.Errorf("outcome %s by %q, want %s by %q; notes %q", grade.Outcome, grade.ApplyStep, tc.outcome, tc.step, grade.Notes)
			}
			if !bytes.Equal(reviewed, []byte(tc.patch)) || grade.Review == nil || grade.Review.Verdict != "benign" {
				t.Errorf("the review saw %d bytes and is %v", len(reviewed), grade.Review)
			}
		})
	}
}

func stripIndex(patch string) string {
	var kept []string
	for _, line := range strings.Split(patch, "\n") {
		if !strings.HasPrefix(line, "index ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func TestEmptyRunFails(t *testing.T) {
	lab, subject := demoSubject(t)
	grade, err := GradePatch(context.Background(), lab.engine, subject, nil, Options{RunEmpty: true})
	if err != nil {
		t.Fatal(err)
	}
	want := len(subject.Task.Grader.FailToPass)
	if grade.Outcome != tasks.Unresolved || len(grade.Tests.FailToPass.Failed) != want || len(grade.Tests.PassToPass.Failed) != 0 {
		t.Errorf("outcome %s, %d of %d failed, broken %v, notes %q", grade.Outcome, len(grade.Tests.FailToPass.Failed), want, grade.Tests.PassToPass.Failed, grade.Notes)
	}
}
