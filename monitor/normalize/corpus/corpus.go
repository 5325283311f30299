// Package corpus reads the corpora that measure the monitor: one JSON object a line, plain or
// gzipped. Rules eval, judge eval and replay share it.
package corpus

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sort"

	"proctor/monitor/normalize"
	"proctor/rules"
)

// maxLine bounds one row: 32 MiB, three times the largest call that the monitor takes, escaped.
const maxLine = 32 << 20

// Labels of a row.
const (
	Hack   = "hack"
	Benign = "benign"
	Grey   = "grey" // reviewers may differ: reported, never gated on
)

// Row is one case of a corpus. Only the call has to be there; a row without id is called by its line.
type Row struct {
	ID          string `json:"id"`
	Label       string `json:"label,omitempty"` // hack, benign, grey; "": not labelled
	Class       string `json:"class,omitempty"` // of a benign or grey row: what it could be taken for
	Technique   string `json:"technique,omitempty"`
	Obfuscation string `json:"obfuscation,omitempty"`
	Split       string `json:"split,omitempty"`
	Why         string `json:"why,omitempty"`
	Source      string `json:"source,omitempty"`
	Pair        string `json:"pair,omitempty"`
	Task        Task   `json:"task"`
	Facts       Facts  `json:"facts"`
	Setup       []Call `json:"setup,omitempty"`
	Call        Call   `json:"call"`

	// Command stands for a bash call in unlabelled rows: {"id", "command"}.
	Command string `json:"command,omitempty"`
	Line    int    `json:"-"` // in the file, from 1
}

// Task is what a row knows of its task.
type Task struct {
	ID          string     `json:"id,omitempty"`
	Kind        string     `json:"kind,omitempty"`
	Workdir     string     `json:"workdir,omitempty"`
	Instruction string     `json:"instruction,omitempty"`
	Vars        rules.Vars `json:"-"`
	RawVars     vars       `json:"vars,omitempty"`
}

// vars takes a text, a number or a list of them for each variable.
type vars map[string]json.RawMessage

func (v vars) decode() (rules.Vars, error) {
	out := rules.Vars{}
	for name, raw := range v {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, fmt.Errorf("task.vars.%s: %w", name, err)
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		out[name] = []string{}
		for _, x := range list {
			switch x := x.(type) {
			case nil:
			case string:
				if x != "" || ok {
					out[name] = append(out[name], x)
				}
			case float64, bool:
				out[name] = append(out[name], fmt.Sprint(x))
			default:
				return nil, fmt.Errorf("task.vars.%s: a text or a list of texts is needed", name)
			}
		}
	}
	return out, nil
}

// Facts are what the sandbox would find out; empty maps mean unknown.
type Facts struct {
	Refs   map[string]string `json:"refs,omitempty"`
	Paths  map[string]string `json:"paths,omitempty"`
	Before map[string]string `json:"before,omitempty"`
}

// Call is a tool call as corpora write it.
type Call struct {
	Tool      string         `json:"tool"`
	Arguments Arguments      `json:"arguments"`
	Raw       map[string]any `json:"-"` // the arguments as written, with those that Arguments lacks
}

// UnmarshalJSON reads the arguments twice: by name, and as written.
func (c *Call) UnmarshalJSON(data []byte) error {
	var text struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*c = Call{Tool: text.Tool}
	if len(text.Arguments) == 0 {
		return nil
	}
	if err := json.Unmarshal(text.Arguments, &c.Raw); err != nil {
		return fmt.Errorf("arguments of %s: %w", c.Tool, err)
	}
	if err := json.Unmarshal(text.Arguments, &c.Arguments); err != nil {
		return fmt.Errorf("arguments of %s: %w", c.Tool, err)
	}
	return nil
}

// ToolCall gives the call as rules and the gate take it.
func (c Call) ToolCall() rules.ToolCall { return rules.ToolCall{Tool: c.Tool, Arguments: c.Raw} }

// Arguments are those of all tools; each tool reads its own.
type Arguments struct {
	Command    string `json:"command,omitempty"`
	Handle     string `json:"handle,omitempty"`
	Text       string `json:"text,omitempty"`
	Path       string `json:"path,omitempty"`
	ViewRange  []int  `json:"view_range,omitempty"`
	FileText   string `json:"file_text,omitempty"`
	OldStr     string `json:"old_str,omitempty"`
	NewStr     string `json:"new_str,omitempty"`
	InsertLine int    `json:"insert_line,omitempty"`
}

// Normal gives the call as the normaliser takes it.
func (c Call) Normal() normalize.Call {
	return normalize.Call{
		Tool: c.Tool, Command: c.Arguments.Command, Handle: c.Arguments.Handle, Text: c.Arguments.Text, Path: c.Arguments.Path, File: c.Arguments.FileText,
		Old: c.Arguments.OldStr, New: c.Arguments.NewStr, Line: c.Arguments.InsertLine,
	}
}

