package box_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// put writes bytes to a file.
func (b *testBox) put(path, data string) {
	b.t.Helper()
	res, err := b.Exec(context.Background(), sandbox.Exec{Argv: []string{"sh", "-c", `cat > "$1"`, "sh", path}, Stdin: []byte(data)})
	if err != nil || *res.Exit != 0 {
		b.t.Fatalf("put %s: %+v %v", path, res, err)
	}
}

// get reads a file's bytes.
func (b *testBox) get(path string) string {
	b.t.Helper()
	data, err := b.ReadFile(context.Background(), path, 1<<20)
	if err != nil {
		b.t.Fatalf("get %q: %v", path, err)
	}
	return string(data)
}

// tool makes a file call that has to succeed.
func (b *testBox) tool(call sandbox.Call) string {
	b.t.Helper()
	res := b.do(call)
	if code(res) != 0 {
		b.t.Errorf("%s %.80q: exit %d, %q", call.Op, call.Path, code(res), res.Output)
	}
	return string(res.Output)
}

func (b *testBox) refuses(call sandbox.Call) {
	b.t.Helper()
	if res := b.do(call); code(res) != 1 || len(res.Output) < 5 {
		b.t.Errorf("%+.200v: exit %d, %.200q; want a refusal with words", call, code(res), res.Output)
	}
}

func swap(old, fresh string) sandbox.Call {
	return sandbox.Call{Op: sandbox.OpReplace, Old: old, New: fresh}
}

func insert(line int, text string) sandbox.Call {
	return sandbox.Call{Op: sandbox.OpInsert, Line: line, New: text}
}

func TestEdits(t *testing.T) {
	b := newBox(t, box.Init{})
	const refused = "\x00"
	binary := strings.Repeat("\x7fELF\x00\x01\x02old\x00\xff", 50)
	for _, c := range []struct {
		before string
		call   sandbox.Call
		after  string
	}{
		{"a.b axb\n", swap("a.b", "\\1$& é"), "\\1$& é axb\n"},
		{"axb\nsame\nsame\n", swap("b\nsame\ns", ""), "axame\n"},
		{"one\n", swap("none", "x"), refused}, {"same\nsame\n", swap("same", "x"), refused},
		{"aaa\n", swap("aa", "x"), refused}, {"one\n", swap("", "x"), refused},
		{"a\nb\n", insert(1, "mid"), "a\nmid\nb\n"}, {"a\nb\n", insert(1, "mid\n"), "a\nmid\nb\n"},
		{"a\nb\n", insert(0, "top"), "top\na\nb\n"}, {"a\nb\n", insert(2, "end"), "a\nb\nend\n"},
		{"a\nb", insert(2, "end"), "a\nb\nend"}, {"", insert(0, "x"), "x\n"},
		{"a\nb\n", insert(99, "x"), refused}, {"a\nb\n", insert(3, "x"), refused}, {"a\nb\n", insert(-1, "x"), refused},
		{"\xef\xbb\xbfone\r\ntwo\r\nthree", swap("two", "2"), "\xef\xbb\xbfone\r\n2\r\nthree"},
		{"\xef\xbb\xbfone\r\n", insert(0, "top"), "\xef\xbb\xbftop\r\none\r\n"},
		{"one\r\ntwo\r\n", insert(1, "mid"), "one\r\nmid\r\ntwo\r\n"},
		{"one\r\ntwo\r\n", insert(1, "m1\nm2"), "one\r\nm1\r\nm2\r\ntwo\r\n"},
		{"one\r\ntwo\r\n", swap("one\ntwo", "1\n2"), "1\r\n2\r\n"},
		{"one\r\ntwo\n", swap("two", "a\nb"), "one\r\na\nb\n"},
		{"caf\xe9\nold\nna\xefve\n", swap("old", "new"), "caf\xe9\nnew\nna\xefve\n"},
		{binary, swap("old", "new"), refused}, {binary, insert(0, "x"), refused},
		{binary, sandbox.Call{Op: sandbox.OpView}, refused},
	} {
		b.put("/tmp/edited", c.before)
		c.call.Path = "/tmp/edited"
		res := b.do(c.call)
		want, wantCode := c.after, 0
		if want == refused {
			want, wantCode = c.before, 1
		}
		if got := b.get("/tmp/edited"); got != want || code(res) != wantCode || len(res.Output) == 0 {
			t.Errorf("%+v of %.60q: exit %d, %q, file %.200q, want %.200q", c.call, c.before, code(res), res.Output, got, want)
		}
	}
}

