package box_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

var noticed = regexp.MustCompile(`(?m)^\[(\d+) bytes left out here; the whole output is in the file (/\S+) \]$`)

func TestFlood(t *testing.T) {
	b := newBox(t, box.Init{})
	lines := 3_125_000 // 50 MB
	if testing.Short() {
		lines = 100_000
	}
	began := time.Now()
	res := b.do(sandbox.Call{Op: sandbox.OpShell, Timeout: 2 * time.Minute,
		Command: fmt.Sprintf(`awk 'BEGIN { for (i = 1; i <= %d; i++) printf "%%015d\n", i }'`, lines)})
	t.Logf("%d lines of 16 bytes in %s", lines, time.Since(began))
	out := string(res.Output)
	if code(res) != 0 || !res.Truncated || !strings.HasPrefix(out, "000000000000001\n") || !strings.HasSuffix(out, fmt.Sprintf("%015d\n", lines)) {
		t.Fatalf("exit %d, truncated %t, output %.100q", code(res), res.Truncated, out)
	}
	n := noticed.FindStringSubmatch(out)
	if n == nil {
		t.Fatalf("no notice in %d bytes", len(out))
	}
	left, _ := strconv.Atoi(n[1])
	if shown := len(out) - len(n[0]) - 1; left+shown != lines*16 || shown > sandbox.OutputLimit {
		t.Errorf("%d shown and %d left out of %d", shown, left, lines*16)
	}
	for _, line := range strings.Split(strings.TrimSpace(noticed.ReplaceAllString(out, "000000000000000")), "\n") {
		if len(line) != 15 {
			t.Errorf("a torn line %q", line)
		}
	}
	b.talk(match("wc -c < "+n[2], fmt.Sprintf("^ *%d\n$", lines*16), 0), alive)
	if rss := memory(t, b.pid); rss > 32<<20 {
		t.Errorf("the agent's peak memory is %d MiB", rss>>20)
	}
}

// memory gives the peak resident memory of a process in bytes.
func memory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no VmHWM in %s", text)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb << 10
}

func TestFloodOnOneLine(t *testing.T) {
	b := newBox(t, box.Init{})
	res := b.sh("printf start; head -c 50000000 /dev/zero | tr '\\0' x; printf ending")
	out := string(res.Output)
	if !strings.HasPrefix(out, "startxxx") || !strings.HasSuffix(out, "xxxending") || !res.Truncated {
		t.Errorf("truncated %t, %.50q ... %.50q", res.Truncated, out, out[max(0, len(out)-50):])
	}
}

func TestLastBytesAndOrder(t *testing.T) {
	b := newBox(t, box.Init{})
	for n := range 20 {
		last := fmt.Sprintf("last%d", n)
		b.talk(step{"head -c 8000 /dev/zero | tr '\\0' x; printf " + last, strings.Repeat("x", 8000) + last, nil, 0})
		b.talk(match("sh -c 'printf "+last+"; kill -9 $$'", `^`+last+`(\n?.*Killed.*)?\n?$`, 137))
	}
	var want strings.Builder
	for n := range 400 {
		fmt.Fprintln(&want, n)
	}
	b.talk(step{"for ((i = 0; i < 400; i++)); do if ((i % 2)); then echo $i >&2; else echo $i; fi; done", want.String(), nil, 0})
}

func TestShellJobs(t *testing.T) {
	b := newBox(t, box.Init{})
	b.talk(step{"(sleep 0.3; echo later; sleep 300) & echo started", "started\n", nil, 0})
	res := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: "shell", Wait: 5 * time.Second})
	if string(res.Output) != "later\n" || res.Handle != "shell" || res.Exit != nil {
		t.Errorf("%q, handle %q, exit %d", res.Output, res.Handle, code(res))
	}
	b.talk(loose("exit 1")) // a job's output outlives its shell
	b.talk(step{"(sleep 0.2; echo of the second) &", "", nil, 0})
	res = b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: "shell", Wait: 5 * time.Second})
	if string(res.Output) != "of the second\n" {
		t.Errorf("%q", res.Output)
	}
	b.do(sandbox.Call{Op: sandbox.OpKill, Handle: "shell"})
	b.talk(match("grep -l '^sleep' /proc/[0-9]*/cmdline; echo none", "(?m)^none\n", 0), alive) // bash may tell of killed jobs
	if out := b.out("grep -l '^sleep' /proc/[0-9]*/cmdline; true"); strings.Contains(out, "/proc") {
		t.Errorf("jobs left: %q", out)
	}
}

