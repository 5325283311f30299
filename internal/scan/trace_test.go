package scan

import (
	"encoding/json"
	"reflect"
	"testing"

	"proctor/internal/traces"
	"proctor/monitor"
)

// A plain command is the call that a server would make of it, whatever its text.
func FuzzPlainCommand(f *testing.F) {
	for _, s := range []string{"", "ls", "cat <<'E'\n<&>\u2028\x00\\\"é\nE", "a\xffb", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		c := &traces.Call{Tool: monitor.ToolBash, Arguments: map[string]any{"command": command}}
		raw, err := json.Marshal(c.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		want, err := monitor.ParseCall("", "", c.Tool, raw, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseCall(c); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", command, got, err, want)
		}
	})
}