func TestEditKeepsFormAndUndo(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp"})
	form := "cd /tmp; ls -ln form.txt | awk '{ print substr($1, 1, 10), $2, $3, $4 }'; readlink soft.txt"
	b.put("/tmp/form.txt", "old\n")
	b.out("cd /tmp; ln -s form.txt soft.txt; ln form.txt hard.txt; chown 123:124 form.txt; chmod 750 form.txt")
	before := b.out(form)
	call := swap("old", "new")
	call.Path = "soft.txt"
	b.tool(call)
	b.talk(step{form, before, nil, 0}, step{"cat form.txt hard.txt", "new\nnew\n", nil, 0})
	b.tool(sandbox.Call{Op: sandbox.OpCreate, Path: "/tmp/hard.txt", Text: "longer than before"})
	b.talk(step{form, before, nil, 0}, step{"cat form.txt", "longer than before", nil, 0})
	// Other names of one file: an edit is undone under the name that it was made under.
	b.tool(sandbox.Call{Op: sandbox.OpUndo, Path: "/tmp/hard.txt"})
	b.tool(sandbox.Call{Op: sandbox.OpUndo, Path: "/tmp/soft.txt"})
	b.talk(step{form, before, nil, 0}, step{"cat form.txt", "old\n", nil, 0})
	b.refuses(sandbox.Call{Op: sandbox.OpUndo, Path: "/tmp/form.txt"})

	b.put("/tmp/undo.txt", "one\r\ntwo")
	for _, c := range []sandbox.Call{swap("two", "2"), insert(0, "0"), {Op: sandbox.OpUndo}} {
		c.Path = "/tmp/undo.txt"
		b.tool(c)
	}
	if got := b.get("/tmp/undo.txt"); got != "one\r\n2" {
		t.Errorf("after undo %q", got)
	}
	b.put("/tmp/undo.txt", "else")
	b.refuses(sandbox.Call{Op: sandbox.OpUndo, Path: "/tmp/undo.txt"})

	b.tool(sandbox.Call{Op: sandbox.OpCreate, Path: "made/here.txt", Text: "x"})
	b.tool(sandbox.Call{Op: sandbox.OpUndo, Path: "made/here.txt"})
	b.talk(match("ls /tmp/made", "^$", 0))
}

func TestRefusedPaths(t *testing.T) {
	b := newBox(t, box.Init{})
	b.out("mkfifo /tmp/pipe; ln -sfn loop /tmp/loop; ln -s /none /tmp/dangling; printf '1\\n2\\n3\\n' > /tmp/three; " +
		"ln -sfn /proc/1/environ /tmp/env; ln -sfn /proc/self/maps /tmp/maps; ln -sfn /proc/self /tmp/self")
	for _, path := range []string{"/tmp/pipe", "/dev/zero", "/tmp/none", "/tmp/loop", "", "/tmp/" + strings.Repeat("y", 300), "/tmp/nul\x00byte",
		"/proc/1/environ", "/proc/self/environ", "/proc/self/maps", "/proc/1/maps", "/proc/self/fd", "/proc/1/fd", "/proc/self/fd/1",
		"/proc/thread-self/environ", "/tmp/env", "/tmp/maps", "/tmp/self", "/tmp/self/status", "/proc/self/exe", "/proc/self/root/etc/passwd", "/proc/self/cwd"} {
		b.refuses(sandbox.Call{Op: sandbox.OpView, Path: path})
		if _, err := b.ReadFile(context.Background(), path, 100); !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadFile %.60q: %v", path, err)
		}
	}
	for _, path := range []string{"/tmp/pipe", "/dev/zero", "/tmp", "/tmp/none", "/proc/version"} {
		call := swap("a", "b")
		call.Path = path
		b.refuses(call)
	}
	for _, path := range []string{"/tmp/pipe", "/dev/zero", "/tmp", "/proc/none/x", "/tmp/dangling", "/tmp/three/x", "/proc/self/comm", ""} {
		b.refuses(sandbox.Call{Op: sandbox.OpCreate, Path: path, Text: "x"})
	}
	for _, r := range [][]int{{3, 2}, {9, 12}, {0, 1}, {-1, 2}, {1, 0}, {4, -1}} {
		b.refuses(sandbox.Call{Op: sandbox.OpView, Path: "/tmp/three", Range: r})
	}
	b.refuses(sandbox.Call{Op: sandbox.OpUndo, Path: "/tmp/three"})
	b.refuses(sandbox.Call{Op: "dance", Path: "/tmp/three"})
}