// poll reads a handle until it ends, and gives all its output and the last answer.
func (b *testBox) poll(handle string) (string, sandbox.Result) {
	b.t.Helper()
	var text strings.Builder
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		res := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: handle, Wait: time.Second})
		text.Write(res.Output)
		if res.Handle == "" {
			return text.String(), res
		}
	}
	b.t.Fatalf("%s does not end; %q", handle, text.String())
	return "", sandbox.Result{}
}

func TestHandles(t *testing.T) {
	b := newBox(t, box.Init{})
	b.talk(keep, step{"export FROM=shell", "", nil, 0})
	res := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: `echo "$PWD $FROM"; read line; echo got:$line; sleep 0.2; echo done >&2; exit 7`})
	if res.Handle == "" || res.Exit != nil {
		t.Fatalf("%+v", res)
	}
	b.talk(alive)
	in := b.do(sandbox.Call{Op: sandbox.OpInput, Handle: res.Handle, Text: "some words\n"})
	if in.Exit != nil || in.Handle != res.Handle {
		t.Errorf("input: exit %d, handle %q, %q", code(in), in.Handle, in.Output)
	}
	out, last := b.poll(res.Handle)
	if out != "/tmp/kept shell\ngot:some words\ndone\n" || code(last) != 7 {
		t.Errorf("exit %d, output %q", code(last), out)
	}
	if again := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: res.Handle}); code(again) != 7 || len(again.Output) > 0 {
		t.Errorf("a second poll of the end: exit %d, %q", code(again), again.Output)
	}
	for _, call := range []sandbox.Call{{Op: sandbox.OpOutput, Handle: "none"}, {Op: sandbox.OpInput, Handle: "none", Text: "x"},
		{Op: sandbox.OpKill, Handle: "none"}, {Op: sandbox.OpInput, Handle: "shell", Text: "x"},
		{Op: sandbox.OpInput, Handle: res.Handle, Text: "x"}, {Op: sandbox.OpSpawn, Command: "a\x00b"}} {
		if r := b.do(call); code(r) != 1 || len(r.Output) == 0 {
			t.Errorf("%+v: exit %d, %q; want a refusal with words", call, code(r), r.Output)
		}
	}
}

func TestHandleKill(t *testing.T) {
	b := newBox(t, box.Init{})
	cmd := strings.ReplaceAll("env PROBE=MARK sh -c 'sleep 300 & "+strings.ReplaceAll(doubleFork, "'", `'\''`)+"; echo up; sleep 300'", "MARK", theMark)
	res := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: cmd})
	b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: res.Handle, Wait: 5 * time.Second})
	time.Sleep(100 * time.Millisecond)
	if len(b.marked()) == 0 {
		t.Fatal("nothing runs")
	}
	killed := b.do(sandbox.Call{Op: sandbox.OpKill, Handle: res.Handle})
	if left := b.marked(); len(left) > 0 || killed.Handle != "" || killed.Exit != nil {
		t.Errorf("left %v, handle %q, exit %d", left, killed.Handle, code(killed))
	}
}

// A time-out in the shell leaves background commands alone, with all that they start meanwhile.
func TestTimeoutSparesHandles(t *testing.T) {
	b := newBox(t, box.Init{})
	res := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "for i in 1 2 3 4; do (setsid sleep 0.4 && echo $i) & sleep 0.3; done; wait; exit 3"})
	cut := b.do(sandbox.Call{Op: sandbox.OpShell, Command: "sleep 300", Timeout: 600 * time.Millisecond})
	out, last := b.poll(res.Handle)
	if !cut.TimedOut || out != "1\n2\n3\n4\n" || code(last) != 3 {
		t.Errorf("timed out %t; exit %d, output %q", cut.TimedOut, code(last), out)
	}
}

// Control calls do not wait behind the command in the shell; shell calls do, in arrival order.
func TestQueue(t *testing.T) {
	b := newBox(t, box.Init{})
	type answer struct {
		n   int
		out string
	}
	answers := make(chan answer, 6)
	for n := range 6 {
		go func() {
			res, err := b.Do(context.Background(), sandbox.Call{ID: fmt.Sprint("q", n), Op: sandbox.OpShell,
				Command: fmt.Sprintf("echo in%d >> /tmp/log; sleep 0.1; echo out%d >> /tmp/log; cat /tmp/log", n, n)})
			answers <- answer{n, fmt.Sprint(string(res.Output), err)}
		}()
		time.Sleep(10 * time.Millisecond)
	}
	began := time.Now()
	b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: "shell"})
	if took := time.Since(began); took > 300*time.Millisecond {
		t.Errorf("a poll waited %s", took)
	}
	want := ""
	for n := range 6 {
		want += fmt.Sprintf("in%d\nout%d\n", n, n)
		if a := <-answers; a.n != n || a.out != want+"<nil>" {
			t.Errorf("answer %d is of call %d: %q", n, a.n, a.out)
		}
	}
}
