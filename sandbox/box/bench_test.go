package box_test

import (
	"context"
	"os/exec"
	"testing"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// The targets, in one run: the builtin at most 0.25 times, one-shot and typed `bash -c true` at most 1.1
// and 1.25 times the bare one.
func BenchmarkBare(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("bash", "-c", "true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkShellBuiltin(b *testing.B)  { benchShell(b, "true") }
func BenchmarkShellBashTrue(b *testing.B) { benchShell(b, "bash -c true") }

func benchShell(b *testing.B, command string) {
	bx := newBox(b, box.Init{})
	for b.Loop() {
		if res := bx.sh(command); code(res) != 0 {
			b.Fatalf("exit %d: %s", code(res), res.Output)
		}
	}
}

func BenchmarkOneShot(b *testing.B) {
	bx := newBox(b, box.Init{})
	for b.Loop() {
		res, err := bx.Exec(context.Background(), sandbox.Exec{Argv: []string{"bash", "-c", "true"}})
		if err != nil || *res.Exit != 0 {
			b.Fatalf("%+v %v", res, err)
		}
	}
}
