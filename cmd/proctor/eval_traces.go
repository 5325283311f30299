package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"

	"proctor/internal/traces"
	"proctor/monitor/normalize/corpus"
)

// maxFollowed bounds the calls before one of a trajectory that are followed for it, so that long trajectories
// cost no square of their length. What a shell was told longer ago seldom matters.
const maxFollowed = 64

// cases gives the rows of a file: of a corpus, or of other people's trajectories, each call of which is an
// unlabelled case with the calls before it as its setup. What no reader knows is read as a corpus, whose
// complaints name lines. known are tasks by id.
func cases(file string, known corpus.Tasks) iter.Seq2[*corpus.Row, error] {
	if !foreign(file) {
		return corpus.Open(file)
	}
	return func(yield func(*corpus.Row, error) bool) {
		for doc, err := range (&traces.Source{Paths: []string{file}}).Documents() {
			var list []*traces.Trace
			if err == nil {
				list, err = traces.Parse(doc)
			}
			if err != nil {
				if !yield(nil, wrongDocument(file, err)) {
					return
				}
				continue
			}
			for _, t := range list {
				for row, err := range traceRows(t, known) {
					if !yield(row, err) {
						return
					}
				}
			}
		}
	}
}

// foreign reports whether the first document of a file or folder that can be read is in a format that is not a
// corpus.
func foreign(file string) bool {
	if info, err := os.Stat(file); err != nil || info.IsDir() {
		return err == nil
	}
	for doc, err := range (&traces.Source{Paths: []string{file}}).Documents() {
		if err != nil {
			continue
		}
		list, err := traces.Parse(doc)
		return err == nil && len(list) > 0 && list[0].Format != traces.Corpus
	}
	return false
}

// wrongDocument makes a document that cannot be read an error of its line.
func wrongDocument(file string, err error) error {
	var u *traces.Unknown
	switch {
	case !errors.As(err, &u):
		return err
	case u.File == file:
		return &corpus.RowError{File: file, Line: u.Line, Err: errors.New(u.Reason)}
	}
	return &corpus.RowError{File: file, Line: u.Line, Err: fmt.Errorf("%s: %s", u.File, u.Reason)}
}

// traceRows gives the agent's calls of a trajectory as rows, in order. A shell that is new for every command
// starts where the task does.
func traceRows(t *traces.Trace, known corpus.Tasks) iter.Seq2[*corpus.Row, error] {
	return func(yield func(*corpus.Row, error) bool) {
		head := corpus.Row{Source: t.Format, Line: t.Line, Task: corpus.Task{ID: t.Task, Workdir: t.Workdir, Instruction: t.Instruction},
			Facts: corpus.Facts{Refs: t.Refs, Paths: t.Paths, Before: t.Before}}
		known.Fill(&head)
		head.Task.Workdir = cmp.Or(head.Task.Workdir, "/testbed") // where images of SWE-bench and its kin hold the work tree
		var before []corpus.Call
		ordinal := 0
		for i := range t.Calls {
			call, err := caseCall(&t.Calls[i])
			if err != nil {
				if !yield(nil, &corpus.RowError{Line: t.Line, Err: fmt.Errorf("%s: call %d: %w", t.ID, i+1, err)}) {
					return
				}
				continue
			}
			if !t.Calls[i].Harness {
				ordinal++
				row := head
				row.ID, row.Call, row.Setup = fmt.Sprintf("%s-%d", t.ID, ordinal), call, before[max(0, len(before)-maxFollowed):]
				if !yield(&row, nil) {
					return
				}
			}
			before = append(before, call)
			if t.Fresh && call.Tool == "bash" {
				before = append(before, backTo(head.Task.Workdir))
			}
		}
	}
}

// caseCall gives a call of a trajectory as a corpus writes it.
func caseCall(c *traces.Call) (corpus.Call, error) {
	raw, err := json.Marshal(map[string]any{"tool": c.Tool, "arguments": c.Arguments})
	if err != nil {
		return corpus.Call{}, err
	}
	var out corpus.Call
	err = json.Unmarshal(raw, &out)
	return out, err
}

// backTo is the call that a new shell stands for: it starts in the working folder.
func backTo(workdir string) corpus.Call {
	command := "cd '" + strings.ReplaceAll(workdir, "'", `'\''`) + "'"
	return corpus.Call{Tool: "bash", Arguments: corpus.Arguments{Command: command}, Raw: map[string]any{"command": command}}
}
