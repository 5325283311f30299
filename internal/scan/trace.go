package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"proctor/internal/traces"
	"proctor/judge"
	"proctor/monitor"
	"proctor/monitor/normalize"
	"proctor/rules"
	"proctor/sandbox"
)

// defaultWorkdir is where SWE-bench images and their kin hold the work tree.
const defaultWorkdir = "/testbed"

// trace puts the calls of one trajectory through a Gate that runs nothing: each is answered with what
// the record says it showed.
func (s *Scanner) trace(ctx context.Context, into *Report, t *traces.Trace) (Suspect, error) {
	out := Suspect{Trajectory: t.ID, Task: t.Task, File: t.File, Line: t.Line, Format: t.Format}
	vars, workdir, err := s.task(t)
	if err != nil {
		return out, err
	}
	set, err := s.sets.set(vars)
	if err != nil {
		return out, fmt.Errorf("the task's variables do not fit the rules: %w", err)
	}
	box, last := &recorded{}, &lastRecord{}
	gate := &monitor.Gate{
		Mode: monitor.Shadow, Policy: monitor.Policy{OnUnsure: monitor.OnExecute, OnFailure: monitor.OnExecute, OnOutage: monitor.OnExecute},
		Task:  judge.Task{ID: t.Task, Instruction: vars.One("instruction"), Workdir: workdir, Vars: vars},
		Rules: set.Session(), PacksID: set.Digest(), Judge: s.judge(), Box: box, Record: last, RolloutID: t.ID,
		Normalizer: normalize.New(normalize.Task{Workdir: workdir, Vars: vars, Classifier: s.Classifier}, facts(t, workdir)),
	}
	for name, n := range t.Unmapped {
		into.Unmapped[name] += n
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Harness {
			continue
		}
		out.Total++
		into.Calls++
		s.seen.Add(1)
		call, err := parseCall(c)
		if err != nil {
			into.Invalid++
			continue
		}
		box.play(c, t.Fresh, workdir)
		if _, err := gate.Do(ctx, call); err != nil {
			return out, fmt.Errorf("call %d: %w", i+1, err)
		}
		if o := last.rec.Verdict.Opinion; o != nil && s.Judge != nil {
			into.Asked++
			into.Cost += o.Cost
			if o.Failure != "" {
				into.Failed++
			}
		}
		if last.rec.Verdict.Decision != monitor.Allow {
			out.Calls = append(out.Calls, suspected(out.Total, c, &last.rec.Verdict))
		}
	}
	return out, nil
}

// facts are those that a corpus row brings along; nil where nothing can be told.
func facts(t *traces.Trace, workdir string) normalize.Facts {
	if len(t.Refs)+len(t.Paths)+len(t.Before) == 0 {
		return nil
	}
	return normalize.NewCorpusFacts(t.Refs, t.Paths, t.Before, workdir)
}

// judge gives the judge, or one that is unsure of everything.
func (s *Scanner) judge() judge.Judge {
	if s.Judge == nil {
		return unsure{}
	}
	return s.Judge
}

// unsure stands where no judge is asked: every hit stays a suspicion.
type unsure struct{}

func (unsure) Name() string   { return "none" }
func (unsure) Digest() string { return "none" }
func (unsure) Judge(context.Context, judge.Case) judge.Opinion {
	return judge.Opinion{By: "none", Verdict: judge.Unsure, Reason: "no judge was asked"}
}

// task gives the variables and work folder of a trace: those of its own, else those known by its id.
func (s *Scanner) task(t *traces.Trace) (rules.Vars, string, error) {
	known, ok := s.Tasks[t.Task]
	vars := rules.Vars{}
	if ok {
		maps.Copy(vars, known.Vars)
	}
	if len(t.Vars) > 0 {
		own, err := readVars(t.Vars)
		if err != nil {
			return nil, "", err
		}
		maps.Copy(vars, own)
	}
	workdir := t.Workdir
	if workdir == "" || !strings.HasPrefix(workdir, "/") {
		workdir = known.Workdir
	}
	if workdir == "" {
		workdir = defaultWorkdir
	}
	for name, value := range map[string]string{"workdir": workdir, "instruction": first(t.Instruction, known.Instruction)} {
		if _, ok := vars[name]; !ok && value != "" {
			vars[name] = []string{value}
		}
	}
	return vars, workdir, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// readVars reads variables: each a text, a number, or a list of them.
func readVars(raw json.RawMessage) (rules.Vars, error) {
	var values map[string]any
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("task.vars: an object is needed: %w", err)
	}
	out := rules.Vars{}
	for name, value := range values {
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		texts := []string{}
		for _, x := range list {
			switch x := x.(type) {
			case nil:
			case string:
				if x != "" || isList {
					texts = append(texts, x)
				}
			case float64, bool:
				texts = append(texts, fmt.Sprint(x))
			default:
				return nil, fmt.Errorf("task.vars.%.40s: a text or a list of texts is needed", name)
			}
		}
		out[name] = texts
	}
	return out, nil
}

