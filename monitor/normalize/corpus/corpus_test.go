package corpus

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/rules"
)

const rows = `{"id":"a","label":"hack","class":"git_history","task":{"id":"t","workdir":"/w","instruction":"Fix it.","vars":{"hidden_paths":["/h"],"package":"p","network":""}},"facts":{"refs":{"--all":"foreign"},"paths":{"x":"hidden"}},"setup":[{"tool":"bash","arguments":{"command":"cd /h"}}],"call":{"tool":"bash","arguments":{"command":"cat y"}}}

{"id":"b","command":"ls -l"}
{"id":"c"}
not json
{"call":{"tool":"bash","arguments":{"command":"ls"}}}
{"id":"d","label":"maybe","command":"ls"}
{"id":"e","command":"ls","task":{"vars":{"package":{"a":3}}}}
{"id":"f","call":{"tool":"insert","arguments":{"path":"p","insert_line":3,"new_str":"n"}}}
`

func TestRead(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(rows)); err != nil {
		t.Fatal(err)
	}
	z.Close()
	for name, data := range map[string][]byte{"plain": []byte(rows), "gzip": zipped.Bytes()} {
		var good []*Row
		bad := map[int]string{}
		for row, err := range Read(bytes.NewReader(data), "c.jsonl") {
			var re *RowError
			switch {
			case err == nil:
				good = append(good, row)
			case errors.As(err, &re):
				bad[re.Line] = err.Error()
				if !errors.Is(err, ErrRow) || !strings.HasPrefix(err.Error(), "c.jsonl:") {
					t.Errorf("%s: %v", name, err)
				}
			default:
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(good) != 4 || good[0].Line != 1 || good[1].Line != 3 || good[2].ID != "line-6" || good[3].Line != 9 {
			t.Fatalf("%s: rows %+v", name, good)
		}
		for line, want := range map[int]string{4: "neither a call nor a command", 5: "invalid character", 7: `label "maybe"`, 8: "task.vars.package"} {
			if !strings.Contains(bad[line], want) {
				t.Errorf("%s: line %d: %q, want %q", name, line, bad[line], want)
			}
		}
		a := good[0]
		if v := a.Vars(); v.One("workdir") != "/w" || v.One("instruction") != "Fix it." || v.One("package") != "p" || len(v["network"]) != 0 {
			t.Errorf("%s: vars %v", name, v)
		}
		ev := a.Normalizer().Event(t.Context(), a.Call.Normal())
		if len(ev.Commands) != 1 || len(ev.Commands[0].Hidden) != 1 {
			t.Errorf("%s: the setup was not followed: %+v", name, ev.Commands)
		}
		if c := good[3].Call.Normal(); c.Tool != "insert" || c.Line != 3 || c.New != "n" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestBrokenGzip(t *testing.T) {
	for _, err := range Read(bytes.NewReader([]byte{0x1f, 0x8b, 1, 2}), "x.gz") {
		if err == nil || !strings.Contains(err.Error(), "x.gz") {
			t.Errorf("error %v", err)
		}
	}
}

func TestTasks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tasks.json")
	if err := os.WriteFile(file, []byte(`{"t":{"workdir":"/w","vars":{"package":"p"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tasks, err := LoadTasks(file)
	if err != nil {
		t.Fatal(err)
	}
	row := &Row{Task: Task{ID: "t"}}
	tasks.Fill(row)
	if row.Task.Workdir != "/w" || row.Task.Vars.One("package") != "p" {
		t.Errorf("%+v", row.Task)
	}
	other := &Row{Task: Task{ID: "t", Workdir: "/mine", Vars: rules.Vars{"package": {"q"}}}}
	tasks.Fill(other)
	if other.Task.Workdir != "/mine" || other.Task.Vars.One("package") != "q" {
		t.Errorf("what the row says was replaced: %+v", other.Task)
	}
	if err := os.WriteFile(file, []byte(`{"t":{"vars":{"package":{}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadTasks(file); err == nil || !strings.Contains(err.Error(), "task.vars.package") {
		t.Errorf("error %v", err)
	}
	if _, err := LoadTasks(file + ".none"); err == nil {
		t.Error("a missing file gave no error")
	}
}

func TestMissingFile(t *testing.T) {
	n := 0
	for _, err := range Open(filepath.Join(t.TempDir(), "none")) {
		if n++; err == nil {
			t.Error("no error")
		}
	}
	if n != 1 {
		t.Errorf("%d results", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(rows))
	f.Fuzz(func(t *testing.T, data []byte) {
		for row, err := range Read(bytes.NewReader(data), "f") {
			if (row == nil) == (err == nil) {
				t.Fatalf("row %v, error %v", row, err)
			}
		}
	})
}
