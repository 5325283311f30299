package traces

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// documents hold, in each format, an attempt that lists a folder, which shows "a.py", and edits a file.
var documents = map[string]struct {
	format, text string
	calls        string // as render writes them
}{
	"swe-agent": {SWEAgent, `{"environment": "swe_main", "trajectory": [
		{"action": "ls\n", "observation": "a.py", "state": {"working_dir": "/testbed"}},
		{"action": "str_replace_editor str_replace /testbed/a.py --old_str 'x = 1' --new_str 'x = \"2\"'", "observation": "ok", "state": "{\"working_dir\": \"/testbed\"}"},
		{"action": "submit", "observation": ""}], "history": [], "info": {}}`,
		`bash ls -> a.py @/testbed|str_replace /testbed/a.py x = 1 x = "2" -> ok @/testbed`},
	"swe-agent, old edits": {SWEAgent, `{"environment": "swe_main", "trajectory": [
		{"action": "open a.py 10", "observation": "", "state": "{\"open_file\": \"/testbed/a.py\", \"working_dir\": \"/testbed\"}"},
		{"action": "edit 3:4\nx = 2\nend_of_edit", "observation": "done", "state": "{\"open_file\": \"/testbed/a.py\"}"}], "info": {}}`,
		"view a.py ->  @/testbed|insert /testbed/a.py x = 2 -> done"},
	"mini-swe-agent, text": {MiniSWEAgent, "{\"trajectory_format\": \"mini-swe-agent-1\", \"info\": {}, \"messages\": [{\"role\": \"user\", \"content\": \"Fix it.\"}," +
		"{\"role\": \"assistant\", \"content\": \"THOUGHT: look\\n\\n```bash\\nls\\n```\"}, {\"role\": \"user\", \"content\": \"a.py\"}]}", "bash ls -> a.py"},
	"mini-swe-agent, tool calls": {MiniSWEAgent, `{"trajectory_format": "mini-swe-agent-1.1", "info": {"config": {"environment": {"cwd": "/testbed"}}}, "messages": [
		{"role": "assistant", "content": "", "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}]}},
		{"role": "tool", "tool_call_id": "c1", "content": "<output>a.py</output>", "extra": {"raw_output": "a.py", "returncode": 3}}]}`, "bash ls -> a.py =3"},
	"openhands, events": {OpenHands, `[{"id": 0, "source": "user", "action": "message", "args": {"content": "Fix it."}},
		{"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "is_input": "false"}},
		{"id": 2, "source": "agent", "observation": "run", "content": "a.py", "cause": 1, "extras": {"metadata": {"exit_code": 0, "working_dir": "/w"}}},
		{"id": 3, "source": "agent", "action": "edit", "args": {"path": "/w/a.py", "command": "create", "file_text": "x"}},
		{"id": 4, "source": "agent", "action": "run_ipython", "args": {"code": "print(1)"}},
		{"id": 5, "source": "agent", "action": "think", "args": {"thought": "hm"}}, {"id": 6, "source": "agent", "action": "browse", "args": {"url": "http://x"}}]`,
		"bash ls -> a.py =0 @/w|create /w/a.py x|bash python3 - <<'END_OF_CELL'\nprint(1)\nEND_OF_CELL|?browse"},
	"openhands, output.jsonl": {OpenHands, `{"instance_id": "acme__w-1", "test_result": {}, "history": [{"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}},
		{"id": 2, "source": "agent", "observation": "run", "content": "a.py", "cause": 1, "extras": {"exit_code": 0}}]}`, "bash ls -> a.py =0"},
	"openhands, pairs": {OpenHands, `{"instance_id": "acme__w-1", "history": [[{"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}},
		{"id": 2, "source": "agent", "observation": "run", "content": "a.py", "cause": 1}]]}`, "bash ls -> a.py"},
	"openhands, second generation": {OpenHands, `[{"kind": "SystemPromptEvent", "source": "agent"},
		{"kind": "ActionEvent", "source": "agent", "tool_name": "terminal", "tool_call_id": "c1", "action": {"kind": "TerminalAction", "command": "ls"}},
		{"kind": "ObservationEvent", "source": "environment", "tool_name": "terminal", "tool_call_id": "c1", "observation": {"content": [{"type": "text", "text": "a.py"}], "exit_code": 0, "metadata": {"working_dir": "/w"}}},
		{"kind": "ActionEvent", "source": "agent", "tool_name": "file_editor", "tool_call_id": "c2", "action": {"command": "view", "path": "/w/a.py"}}]`,
		"bash ls -> a.py =0 @/w|view /w/a.py"},
	"atif": {ATIF, `{"schema_version": "ATIF-v1.7", "session_id": "s1", "agent": {"name": "a", "version": "1"}, "steps": [
		{"step_id": 1, "source": "user", "message": "Fix it."},
		{"step_id": 2, "source": "agent", "message": "", "tool_calls": [{"tool_call_id": "c1", "function_name": "bash_command", "arguments": {"keystrokes": "ls\n", "duration": 1}},
		{"tool_call_id": "c2", "function_name": "Write", "arguments": {"file_path": "/w/a.py", "content": "x"}}],
		"observation": {"results": [{"source_call_id": "c1", "content": "a.py"}, {"source_call_id": "c2", "content": "ok"}]}}]}`,
		"bash ls -> a.py|create /w/a.py x -> ok"},
	"inspect, log": {Inspect, `{"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [{"id": "s1", "epoch": 1, "input": "Fix it.", "messages": [
		{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": [{"type": "text", "text": "ok"}], "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}}]},
		{"role": "tool", "tool_call_id": "c1", "function": "bash", "content": "attachment://77"}], "attachments": {"77": "a.py"}}]}`, "bash ls -> a.py"},
	"openai": {OpenAI, `{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Fix it."},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "execute_bash", "arguments": "{\"command\": \"ls\"}"}}]},
		{"role": "tool", "tool_call_id": "c1", "content": "a.py"},
		{"role": "assistant", "content": "` + "Run\\n```bash\\nrm -rf /\\n```\\nyourself." + `"}]}`, "bash ls -> a.py"},
	"openai, messages as text": {OpenAI, `{"instance_id": "i", "messages": "[{\"role\": \"assistant\", \"content\": \"<function=bash>\\n<parameter=command>ls</parameter>\\n</function>\"}, {\"role\": \"user\", \"content\": \"a.py\"}]"}`, "bash ls -> a.py"},
	"openai, text":             {OpenAI, `[{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "` + "```bash\\nls\\n```" + `"}, {"role": "user", "content": [{"type": "text", "text": "a.py"}]}]`, "bash ls -> a.py"},
	"openai, response items": {OpenAI, `[{"type": "message", "role": "user", "content": "Fix it."}, {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{\"command\": [\"bash\", \"-lc\", \"ls\"]}"},
		{"type": "function_call_output", "call_id": "c1", "output": "a.py"}]`, "bash ls -> a.py"},
	"anthropic": {OpenAI, `{"id": "r1", "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "str_replace_based_edit_tool", "input": {"command": "insert", "path": "/w/a", "insert_line": 2, "insert_text": "y"}}]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ok"}]}]}]}`, "insert /w/a y -> ok"},
	"proctor": {Proctor, `{"schema": "proctor.trajectory/1", "rollout": {"id": "r_1", "task_id": "t"}, "calls": [
		{"ordinal": 1, "name": "bash", "arguments": {"command": "ls"}, "principal": "agent", "observation": {"output": "a.py", "exit_code": 0}},
		{"ordinal": 2, "name": "bash", "arguments": {"command": "git diff"}, "principal": "harness", "observation": null}, {"ordinal": 3, "name": "submit", "arguments": {}}], "segments": [], "grade": null}`,
		"bash ls -> a.py =0|(harness) bash git diff"},
	"corpus": {Corpus, `[{"id": "g-t-1", "command": "ls", "task": {"id": "t"}}, {"id": "g-t-2", "call": {"tool": "view", "arguments": {"path": "a"}}}]`, "bash ls|view a"},
}