func TestView(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp"})
	b.out("mkdir -p seen/inner; printf 'alpha\\nbeta\\r\\ngamma\\ndelta' > seen/leaf; : > seen/empty; touch seen/inner/deep seen/.hidden; " +
		"ln -s leaf seen/link; mkdir seen/bare; awk 'BEGIN { for (i = 1; i <= 3000000; i++) printf \"%015d\\n\", i }' > big; " +
		"head -c 3000000 /dev/zero | tr '\\0' x > line")
	for _, c := range []struct {
		path  string
		r     []int
		want  string
		exact bool
	}{
		{"seen/leaf", nil, "     1\talpha\n     2\tbeta\r\n     3\tgamma\n     4\tdelta\n", true},
		{"seen/link", []int{2, 3}, "     2\tbeta\r\n     3\tgamma\n", true},
		{"seen/leaf", []int{3, -1}, "     3\tgamma\n     4\tdelta\n", true},
		{"/tmp/seen/../seen/leaf", []int{4, 99}, "     4\tdelta\n", true},
		{"seen/empty", nil, "(an empty file)\n", true},
		{"seen", nil, "bare/\nempty\ninner/\ninner/deep\nleaf\nlink\n", true},
		{"seen/bare", nil, "(an empty folder)\n", true},
		{"big", nil, "     1\t000000000000001\n", false},
		{"big", []int{2_000_000, 2_000_001}, "2000000\t000000002000000\n2000001\t000000002000001\n", true},
		{"line", nil, "     1\txxxx", false},
	} {
		got := b.tool(sandbox.Call{Op: sandbox.OpView, Path: c.path, Range: c.r})
		if c.exact && got != c.want || !strings.HasPrefix(got, c.want) || len(got) > sandbox.OutputLimit {
			t.Errorf("view %s %v: %.300q (%d bytes)", c.path, c.r, got, len(got))
		}
	}
	res := b.do(sandbox.Call{Op: sandbox.OpView, Path: "big"})
	if !res.Truncated || !regexp.MustCompile(`(?m)^\[only the first part is shown, to line \d+; the whole file has 48000000 bytes`).Match(res.Output) {
		t.Errorf("truncated %t, %q", res.Truncated, res.Output[len(res.Output)-200:])
	}
}

func TestCreateOddNames(t *testing.T) {
	b := newBox(t, box.Init{})
	text := "a é😀\r\n\n\tno newline"
	for _, name := range []string{"with blank", "quote'\"$x`", "new\nline", "-rf", "é😀", "*?[", "\\", strings.Repeat("x", 200), "bad\xffutf8"} {
		path := "/tmp/odd/" + name + "/new/" + name + ".txt"
		b.tool(sandbox.Call{Op: sandbox.OpCreate, Path: path, Text: text})
		if got := b.get(path); got != text {
			t.Errorf("%q holds %q", path, got)
		}
		call := swap("a", "edited")
		call.Path = path
		b.tool(call)
		if got := b.tool(sandbox.Call{Op: sandbox.OpView, Path: path}); !strings.Contains(got, "edited é😀") {
			t.Errorf("%q shows %q", path, got)
		}
	}
}

func TestFullDisk(t *testing.T) {
	b := newBox(t, box.Init{})
	b.out("mkdir /tmp/small && mount -t tmpfs -o size=256k none /tmp/small")
	b.put("/tmp/small/old", strings.Repeat("y\n", 40<<10)+"end\n")
	b.refuses(sandbox.Call{Op: sandbox.OpCreate, Path: "/tmp/small/new", Text: strings.Repeat("x", 400<<10)})
	b.refuses(sandbox.Call{Op: sandbox.OpCreate, Path: "/tmp/small/old", Text: strings.Repeat("x", 400<<10)})
	b.refuses(sandbox.Call{Op: sandbox.OpReplace, Path: "/tmp/small/old", Old: "end", New: strings.Repeat("z", 400<<10)})
	b.talk(step{"cd /tmp/small; ls; tail -n 1 old; wc -c < old; tr -d 'y\\n' < old", "old\nend\n81924\nend", nil, 0})
	b.tool(sandbox.Call{Op: sandbox.OpReplace, Path: "/tmp/small/old", Old: "end", New: "fits"})
}

