package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"proctor/internal/trajectory/export"
	"proctor/internal/trajectory/trajtest"
)

func plain(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := export.Reader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An export that was cut off anywhere goes on behind its last whole rollout, and comes to the same file.
func TestResume(t *testing.T) {
	docs := func(id string) func(func(export.Document) error) error {
		return func(each func(export.Document) error) error {
			for i := range 3 {
				if err := each(export.Document{Body: fmt.Appendf(nil, `{"id":"%s","n":%d}`, id, i)}); err != nil {
					return err
				}
			}
			return nil
		}
	}
	want := ""
	for i := range 5 {
		for n := range 3 {
			want += fmt.Sprintf(`{"id":"r%d","n":%d}`+"\n", i, n)
		}
	}
	for _, kind := range []string{export.Plain, export.Gzip, export.Zstd} {
		for stop := range 5 {
			path := filepath.Join(t.TempDir(), "out")
			x, err := export.OpenFile(path, kind, false)
			if err != nil {
				t.Fatal(err)
			}
			for i := range stop {
				if err := x.Rollout(fmt.Sprint("r", i), docs(fmt.Sprint("r", i))); err != nil {
					t.Fatal(err)
				}
			}
			broken := errors.New("the server is gone")
			err = x.Rollout("half", func(each func(export.Document) error) error {
				_ = each(export.Document{Body: []byte(`{"half":`)})
				return broken
			})
			if !errors.Is(err, broken) {
				t.Fatal(err)
			}
			// The machine dies: half a frame, and half a line of the progress.
			appendTo(t, path, "\x28\xb5half")
			appendTo(t, path+".progress", `{"rollout":"r9","en`)
			if x, err = export.OpenFile(path, kind, true); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				id := fmt.Sprint("r", i)
				if x.Done(id) != (i < stop) {
					t.Fatalf("%s: %s is done: %t", kind, id, x.Done(id))
				}
				if !x.Done(id) {
					if err := x.Rollout(id, docs(id)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := x.Finish(); err != nil {
				t.Fatal(err)
			}
			if got := plain(t, path); got != want {
				t.Fatalf("%s, stopped after %d: got\n%s", kind, stop, got)
			}
			if _, err := export.OpenFile(path, kind, true); err == nil {
				t.Fatal("a finished file is gone on with")
			}
		}
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Rows of parquet hold what the lines hold.
func TestParquet(t *testing.T) {
	r := rollout("r", trajtest.Random(4, 12))
	text := write(t, export.Verl, r, "mask")
	var b bytes.Buffer
	p := export.NewParquet(&b)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	for _, l := range lines {
		if err := p.Add(export.Document{Body: l}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := export.CheckParquet(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(rep.Problems) > 0 || rep.Documents != len(lines) || rep.Forms[export.Verl] != len(lines) {
		t.Errorf("report %+v %v, want %d rows", rep, err, len(lines))
	}
	if _, err := export.CheckParquet(bytes.NewReader(text), int64(len(text))); err == nil {
		t.Error("lines are read as parquet")
	}
}