// varsKey names variables.
func varsKey(vars rules.Vars) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(&b, "%q=%q;", name, vars[name])
	}
	return b.String()
}

// parseCall holds a call against its tool, as a server does; a plain command, which is most of them, without
// writing and reading JSON.
func parseCall(c *traces.Call) (monitor.Call, error) {
	if command, ok := c.Arguments["command"].(string); ok && c.Tool == monitor.ToolBash && len(c.Arguments) == 1 && utf8.ValidString(command) {
		return plainCommand(command)
	}
	raw, err := json.Marshal(c.Arguments)
	if err != nil {
		return monitor.Call{}, err
	}
	return monitor.ParseCall("", "", c.Tool, raw, "")
}

// plainCommand is what ParseCall makes of {"command": COMMAND}.
func plainCommand(command string) (monitor.Call, error) {
	raw, err := json.Marshal(struct {
		Command string `json:"command"`
	}{command})
	return monitor.Call{Name: monitor.ToolBash, Arguments: raw, Box: sandbox.Call{Op: sandbox.OpShell, Command: command},
		Facts: normalize.Call{Tool: monitor.ToolBash, Command: command}}, err
}

// recorded is a box that answers each call with what the record says.
type recorded struct{ result sandbox.Result }

func (b *recorded) play(c *traces.Call, fresh bool, workdir string) {
	exit := c.Exit
	if exit == nil {
		zero := 0
		exit = &zero
	}
	b.result = sandbox.Result{Exit: exit, Output: []byte(c.Output), Cwd: c.Cwd}
	if fresh {
		b.result.Cwd = workdir
	}
}

// Do implements monitor.Executor.
func (b *recorded) Do(context.Context, sandbox.Call) (sandbox.Result, error) { return b.result, nil }

// lastRecord keeps the last record.
type lastRecord struct {
	rec monitor.Record
	n   int
}

// Intent implements monitor.Recorder.
func (l *lastRecord) Intent(_ context.Context, rec *monitor.Record) error {
	l.n++
	rec.Ordinal, rec.BoxID = l.n, itoa(l.n)
	return nil
}

// Outcome implements monitor.Recorder.
func (l *lastRecord) Outcome(_ context.Context, rec *monitor.Record) error {
	l.rec = *rec
	return nil
}

// suspected tells why a call would not have been allowed.
func suspected(ordinal int, c *traces.Call, v *monitor.Verdict) SuspectedCall {
	out := SuspectedCall{Ordinal: ordinal, Class: v.Class, Decision: v.Decision, Hack: v.Hack, Tool: c.Tool,
		Text: cut(callText(c)), Shown: cut(c.Output), Blind: !c.Shown, By: "rules"}
	for _, h := range v.Hits {
		if out.Rule == "" || h.Class == v.Class {
			out.Rule, out.Title, out.Severity, out.Evidence = h.Rule, h.Title, h.Severity, h.Span
		}
		if h.Class == v.Class {
			break
		}
	}
	if o := v.Opinion; o != nil {
		out.By, out.Reason, out.Confidence = o.By, o.Reason, o.Confidence
		out.Evidence = first(o.Evidence, out.Evidence)
	}
	out.Evidence = cut(out.Evidence)
	return out
}

// callText gives a call in words.
func callText(c *traces.Call) string {
	text := func(name string) string { s, _ := c.Arguments[name].(string); return s }
	if c.Tool == "bash" {
		return text("command")
	}
	return strings.TrimSpace(c.Tool + " " + text("path") + "\n" + text("file_text") + text("new_str"))
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}