// File tools have the rights of the sandbox's user, not of the agent.
func TestFilesAsUser(t *testing.T) {
	b := newBox(t, box.Init{User: "4242:4343", Workdir: "/tmp/own"})
	res, err := b.Exec(context.Background(), sandbox.Exec{User: "root", Argv: []string{"sh", "-c",
		"echo secret > /tmp/secret; chmod 600 /tmp/secret; mkdir -m 700 /tmp/closed; echo x > /tmp/closed/x; echo r > /tmp/readable; chmod 1777 /tmp; id -u"}})
	if err != nil || string(res.Stdout) != "0\n" {
		t.Fatalf("%+v %v", res, err)
	}
	b.talk(step{"id -u; id -g; id -G; pwd; grep CapEff /proc/self/status", "4242\n4343\n4343\n/tmp/own\nCapEff:\t0000000000000000\n", nil, 0})
	b.tool(sandbox.Call{Op: sandbox.OpCreate, Path: "a/mine.txt", Text: "x"})
	b.talk(step{"stat -c '%u:%g %a' a a/mine.txt", "4242:4343 755\n4242:4343 644\n", nil, 0})
	b.tool(sandbox.Call{Op: sandbox.OpView, Path: "/tmp/readable"})
	for _, call := range []sandbox.Call{{Op: sandbox.OpView, Path: "/tmp/secret"}, {Op: sandbox.OpView, Path: "/tmp/closed"}, {Op: sandbox.OpView, Path: "/tmp/closed/x"},
		{Op: sandbox.OpCreate, Path: "/tmp/readable", Text: "x"}, {Op: sandbox.OpCreate, Path: "/etc/nope", Text: "x"}, {Op: sandbox.OpReplace, Path: "/tmp/secret", Old: "s", New: "t"}} {
		b.refuses(call)
	}
	if got := b.get("/tmp/secret"); got != "secret\n" { // the host reads as root
		t.Errorf("%q", got)
	}
	cut := b.do(sandbox.Call{Op: sandbox.OpShell, Command: "setsid sleep 300", Timeout: 300e6})
	flood := b.sh("head -c 100000 /dev/zero | tr '\\0' x")
	if !cut.TimedOut || !flood.Truncated {
		t.Errorf("timed out %t, truncated %t", cut.TimedOut, flood.Truncated)
	}
	b.talk(step{"stat -c %u /tmp/output-*", "4242\n", nil, 0}, match("ps -e | grep -c '[s]leep 300'", "^0\n", 1))
}

func TestReadFileAndStat(t *testing.T) {
	ctx := context.Background()
	b := newBox(t, box.Init{})
	b.out("mkdir -p /tmp/d; printf 0123456789 > /tmp/d/f; ln -s d/f /tmp/l; chown 5:6 /tmp/d/f; chmod 4751 /tmp/d/f")
	if got, err := b.ReadFile(ctx, "/tmp/l", 4); string(got) != "0123" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	info, err := b.Stat(ctx, "/tmp/l")
	if err != nil || info.Real != "/tmp/d/f" || info.Path != "/tmp/l" || info.Size != 10 || info.UID != 5 || info.GID != 6 ||
		info.Mode != 0o751|fs.ModeSetuid || info.Time.IsZero() {
		t.Errorf("%+v %v", info, err)
	}
	if info, err := b.Stat(ctx, "/tmp"); err != nil || !info.Mode.IsDir() {
		t.Errorf("%+v %v", info, err)
	}
	for path, want := range map[string]error{"/none": fs.ErrNotExist, "/tmp/d/f/x": fs.ErrNotExist, "/tmp": fs.ErrInvalid, "/dev/zero": fs.ErrInvalid,
		"/proc/version": fs.ErrInvalid, "": fs.ErrInvalid} {
		if _, err := b.ReadFile(ctx, path, 10); !errors.Is(err, want) {
			t.Errorf("ReadFile %q: %v", path, err)
		}
	}
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(i * 7)
	}
	b.put("/tmp/big", string(data))
	if got, err := b.ReadFile(ctx, "/tmp/big", 1<<30); err != nil || hex.EncodeToString(got) != hex.EncodeToString(data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