// render renders calls for comparison.
func render(t *Trace) string {
	var out []string
	for _, c := range t.Calls {
		text := func(n string) string { s, _ := c.Arguments[n].(string); return s }
		line := strings.Join(strings.Fields(c.Tool+" "+text("path")), " ")
		for _, n := range []string{"command", "file_text", "old_str", "new_str"} {
			if s := text(n); s != "" {
				line += " " + s
			}
		}
		if c.Harness {
			line = "(harness) " + line
		}
		if c.Shown {
			line += " -> " + c.Output
		}
		if c.Exit != nil {
			line += fmt.Sprintf(" =%d", *c.Exit)
		}
		if c.Cwd != "" {
			line += " @" + c.Cwd
		}
		out = append(out, line)
	}
	for _, n := range sorted(t.Unmapped) {
		out = append(out, "?"+n)
	}
	return strings.Join(out, "|")
}

func TestParse(t *testing.T) {
	for name, c := range documents {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(c.text)) {
				t.Fatal("the document is not JSON")
			}
			list, err := Parse(&Document{File: "runs/some.json", Data: []byte(c.text)})
			if err != nil || len(list) != 1 {
				t.Fatalf("%d traces, %v", len(list), err)
			}
			if got := render(list[0]); list[0].Format != c.format || got != c.calls {
				t.Errorf("%s\n got %s\nwant %s", list[0].Format, got, c.calls)
			}
			if list[0].ID == "" || list[0].Task == "" {
				t.Errorf("id %q, task %q", list[0].ID, list[0].Task)
			}
		})
	}
}

