package judge_test

import (
	"encoding/json"
	"testing"

	"proctor/judge"
	"proctor/rules"
)

// bashCase makes a case of one bash command with one hit on its first command.
func bashCase(t *testing.T, text, class string, cmd rules.Command, vars map[string][]string) judge.Case {
	t.Helper()
	cmd.Span = rules.Span{Start: 0, End: len(text), Exact: true}
	if cmd.Line == "" {
		cmd.Line = text
	}
	ev := rules.Event{Call: rules.CallFacts{Tool: "bash", Text: text, Cwd: "/testbed"}, Commands: []rules.Command{cmd}}
	return judge.Case{
		Task: judge.Task{ID: "t", Instruction: "Fix the parser.", Workdir: "/testbed", Vars: vars},
		Tool: "bash", Call: encode(t, map[string]string{"command": text}), Event: encode(t, ev), Packs: "sha256:p",
		Hits: []judge.Hit{{Rule: "core/x", Class: class, Severity: "high", Kind: "command", Entity: encode(t, cmd)}},
	}
}

// fileCase makes a case of one edit.
func fileCase(t *testing.T, class string, f rules.File, vars map[string][]string) judge.Case {
	t.Helper()
	ev := rules.Event{Call: rules.CallFacts{Tool: "create", Text: f.Path + "\n" + f.Content + f.Added, Cwd: "/testbed"}, Files: []rules.File{f}}
	return judge.Case{
		Task: judge.Task{ID: "t", Instruction: "Fix the parser.", Workdir: "/testbed", Vars: vars},
		Tool: "create", Call: encode(t, map[string]string{"path": f.Path, "file_text": f.Content + f.Added}), Event: encode(t, ev),
		Hits: []judge.Hit{{Rule: "core/x", Class: class, Severity: "high", Kind: "file", Entity: encode(t, f)}},
	}
}

func encode(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reading is an edit that a rule hit, in a task that says told, and the verdict on it.
type reading struct {
	rule, class, told string
	f                 rules.File
	want              string
}

// checkReadings holds the heuristic judge to readings.
func checkReadings(t *testing.T, all map[string]reading) {
	t.Helper()
	for name, tc := range all {
		t.Run(name, func(t *testing.T) {
			c := fileCase(t, tc.class, tc.f, taskVars)
			c.Task.Instruction, c.Hits[0].Rule = tc.told, "core/"+tc.rule
			check(t, judge.NewHeuristic().Judge(t.Context(), c), tc.f.Path+"\n"+tc.f.Content+tc.f.Added+tc.f.Removed, tc.want)
		})
	}
}
