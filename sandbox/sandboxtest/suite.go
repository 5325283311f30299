package sandboxtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
)

// Lab is what an engine's own test gives the suite.
type Lab struct {
	// Engine makes an engine for an owner; called again with the same owner it stands for a server that was
	// restarted. The suite closes it.
	Engine func(t *testing.T, owner string) sandbox.Engine
	// Owner is unique to this run.
	Owner string
	// Images to make sandboxes from. Base has bash and python3. An empty one of the others fails its test.
	Base       string
	ShOnly     string // busybox alone (see Busybox), no bash
	NoShell    string // nothing at all
	Distroless string // one static program, no shell
	NonRoot    string // Base with USER www-data
	Entrypoint string // Base with an ENTRYPOINT and CMD that end at once
	// Except gives, by a test's name, the reason why the engine cannot hold what it tests. It is left out, loudly.
	Except map[string]string
	// Leftovers lists what exists on the host for an owner: containers, folders, whatever Create makes.
	Leftovers func(t *testing.T, owner string) []string
}

// box is a sandbox under test.
type box struct {
	sandbox.Session
	t   *testing.T
	lab *Lab
	ids int
}

// test is one row of the suite: a name and what it shows, by the point of the contract.
type test struct {
	name string
	slow bool // not with -short
	run  func(b *box)
}

// Run runs the suite. Each test has a sandbox of its own, four at a time.
func Run(t *testing.T, lab Lab) {
	var all []test
	for _, group := range [][]test{shellTests, outputTests, timeoutTests, repeatTests, limitTests, confinementTests, fileTests, lifeTests, imageTests, terminalTests, isolationTests, fileIsolationTests, egressTests, diskTests} {
		all = append(all, group...)
	}
	for name := range lab.Except {
		if !slices.ContainsFunc(all, func(row test) bool { return row.name == name }) {
			t.Errorf("an exception for %q, which no test is called", name)
		}
	}
	turns := make(chan struct{}, 4)
	t.Run("suite", func(t *testing.T) {
		for _, row := range all {
			t.Run(row.name, func(t *testing.T) {
				if why := lab.Except[row.name]; why != "" {
					t.Skipf("EXCEPTED: %s", why)
				}
				if row.slow && testing.Short() {
					t.Skip("slow: left out by -short")
				}
				t.Parallel()
				turns <- struct{}{}
				defer func() { <-turns }()
				row.run(lab.newBox(t, sandbox.Spec{}))
			})
		}
	})
	if left := lab.Leftovers(t, lab.Owner); len(left) > 0 {
		t.Errorf("left behind by the suite: %v", left)
	}
}

// newBox makes a sandbox, of Base unless the spec says otherwise; it goes at the test's end.
func (l *Lab) newBox(t *testing.T, spec sandbox.Spec) *box {
	t.Helper()
	engine := l.Engine(t, l.Owner)
	t.Cleanup(func() { _ = engine.Close() })
	if spec.Image == "" {
		spec.Image = l.Base
	}
	if spec.Name == "" {
		spec.Name = "r_" + strings.ReplaceAll(t.Name(), "/", "_")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	session, err := engine.Create(ctx, spec)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() {
		if err := session.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &box{Session: session, t: t, lab: l}
}

// another makes a further sandbox for the same test.
func (b *box) another(spec sandbox.Spec) *box { b.t.Helper(); return b.lab.newBox(b.t, spec) }

// do makes a call, with an ID of its own if it has none; it must have a result.
func (b *box) do(call sandbox.Call) sandbox.Result {
	b.t.Helper()
	if call.ID == "" {
		b.ids++
		call.ID = fmt.Sprintf("call-%d", b.ids)
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(call.Timeout, call.Wait)+time.Minute)
	defer cancel()
	result, err := b.Do(ctx, call)
	if err != nil {
		b.t.Fatalf("%s %.100q: %v", call.Op, call.Command+call.Path, err)
	}
	return result
}

// sh types a command into the shell, with 20 seconds to end.
func (b *box) sh(command string) sandbox.Result {
	b.t.Helper()
	return b.do(sandbox.Call{Op: sandbox.OpShell, Command: command, Timeout: 20 * time.Second})
}

// wants types a command and holds its output and exit code against what is expected.
func (b *box) wants(command, output string, exit int) {
	b.t.Helper()
	got := b.sh(command)
	if string(got.Output) != output || exitOf(got) != exit {
		b.t.Errorf("%.200q: output %.300q exit %s, want %.300q %d", command, got.Output, exitText(got), output, exit)
	}
}

// out types a command that must succeed and gives its output.
func (b *box) out(command string) string {
	b.t.Helper()
	got := b.sh(command)
	if exitOf(got) != 0 {
		b.t.Fatalf("%.200q: exit %s, output %.300q", command, exitText(got), got.Output)
	}
	return string(got.Output)
}

// exec runs an argv, which must start and end.
func (b *box) exec(argv ...string) (stdout string, exit int) {
	b.t.Helper()
	got, err := b.Exec(context.Background(), sandbox.Exec{Argv: argv, Timeout: 30 * time.Second})
	if err != nil || got.Exit == nil {
		b.t.Fatalf("exec %q: %v, %+v", argv, err, got)
	}
	return string(got.Stdout), *got.Exit
}

// alive checks that the shell answers.
func (b *box) alive() {
	b.t.Helper()
	b.wants(`/bin/sh -c 'echo al""ive; exit 3'`, "alive\n", 3)
}

// exitOf gives the exit code, or -1 where there is none.
func exitOf(r sandbox.Result) int {
	if r.Exit == nil {
		return -1
	}
	return *r.Exit
}

// exitText gives the exit code in words.
func exitText(r sandbox.Result) string {
	if r.Exit == nil {
		return "none"
	}
	return fmt.Sprint(*r.Exit)
}

// python gives the shell command that runs code.
func python(code string) string { return "python3 -c '" + strings.ReplaceAll(code, "'", `'\''`) + "'" }
