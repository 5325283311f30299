package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts call `proctor` as a program of its own: this test binary.
func TestMain(m *testing.M) {
	testscript.Main(tidied{m}, map[string]func(){"proctor": main})
}

// tidied removes the programs that tests built, once all have run.
type tidied struct{ m *testing.M }

func (r tidied) Run() int {
	defer func() { _ = os.RemoveAll(builtIn) }()
	return r.m.Run()
}

// TestScripts runs testdata/script/*.txtar, one test a file. PROCTOR_UPDATE=1 rewrites the expected
// output of `cmp`.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("PROCTOR_UPDATE") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": cmdStatus},
	})
}
