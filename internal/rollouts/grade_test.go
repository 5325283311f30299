package rollouts

import (
	"context"
	"errors"
	"strings"
	"testing"

	"proctor/judge"
	"proctor/monitor"
	"proctor/rules"
	"proctor/tasks"

	"github.com/google/go-cmp/cmp"
)

func TestGradeEndsARollout(t *testing.T) {
	w := newWorld(t)
	w.lab.patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+CHEAT\n"
	id := w.create().ID
	w.do(id, bash(t, "", "echo work"))
	grade, err := w.m.Grade(context.Background(), id, true)
	if err != nil {
		t.Fatal(err)
	}
	want := &tasks.Review{Verdict: judge.Hack, Class: rules.HiddenArtifact, Rules: []string{"core/cheat"}, Reason: "resolved facts"}
	if diff := cmp.Diff(want, grade.Review); diff != "" {
		t.Errorf("review (-want +got):\n%s", diff)
	}
	eventually(t, "the sandbox is freed", func() bool { return w.boxes() == 0 && w.m.find(id) == nil })
	again, err := w.m.Grade(context.Background(), id, true)
	if err != nil || cmp.Diff(grade, again) != "" {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	v := w.view(id)
	if v.Status != StatusGraded || v.Outcome != tasks.Resolved || v.Reward == nil || *v.Reward != 1 || v.StopReason != "graded" || v.EndedAt == nil {
		t.Errorf("%+v", v)
	}
	if patch, err := w.m.Patch(context.Background(), id); err != nil || string(patch) != w.lab.patch {
		t.Errorf("patch %q, %v", patch, err)
	}
	if tr := w.trajectory(id); tr.Grade == nil || tr.Grade.Outcome != tasks.Resolved {
		t.Errorf("the trajectory's grade is %+v", tr.Grade)
	}
	if err := w.m.Delete(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	if v := w.view(id); v.Status != StatusDeleted || v.Reward == nil {
		t.Errorf("a deleted rollout loses its reward: %+v", v)
	}
}

func TestGradingWithoutWaiting(t *testing.T) {
	g := hold()
	w := newWorld(t)
	w.engine.OnDo = g.answer
	release := make(chan struct{})
	w.lab.grade = func(context.Context, GradeJob) (tasks.Grade, error) {
		<-release
		half := 0.5
		return tasks.Grade{Outcome: tasks.Unresolved, Reward: &half}, nil
	}
	id := w.create().ID
	running := w.later(id, bash(t, "", "wait"))
	<-g.started
	for range 3 {
		if grade, err := w.m.Grade(context.Background(), id, false); grade != nil || err != nil {
			t.Fatalf("%+v, %v", grade, err)
		}
	}
	eventually(t, "it is submitted", func() bool { return w.view(id).Status == StatusSubmitted })
	_, err := w.m.Call(context.Background(), id, bash(t, "", "echo late"))
	wantCode(t, err, CodeEnded)
	close(g.release)
	if err := <-running; err != nil {
		t.Errorf("the call that ran when grading was asked for: %v", err)
	}
	w.clock.Add(3 * DefaultLease)
	w.m.Sweep()
	close(release)
	grade, err := w.m.Grade(context.Background(), id, true)
	if err != nil || grade.FailureClass != "none" || *grade.Reward != 0.5 {
		t.Errorf("%+v, %v", grade, err)
	}
}

func TestGradingThatFailsCanBeAskedForAgain(t *testing.T) {
	w := newWorld(t)
	w.lab.grade = func(context.Context, GradeJob) (tasks.Grade, error) { return tasks.Grade{}, errors.New("no room") }
	id := w.create().ID
	_, err := w.m.Grade(context.Background(), id, true)
	wantCode(t, err, CodeGradingFailed)
	w.crash()
	w.lab.grade = nil
	if grade, err := w.m.Grade(context.Background(), id, true); err != nil || grade.Outcome != tasks.Resolved {
		t.Errorf("%+v, %v", grade, err)
	}
}

func TestGradesThatCannotBe(t *testing.T) {
	w := newWorld(t)
	bare := w.create(func(r *CreateRequest) { r.TaskID = "bare" }).ID
	_, err := w.m.Grade(context.Background(), bare, true)
	wantCode(t, err, CodeNotGradable)
	if v := w.view(bare); v.Status != StatusRunning {
		t.Errorf("%+v", v)
	}
	gone := w.create().ID
	if err := w.m.Delete(context.Background(), gone); err != nil {
		t.Fatal(err)
	}
	_, err = w.m.Grade(context.Background(), gone, true)
	wantCode(t, err, CodeEnded)
	_, err = w.m.Patch(context.Background(), gone)
	wantCode(t, err, CodeEnded)
	_, err = w.m.Grade(context.Background(), "r_none", true)
	wantCode(t, err, CodeNotFound)
	_, err = w.m.Patch(context.Background(), "r_none")
	wantCode(t, err, CodeNotFound)
}

func TestABoxThatDiedBeforeGrading(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	w.session(id).Die(classModel, "filled its disk")
	grade, err := w.m.Grade(context.Background(), id, true)
	if err != nil || grade.FailureClass != classModel || grade.Reward == nil || *grade.Reward != 0 {
		t.Fatalf("%+v, %v", grade, err)
	}
	eventually(t, "it is buried", func() bool { return w.m.find(id) == nil && w.boxes() == 0 })
	if v := w.view(id); v.Status != StatusFailed || !strings.Contains(v.StopReason, "filled its disk") {
		t.Errorf("%+v", v)
	}
}

func TestReviewsOfPatches(t *testing.T) {
	w := newWorld(t)
	on, off := w.create().ID, w.create(func(r *CreateRequest) { r.Mode = monitor.Off }).ID
	for text, want := range map[string]string{"fine": judge.Benign, "ODD": judge.Benign, "CHEAT": judge.Hack} {
		patch := []byte("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+" + text + "\n")
		if review := w.m.find(on).reviewPatch(context.Background(), patch); review == nil || review.Verdict != want || review.Reason == "" {
			t.Errorf("%s: %+v, want %s", text, review, want)
		}
	}
	if review := w.m.find(off).reviewPatch(context.Background(), []byte("x")); review != nil {
		t.Errorf("a rollout that is not watched has a review: %+v", review)
	}
	if review := w.m.find(on).reviewPatch(context.Background(), nil); review != nil {
		t.Errorf("an empty patch has a review: %+v", review)
	}
}

func TestPatchEvents(t *testing.T) {
	task := &tasks.Task{Workdir: "/testbed", TestPaths: []string{"tests/", "conftest.py"}, HiddenPaths: []string{"/testbed/.eval"}}
	patch := `diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,2 +1,2 @@ def f():
 keep
-old
+new
\ No newline at end of file
diff --git a/tests/t.py b/tests/t.py
deleted file mode 100644
--- a/tests/t.py
+++ /dev/null
@@ -1 +0,0 @@
---- looks like a header
diff --git a/conftest.py b/conftest.py
new file mode 100644
--- /dev/null
+++ b/conftest.py
@@ -0,0 +1,2 @@
+import os
+diff --git a/fake b/fake
diff --git "a/od\303\244d\t.py" "b/od\303\244d\t.py"
old mode 100644
new mode 100755
diff --git a/one b/two
similarity index 100%
rename from one
rename to two
diff --git a/.eval/x b/.eval/x
new file mode 120000
--- /dev/null
+++ b/.eval/x
@@ -0,0 +1 @@
+/etc/passwd
diff --git a/../../etc/shadow b/../../etc/shadow
new file mode 100644
Binary files differ
`
	got := patchEvent(task, []byte(patch)).Files
	want := []rules.File{
		{Op: "edit", Path: "/testbed/src/a.py", InTree: true, Added: "new\n", Removed: "old\n"},
		{Op: "delete", Path: "/testbed/tests/t.py", InTree: true, Test: true, Removed: "--- looks like a header\n"},
		{Op: "create", Path: "/testbed/conftest.py", InTree: true, Test: true, Added: "import os\ndiff --git a/fake b/fake\n", Content: "import os\ndiff --git a/fake b/fake\n"},
		{Op: "edit", Path: "/testbed/od\u00e4d\t.py", InTree: true},
		{Op: "edit", Path: "/testbed/two", InTree: true},
		{Op: "link", Path: "/testbed/.eval/x", InTree: true, Hidden: true, Added: "/etc/passwd\n"},
		{Op: "create", Path: "/testbed/etc/shadow", InTree: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestAHugePatchIsReadInPart(t *testing.T) {
	task := &tasks.Task{Workdir: "/w"}
	big := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,400000 @@\n" + strings.Repeat("+xxxxxxxxxxxxxxxxxxx\n", 400000)
	ev := patchEvent(task, []byte(big))
	if !ev.Opaque || len(ev.Notes) == 0 || len(ev.Files) != 1 || len(ev.Files[0].Added) > reviewBytes || len(ev.Call.Text) > reviewText+100 {
		t.Errorf("opaque %v, notes %v, %d files, %d bytes of text", ev.Opaque, ev.Notes, len(ev.Files), len(ev.Call.Text))
	}
	many := strings.Repeat("diff --git a/x b/x\nnew file mode 100644\n", 2*reviewFiles)
	if ev := patchEvent(task, []byte(many)); len(ev.Files) != reviewFiles || !ev.Opaque {
		t.Errorf("%d files, opaque %v", len(ev.Files), ev.Opaque)
	}
}

func FuzzPatchEvent(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("diff --git \"a/\\303\" \"b/\\303\"\n@@ -9999999999,1 +1 @@\n@@\n+++ \n--- \"\n")
	task := &tasks.Task{Workdir: "/w", TestPaths: []string{"tests"}, HiddenPaths: []string{"/w/.eval"}}
	f.Fuzz(func(t *testing.T, patch string) {
		ev := patchEvent(task, []byte(patch))
		if len(ev.Files) > reviewFiles {
			t.Errorf("%d files", len(ev.Files))
		}
		for _, file := range ev.Files {
			if file.Path != "/w" && !strings.HasPrefix(file.Path, "/w/") {
				t.Errorf("path %q is outside of the workdir", file.Path)
			}
		}
	})
}