func TestInstruction(t *testing.T) {
	for _, name := range []string{"mini-swe-agent, text", "openhands, events", "atif", "inspect, log", "openai", "openai, text", "openai, response items"} {
		list, err := Parse(&Document{File: "x", Data: []byte(documents[name].text)})
		if err != nil || list[0].Instruction != "Fix it." {
			t.Errorf("%s: %q, %v", name, list[0].Instruction, err)
		}
	}
}

func TestWhatIsNoTrajectory(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "b": 2}`: `an object with the keys "a", "b"`, `{"messages": 1}`: "openai: messages", `[]`: "empty list", `[1]`: "neither messages nor events",
		`{"messages": [`: "cut off after 14 bytes", `{"messages" 1}`: "not JSON at byte", `"x"`: "not a JSON object", `{"schema": "proctor.trajectory/9"}`: `this program reads "proctor.trajectory/1"`,
		`{"trajectory": [{"action": 1}], "info": {}}`: "swe-agent: trajectory", `[[[[[1]]]]]`: "openhands", `{}`: "(none)",
	} {
		list, err := Parse(&Document{File: "f.json", Line: 3, Data: []byte(text)})
		var u *Unknown
		if !errors.As(err, &u) || !strings.Contains(u.Reason, want) || u.File != "f.json" || u.Line != 3 {
			t.Errorf("%s: %d traces, %v; want %q", text, len(list), err, want)
		}
	}
}

// read gives what a source holds, one line a document.
func read(t *testing.T, s *Source) []string {
	t.Helper()
	var out []string
	for d, err := range s.Documents() {
		if err != nil {
			out = append(out, "! "+strings.TrimPrefix(err.Error(), t.Name()))
			continue
		}
		list, err := Parse(d)
		if err != nil {
			out = append(out, "! "+err.Error())
		}
		for _, tr := range list {
			out = append(out, fmt.Sprintf("%s %s %s %d", tr.Format, tr.ID, tr.Task, len(tr.Calls)))
		}
	}
	return out
}

func gz(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range sorted(files) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSources(t *testing.T) {
	const row = `{"instance_id": "i%d", "messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}]}]}`
	rows := fmt.Sprintf(row, 1) + "\n\n" + fmt.Sprintf(row, 2) + "\n"
	sample := `{"id": 7, "epoch": 2, "input": "x", "messages": []}`
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"lines":              {"r.jsonl", rows, []string{"openai i1 i1 1", "openai i2 i2 1"}},
		"gzipped":            {"r.jsonl.gz", gz(rows), []string{"openai i1 i1 1", "openai i2 i2 1"}},
		"a cut line":         {"r.jsonl", rows + `{"messages": [`, []string{"openai i1 i1 1", "openai i2 i2 1", "! FILE:4: JSON that is cut off after 14 bytes"}},
		"a bad first line":   {"r.jsonl", "{\n" + rows, []string{"! FILE:1: JSON that is cut off after 1 bytes", "openai i1 i1 1", "openai i2 i2 1"}},
		"a document":         {"acme__w-1.traj.json", strings.ReplaceAll(documents["mini-swe-agent, text"].text, ", ", ",\n "), []string{"mini-swe-agent acme__w-1 acme__w-1 1"}},
		"one line":           {"r.json", fmt.Sprintf(row, 1), []string{"openai i1 i1 1"}},
		"messages by line":   {"talk.jsonl", `{"role": "user", "content": "x"}` + "\n" + "{\"role\": \"assistant\", \"content\": \"```bash\\nls\\n```\"}\n", []string{"openai talk:1  1"}},
		"events by line":     {"e.jsonl", `{"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}}` + "\n" + `{"id": 2, "source": "agent", "observation": "run", "content": "", "cause": 1}`, []string{"openhands e:1  1"}},
		"runs of a corpus":   {"c.jsonl", `{"id": "g-a-1", "command": "ls"}` + "\n" + `{"id": "g-a-2", "command": "ls"}` + "\n" + `{"id": "g-b-1", "command": "ls"}`, []string{"corpus g-a  2", "corpus g-b-1  1"}},
		"an archive":         {"x.eval", zipped(t, map[string]string{"header.json": "{}", "samples/7_epoch_2.json": sample}), []string{"inspect 7_epoch_2 7 0"}},
		"an archive of none": {"x.zip", zipped(t, map[string]string{"a.txt": "{}"}), []string{"! FILE: zip archive without trajectories in it"}},
		"a broken archive":   {"x.eval", "PK\x03\x04 what", []string{"! FILE: zip archive: zip: not a valid zip file"}},
		"a broken gzip":      {"x.json.gz", gz(rows)[:40], []string{"! FILE: unexpected EOF"}},
		"an empty file":      {"x.json", "", []string{"! FILE: the file is empty"}},
		"text":               {"x.json", "no\njson\n", []string{"! FILE: not JSON at byte 2: invalid character 'o' in literal null (expecting 'u')"}},
		"a list":             {"x.json", "[" + fmt.Sprintf(row, 1) + "," + fmt.Sprintf(row, 2) + "]", []string{"openai i1 i1 1", "openai i2 i2 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.Join(read(t, &Source{Paths: []string{file}}), "\n"), file, "FILE")
			if got != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestFoldersAndStdin(t *testing.T) {
	dir := t.TempDir()
	doc := documents["swe-agent"].text
	for name, text := range map[string]string{"a/one.traj": doc, "b/two.traj.gz": gz(doc), "b/notes.txt": "x", "preds.json": `{"x": {}}`} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &Source{Paths: []string{dir, "-", filepath.Join(dir, "absent")}, Stdin: strings.NewReader(doc)}
	got := strings.ReplaceAll(strings.Join(read(t, s), "\n"), dir, "DIR")
	want := "swe-agent one one 2\nswe-agent two two 2\n! DIR/preds.json: no format that is known; it is an object with the keys \"x\"\nswe-agent stdin stdin 2\n! DIR/absent: no such file or directory"
	if got != want || s.Files() != 4 || s.Skipped() != 1 {
		t.Errorf("%d files, %d skipped\n%s\nwant\n%s", s.Files(), s.Skipped(), got, want)
	}
}

func TestSplitWords(t *testing.T) {
	for line, want := range map[string]string{`a 'b c' "d\"e" f\ g`: "a,b c,d\"e,f g", "a ''": "a,", "a 'b": "", "": "", "a\n b": "a,b", `x'y'"z"`: "xyz"} {
		if got := strings.Join(splitWords(line), ","); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