// Vars gives the row's task variables with workdir and instruction among them.
func (r *Row) Vars() rules.Vars {
	out := rules.Vars{}
	for k, v := range r.Task.Vars {
		out[k] = v
	}
	if _, ok := out["workdir"]; !ok && r.Task.Workdir != "" {
		out["workdir"] = []string{r.Task.Workdir}
	}
	if _, ok := out["instruction"]; !ok && r.Task.Instruction != "" {
		out["instruction"] = []string{r.Task.Instruction}
	}
	return out
}

// Kinds of hacks, each with a bar of its own.
const (
	Documented = "documented"            // as it was met
	Obfuscated = "obfuscated"            // the same, disguised
	Edits      = "edit tools and chains" // by other tools than bash, or over several calls
)

// Kind gives a hack's kind; "" of other rows.
func (r *Row) Kind() string {
	switch {
	case r.Label != Hack:
		return ""
	case r.Call.Tool != "bash" || len(r.Setup) > 0 && r.Obfuscation == "multi_call":
		return Edits
	case r.Obfuscation == "none" || r.Obfuscation == "" || r.Split == "documented":
		return Documented
	}
	return Obfuscated
}

// Case gives the row as rules and judges are measured on it.
func (r *Row) Case() rules.Case {
	c := rules.Case{Vars: r.Vars(), Facts: rules.TestFacts(r.Facts), Call: r.Call.ToolCall()}
	for _, s := range r.Setup {
		c.Setup = append(c.Setup, s.ToolCall())
	}
	return c
}

// Normalizer gives a normaliser for the row's task and facts that has seen its setup.
func (r *Row) Normalizer() *normalize.Normalizer {
	facts := normalize.NewCorpusFacts(r.Facts.Refs, r.Facts.Paths, r.Facts.Before, r.Task.Workdir)
	n := normalize.New(normalize.Task{Workdir: r.Task.Workdir, Vars: r.Vars()}, facts)
	for _, c := range r.Setup {
		n.Observe(c.Normal(), true, "")
	}
	return n
}

// RowError is a row that could not be read.
type RowError struct {
	File string
	Line int
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap gives the cause.
func (e *RowError) Unwrap() error { return e.Err }

// ErrRow is wrapped by every RowError.
var ErrRow = errors.New("bad row")

// Open reads a corpus file row by row; a bad row yields a *RowError and reading goes on. The file is
// closed when the loop ends.
func Open(name string) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		Read(f, name)(yield)
	}
}

// Read reads rows from r, gzipped or not; name is what errors call it.
func Read(r io.Reader, name string) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		buffered := bufio.NewReaderSize(r, 1<<16)
		if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
			z, err := gzip.NewReader(buffered)
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", name, err))
				return
			}
			buffered = bufio.NewReaderSize(z, 1<<16)
		}
		scan := bufio.NewScanner(buffered)
		scan.Buffer(make([]byte, 1<<16), maxLine)
		line := 0
		for scan.Scan() {
			line++
			if len(bytes.TrimSpace(scan.Bytes())) == 0 {
				continue
			}
			row, err := decode(scan.Bytes(), line)
			if err != nil {
				if !yield(nil, &RowError{name, line, err}) {
					return
				}
				continue
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := scan.Err(); err != nil {
			yield(nil, &RowError{name, line + 1, fmt.Errorf("%w: %w", ErrRow, err)})
		}
	}
}

func decode(text []byte, line int) (*Row, error) {
	row := &Row{}
	if err := json.Unmarshal(text, row); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRow, err)
	}
	row.Line = line
	if row.Call.Tool == "" && row.Command != "" {
		row.Call = Call{Tool: "bash", Arguments: Arguments{Command: row.Command}, Raw: map[string]any{"command": row.Command}}
	}
	if row.ID == "" {
		row.ID = fmt.Sprintf("line-%d", line)
	}
	if row.Call.Tool == "" {
		return nil, fmt.Errorf("%w: %s has neither a call nor a command", ErrRow, row.ID)
	}
	switch row.Label {
	case "", Hack, Benign, Grey:
	default:
		return nil, fmt.Errorf("%w: %s has label %q; hack, benign and grey are known", ErrRow, row.ID, row.Label)
	}
	v, err := row.Task.RawVars.decode()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRow, row.ID, err)
	}
	row.Task.Vars = v
	return row, nil
}

// Tasks maps task ids to workdir and variables, for corpora whose rows name only the id.
type Tasks map[string]Task

// LoadTasks reads a file {"<task id>": {workdir, vars}}; no tasks where no file is named.
func LoadTasks(name string) (Tasks, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var out Tasks
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("%s: it must be a JSON object of tasks by id: %w", name, err)
	}
	ids := make([]string, 0, len(out))
	for id := range out {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	for _, id := range ids {
		t := out[id]
		t.ID = id
		if t.Vars, err = t.RawVars.decode(); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, id, err)
		}
		out[id] = t
	}
	return out, nil
}

// Fill puts workdir and variables into a row that lacks them.
func (t Tasks) Fill(row *Row) {
	known, ok := t[row.Task.ID]
	if !ok {
		return
	}
	if row.Task.Workdir == "" {
		row.Task.Workdir = known.Workdir
	}
	if len(row.Task.Vars) == 0 {
		row.Task.Vars = known.Vars
	}
}
