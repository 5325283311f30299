package witness_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"proctor/monitor/witness"
)

// space is a mount namespace with a shell in it, which stands for a sandbox's first process.
type space struct {
	t   *testing.T
	pid int
	in  io.Writer
	out *bufio.Reader
	dir string // holds .eval/deep/x.json and other
}

func newSpace(t *testing.T) *space {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".eval", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".eval/deep/x.json", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("s3cret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		lacking(t, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return &space{t: t, pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out), dir: dir}
}

// run runs a script in a shell of its own and gives what it printed.
func (s *space) run(script string) string {
	s.t.Helper()
	fmt.Fprintf(s.in, "sh -c '%s' 2>&1; echo; echo END\n", strings.ReplaceAll(script, "'", `'\''`))
	var text strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s: %v", script, err)
		}
		if line == "END\n" {
			return strings.TrimSuffix(text.String(), "\n")
		}
		text.WriteString(line)
	}
}

func lacking(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("the witness cannot be tested: %v", err)
	}
	t.Skipf("NOT TESTED, the witness needs CAP_SYS_ADMIN: %v", err)
}

func newHub(t *testing.T) *witness.Hub {
	t.Helper()
	h, err := witness.NewHub(nil)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		lacking(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func watch(t *testing.T, h *witness.Hub, s *space, deny bool) *witness.Watcher {
	t.Helper()
	w, err := h.Watch(s.pid, witness.Options{Paths: []string{s.dir + "/.eval/**", s.dir + "/absent"}, Deny: deny})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if got := w.Marked(); !slices.Equal(got, []string{s.dir + "/.eval"}) || w.Kind() != witness.Full {
		t.Fatalf("marked %q, kind %s", got, w.Kind())
	}
	return w
}

// TestSeesDisguisedOpens opens a protected file in ways that hide its name.
func TestSeesDisguisedOpens(t *testing.T) {
	s := newSpace(t)
	w := watch(t, newHub(t), s, false)
	const file, folder = "/.eval/deep/x.json", "/.eval/deep"
	for _, tc := range []struct {
		name, script string
		opened       string // below the folder; "" for nothing
		walk         bool
	}{
		{"cat", "cat .eval/deep/x.json", file, false},
		{"glob", "cat .e*/d*/x*", file, false},
		{"link", "ln -sfn .eval l; cat l/deep/x.json", file, false},
		{"hard link", "ln .eval/deep/x.json h; cat h", file, false},
		{"moved", "mv .eval/deep/x.json m; cat m; mv m .eval/deep/x.json", file, false},
		{"put together", "a=.ev; b=al; head -1 $a$b/deep/x.json", file, false},
		{"by a shell's own read", "read x < .eval/deep/x.json; echo $x", file, false},
		{"a folder by name", "ls .eval/deep", folder, false},
		{"a folder by a link", "ln -sfn .eval l; ls l/deep/", folder, false},
		{"grep by name", "grep s3 .eval/deep/x.json", file, false},
		{"a search comes by", "grep -rh s3cret . | head -1", file, true},
		{"a listing comes by", "ls -AR . > /dev/null", folder, true},
		{"a copy takes along", "cp -r . ../taken", file, false},
		{"another file", "cat other", "", false},
		{"asked for, not opened", "test -e .eval/deep/x.json && stat .eval/deep/x.json > /dev/null", "", false},
		{"nothing", "true", "", false},
	} {
		end := w.Begin(witness.Span{Ordinal: 1})
		s.run(tc.script)
		got := end()
		if tc.opened == "" {
			if len(got) > 0 {
				t.Errorf("%s: %v", tc.name, got)
			}
			continue
		}
		i := slices.IndexFunc(got, func(o witness.Opening) bool { return o.Path == s.dir+tc.opened && o.Walk == tc.walk })
		if i < 0 {
			t.Errorf("%s: no opening of %s with walk=%v in %+v", tc.name, tc.opened, tc.walk, got)
			continue
		}
		if o := got[i]; o.Denied || o.Earlier || o.Program == "" || o.Line == "" || !strings.Contains(o.String(), o.Path) {
			t.Errorf("%s: %+v", tc.name, o)
		}
	}
	end := w.Begin(witness.Span{Ordinal: 2})
	if _, err := os.ReadFile(s.dir + file); err != nil {
		t.Fatal(err)
	}
	if got := end(); len(got) > 0 {
		t.Errorf("our own read counts: %v", got)
	}
}

// TestDenies lets nothing through, and words it as if nothing were there.
func TestDenies(t *testing.T) {
	s := newSpace(t)
	w := watch(t, newHub(t), s, true)
	for _, tc := range []struct{ script, want string }{
		{"cat .e*/d*/x*", "cat: '.e*/d*/x*': No such file or directory"},
		{"cat $(echo .e)val/deep/x.json", "cat: .eval/deep/x.json: No such file or directory"},
		{"head -1 other; head -1 .eval/deep/x.json", "s3cret\nhead: cannot open '.eval/deep/x.json' for reading: No such file or directory"},
		{"grep -r s3cret", "other:s3cret"},
		{"ls $(echo .ev)al", "ls: cannot access '.eval': No such file or directory"},
	} {
		end := w.Begin(witness.Span{})
		said := s.run(tc.script)
		got := end()
		if strings.Contains(said, "x.json") && strings.Contains(said, "s3cret\n") && !strings.Contains(tc.want, "s3cret") {
			t.Errorf("%s: the secret is out: %q", tc.script, said)
		}
		if told := strings.TrimSpace(string(witness.Reword([]byte(said), got))); told != strings.TrimSpace(tc.want) {
			t.Errorf("%s said\n%s\nreworded\n%s\nwant\n%s", tc.script, said, told, tc.want)
		}
	}
}

// TestWhoseOpen attributes opens: to the call that runs and not to a control call beside it, to no
// call of the harness, to the next call where a process was left behind.
func TestWhoseOpen(t *testing.T) {
	s := newSpace(t)
	w := watch(t, newHub(t), s, false)
	control := w.Begin(witness.Span{Control: true})
	main := w.Begin(witness.Span{Ordinal: 1})
	s.run("cat .eval/deep/x.json")
	if c, m := control(), main(); len(c) != 0 || len(m) != 1 {
		t.Errorf("control call %v, call %v", c, m)
	}

	s.run("cat .eval/deep/x.json") // between calls
	harness := w.Begin(witness.Span{Harness: true})
	s.run("cat .eval/deep/x.json")
	if got := harness(); len(got) != 0 {
		t.Errorf("harness call: %v", got)
	}
	next := w.Begin(witness.Span{Ordinal: 2})
	if got := next(); len(got) != 1 || !got[0].Earlier {
		t.Errorf("what was left behind: %v", got)
	}

	done := w.Harness()
	end := w.Begin(witness.Span{Ordinal: 3})
	s.run("cat .eval/deep/x.json") // stands for a one-shot: a child of the first process, started since
	done()
	if got := end(); len(got) != 0 {
		t.Errorf("the harness's one-shot: %v", got)
	}

	s.run("(sleep 0.3; cat .eval/deep/x.json > y) > /dev/null 2>&1 &")
	time.Sleep(100 * time.Millisecond)
	end = w.Begin(witness.Span{Ordinal: 4})
	s.run("sleep 0.5")
	if got := end(); len(got) != 1 {
		t.Errorf("a process that an earlier call left behind: %v", got)
	}
}

// TestTwoSandboxes are one hub's: each sees its own.
func TestTwoSandboxes(t *testing.T) {
	h := newHub(t)
	a, b := newSpace(t), newSpace(t)
	wa, wb := watch(t, h, a, false), watch(t, h, b, true)
	if _, err := h.Watch(a.pid, witness.Options{}); err == nil {
		t.Error("one sandbox is watched twice")
	}
	enda, endb := wa.Begin(witness.Span{}), wb.Begin(witness.Span{})
	if out := a.run("cat .eval/deep/x.json"); out != "s3cret\n" {
		t.Errorf("observed, not denied: %q", out)
	}
	if ga, gb := enda(), endb(); len(ga) != 1 || len(gb) != 0 {
		t.Errorf("a %v, b %v", ga, gb)
	}
}

// TestLinksLeadNowhereOutside: a protected path that the sandbox turned into a link leads where it
// leads inside, and nothing of the host is marked for it.
func TestLinksLeadNowhereOutside(t *testing.T) {
	h, s := newHub(t), newSpace(t)
	s.run("mkdir root; mkdir root/etc; ln -s /etc/hostname trap; ln -s loop loop")
	w, err := h.Watch(s.pid, witness.Options{Paths: []string{s.dir + "/loop", s.dir + "/fifo", "/proc/self/exe"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if got := w.Marked(); slices.Contains(got, s.dir+"/loop") {
		t.Errorf("marked %q", got)
	}
}

// TestNoSandbox refuses to watch ourselves.
func TestNoSandbox(t *testing.T) {
	h := newHub(t)
	for _, pid := range []int{os.Getpid(), 1 << 30} {
		if _, err := h.Watch(pid, witness.Options{}); err == nil {
			t.Errorf("pid %d is watched", pid)
		}
	}
}

// TestNothingLeaks opens and closes many watchers, while processes open what they watch.
func TestNothingLeaks(t *testing.T) {
	h, s := newHub(t), newSpace(t)
	count := func() (fds, routines int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries), runtime.NumGoroutine()
	}
	fds, routines := count()
	for range 50 {
		w, err := h.Watch(s.pid, witness.Options{Paths: []string{s.dir + "/.eval"}})
		if err != nil {
			t.Fatal(err)
		}
		end := w.Begin(witness.Span{})
		s.run("cat .eval/deep/x.json")
		if got := end(); len(got) != 1 {
			t.Fatal(got)
		}
		for range 2 {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.Begin(witness.Span{})(); len(got) > 0 {
			t.Errorf("a closed watcher sees %v", got)
		}
	}
	if f, r := count(); f > fds || r > routines+1 {
		t.Errorf("%d descriptors and %d goroutines, %d and %d before", f, r, fds, routines)
	}
}

// TestHubClosed lets openers go on once nobody answers.
func TestHubClosed(t *testing.T) {
	h, s := newHub(t), newSpace(t)
	w := watch(t, h, s, true)
	for range 2 {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if out := s.run("cat .eval/deep/x.json"); out != "s3cret\n" {
		t.Errorf("after the hub was closed: %q", out)
	}
	if got := w.Begin(witness.Span{})(); len(got) > 0 {
		t.Error(got)
	}
}

func TestNone(t *testing.T) {
	if w := (witness.None{}); w.Kind() != witness.Off || w.Begin(witness.Span{})() != nil {
		t.Error("None sees something")
	}
}

// TestReword leaves alone what no refused open explains.
func TestReword(t *testing.T) {
	chmod := []byte("chmod: changing permissions of 'x': Operation not permitted\n")
	if got := witness.Reword(chmod, []witness.Opening{{Path: "/x"}}); string(got) != string(chmod) {
		t.Errorf("%s", got)
	}
	denied := []witness.Opening{{Path: "/hidden/x", Program: "/usr/bin/python3.11", Denied: true}}
	for said, want := range map[string]string{
		"PermissionError: [Errno 1] Operation not permitted: '/hidden/x'\n": "FileNotFoundError: [Errno 2] No such file or directory: '/hidden/x'\n",
		"Error: EPERM: operation not permitted, open '/hidden/x'\n":         "Error: ENOENT: no such file or directory, open '/hidden/x'\n",
		"open /hidden/x: operation not permitted":                           "open /hidden/x: no such file or directory",
		"Os { code: 1 } Operation not permitted (os error 1)":               "Os { code: 1 } No such file or directory (os error 2)",
		"all is well\n": "all is well\n",
	} {
		if got := string(witness.Reword([]byte(said), denied)); got != want {
			t.Errorf("%q -> %q, want %q", said, got, want)
		}
	}
}
