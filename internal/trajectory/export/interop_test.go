//go:build interop

package export_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"proctor/internal/trajectory/export"
	"proctor/internal/trajectory/trajtest"
)

// Each form is read back by its owner's own package, from the venv that .ci/interop.sh made.
func TestReadBack(t *testing.T) {
	interpreter := os.Getenv("PROCTOR_INTEROP_PYTHON")
	if interpreter == "" {
		t.Fatal("PROCTOR_INTEROP_PYTHON names no interpreter; run make interop")
	}
	dir := t.TempDir()
	r := rollout("r_1", trajtest.Random(4, 12))
	for _, form := range export.Forms() {
		text := write(t, form, r, "mask")
		if err := os.WriteFile(filepath.Join(dir, form+".jsonl"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		if form == export.Verl {
			var b bytes.Buffer
			p := export.NewParquet(&b)
			for _, l := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
				if err := p.Add(export.Document{Body: l}); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "verl.parquet"), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, form := range []string{"openai", "swe-bench", "verl", "inspect", "verifiers"} {
		t.Run(form, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), interpreter, filepath.Join("testdata", "readback.py"), form, dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
