package predictions

import (
	"errors"
	"strings"
	"testing"
)

func rows(t *testing.T, text string) ([]Row, error) {
	t.Helper()
	var out []Row
	err := Read("p", strings.NewReader(text), func(r Row) error { out = append(out, r); return nil })
	return out, err
}

func TestReadForms(t *testing.T) {
	const a, b = `{"instance_id": "a", "model_name_or_path": "m/x", "model_patch": "p\n"}`, `{"instance_id": "b", "model_patch": null, "extra": [1]}`
	for name, text := range map[string]string{
		"jsonl": a + "\n\n" + b + "\n", "no last line end": a + "\n" + b, "list": "[" + a + ",\n" + b + "]", "bom": "\xef\xbb\xbf" + a + "\r\n" + b,
		"object":      `{"a": {"model_name_or_path": "m/x", "model_patch": "p\n"}, "b": ` + b + "}",
		"patch first": `{"model_patch": "p\n", "instance_id": "a", "model_name_or_path": "m/x"}` + "\n" + b,
	} {
		got, err := rows(t, text)
		if err != nil || len(got) != 2 || got[0].Err != nil || got[1].Err != nil {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if got[0].InstanceID != "a" || got[0].Model != "m/x" || string(got[0].Patch) != "p\n" || got[1].InstanceID != "b" || got[1].Model != NoModel || got[1].Patch != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestReadBadRows(t *testing.T) {
	got, err := rows(t, `{"instance_id": "a", "model_patch": "x"}
not json
{"instance_id": 3, "model_patch": "x"}
{"model_patch": "x"}
{"instance_id": "b"}
{"instance_id": "b", "model_patch": ["x"], "model_name_or_path": 7}
[1, 2]
{"instance_id": "c", "model_patch": "x"}
{"instance_id": "d", "model_pat`)
	if err != nil || len(got) != 9 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{"", "not a JSON object", "instance_id", "instance_id: is missing", "model_patch: is missing", "model_patch: is no text", "not a JSON object", "", "ends inside"} {
		if (got[i].Err == nil) != (want == "") || (want != "" && (!strings.Contains(got[i].Err.Error(), want) || !errors.Is(got[i].Err, ErrRow))) || got[i].Line != i+1 {
			t.Errorf("row %d: line %d, %v, want %q", i, got[i].Line, got[i].Err, want)
		}
	}
	for name, text := range map[string]string{"empty": " \n", "list cut off": `[{"instance_id": "a", "model_patch": "x"},`, "object cut off": `{"a": {"model_patch": "x"}`, "two documents": `[] []`} {
		if _, err := rows(t, text); err == nil {
			t.Errorf("%s: read without a word", name)
		}
	}
}

func TestReadTooLong(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: a line of 200 MB")
	}
	long := `{"instance_id": "big", "model_patch": "` + strings.Repeat("y", MaxRow) + "\"}\n" + `{"instance_id": "c", "model_patch": "x"}`
	got, err := rows(t, long)
	if err != nil || len(got) != 2 || got[0].Err == nil || got[0].InstanceID != "big" || got[1].Err != nil || got[1].InstanceID != "c" {
		t.Fatalf("%d rows, %v", len(got), err)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"instance_id": "a", "model_patch": "x"}`, `[{"instance_id": "a"}]`, `{"a": {"model_patch": null}}`, "x\ny", `{"":`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		_ = Read("p", strings.NewReader(string(data)), func(r Row) error {
			if n++; r.Index != n || (r.Err == nil && r.InstanceID == "") {
				t.Fatalf("%+v", r)
			}
			return nil
		})
	})
}
