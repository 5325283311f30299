//go:build interop

package main

import (
	"os"
	"strings"
	"testing"
)

// verifiers' own NeMo-Gym taskset, task and toolset, from the venv that .ci/interop.sh made, on the NeMo-Gym server.
func TestInteropVerifiersNeMoGym(t *testing.T) {
	interpreter := os.Getenv("PROCTOR_INTEROP_PYTHON")
	if interpreter == "" {
		t.Fatal("PROCTOR_INTEROP_PYTHON names no interpreter; run make interop")
	}
	out := string(inToyWorld(t, interpreter, toyWorld(t), "../../clients/python/examples/verifiers_nemo_gym.py", "toy-2"))
	if !strings.Contains(out, "reward 1.0, 4 calls") || !strings.Contains(out, "No such file") {
		t.Errorf("the example printed %s", out)
	}
	t.Log(out)
}
