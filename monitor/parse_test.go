package monitor

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
)

func TestParseCallRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		tool, args, encoding string
		field                string
	}{
		"unknown tool":      {"rm", `{}`, "", "name"},
		"no tool":           {"", `{}`, "", "name"},
		"missing":           {"bash", `{"timeout_s":1}`, "", "arguments.command"},
		"null required":     {"bash", `{"command":null}`, "", "arguments.command"},
		"wrong type":        {"bash", `{"command":7}`, "", "arguments.command"},
		"text as number":    {"bash", `{"command":"ls","timeout_s":"soon"}`, "", "arguments.timeout_s"},
		"negative timeout":  {"bash", `{"command":"ls","timeout_s":-1}`, "", "arguments.timeout_s"},
		"endless timeout":   {"bash", `{"command":"ls","timeout_s":1e9}`, "", "arguments.timeout_s"},
		"unknown argument":  {"bash", `{"command":"ls","x":1}`, "", "arguments.x"},
		"list of arguments": {"bash", `[]`, "", "arguments"},
		"text arguments":    {"bash", `"ls"`, "", "arguments"},
		"null arguments":    {"bash", `null`, "", "arguments"},
		"half line":         {"insert", `{"path":"a","insert_line":1.5,"new_str":""}`, "", "arguments.insert_line"},
		"short range":       {"view", `{"path":"a","view_range":[1]}`, "", "arguments.view_range"},
		"odd encoding":      {"view", `{"path":"a"}`, "hex", "encoding"},
		"submit takes none": {"submit", `{"x":1}`, "", "arguments.x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCall("", "", tc.tool, json.RawMessage(tc.args), tc.encoding)
			var bad *BadCall
			if !errors.As(err, &bad) || bad.Field != tc.field || bad.Detail == "" {
				t.Errorf("got %v, want a refusal of %s", err, tc.field)
			}
		})
	}
}

func TestParseCallGivesBoxAndFacts(t *testing.T) {
	call, err := ParseCall("c", "k", "bash", json.RawMessage(`{"command": "make", "timeout_s": 1.5, "idle_timeout_s": 2, "background": true}`), "base64")
	if err != nil {
		t.Fatal(err)
	}
	want := sandbox.Call{Op: sandbox.OpSpawn, Command: "make", Timeout: 1500 * time.Millisecond, Idle: 2 * time.Second}
	if call.Box.Op != want.Op || call.Box.Command != want.Command || call.Box.Timeout != want.Timeout || call.Box.Idle != want.Idle {
		t.Errorf("box %+v", call.Box)
	}
	if call.Facts.Tool != "bash" || call.Facts.Command != "make" || !call.Base64 || call.Key != "k" || call.ID != "c" {
		t.Errorf("call %+v", call)
	}
	view, err := ParseCall("", "", "view", json.RawMessage(`{"path":"a","view_range":[3,-1]}`), "")
	if err != nil || view.Box.Op != sandbox.OpView || len(view.Box.Range) != 2 || view.Box.Range[1] != -1 {
		t.Errorf("view %+v, %v", view.Box, err)
	}
}

// The same arguments written with other blanks are the same call; other arguments are not.
func TestArgsHash(t *testing.T) {
	parse := func(args string) Call {
		c, err := ParseCall("", "", "bash", json.RawMessage(args), "")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b, c := parse(`{"command":"ls"}`), parse("{ \"command\" :\n\"ls\"}"), parse(`{"command":"ls "}`)
	if ArgsSHA256(a) != ArgsSHA256(b) || ArgsSHA256(a) == ArgsSHA256(c) {
		t.Error("hash does not follow the arguments")
	}
}

// Every tool's schema is valid JSON that names its required arguments, and every op is mapped.
func TestToolTable(t *testing.T) {
	for _, tool := range Tools() {
		var s struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(tool.Schema(), &s); err != nil || len(s.Properties) != len(tool.Params) {
			t.Errorf("%s: schema %s: %v", tool.Name, tool.Schema(), err)
		}
		if tool.Name != ToolSubmit && ops[tool.Name] == "" {
			t.Errorf("%s maps to no operation of the sandbox", tool.Name)
		}
		if strings.TrimSpace(tool.Description) == "" {
			t.Errorf("%s has no description", tool.Name)
		}
	}
}

func FuzzParseCall(f *testing.F) {
	f.Add("bash", `{"command":"ls","timeout_s":3}`)
	f.Add("view", `{"path":"a","view_range":[1,2]}`)
	f.Fuzz(func(t *testing.T, name, args string) {
		call, err := ParseCall("", "", name, json.RawMessage(args), "")
		if err == nil && !json.Valid(call.Arguments) {
			t.Errorf("arguments kept are not JSON: %q", call.Arguments)
		}
	})
}
