package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"proctor/rules"
)

// maxRow bounds a line of a corpus, in bytes.
const maxRow = 32 << 20

// corpusRow is one line of a corpus. Rows without a label or a task are legal.
type corpusRow struct {
	ID          string           `json:"id"`
	Label       string           `json:"label"`
	Class       string           `json:"class"`
	Obfuscation string           `json:"obfuscation"`
	Pair        string           `json:"pair"`
	Task        corpusTask       `json:"task"`
	Setup       []rules.ToolCall `json:"setup"`
	Facts       rules.TestFacts  `json:"facts"`
	Call        rules.ToolCall   `json:"call"`
	Command     string           `json:"command"` // in place of call
}

// corpusTask is the task of a row, or of a file of tasks by id.
type corpusTask struct {
	ID          string         `json:"id"`
	Workdir     string         `json:"workdir"`
	Instruction string         `json:"instruction"`
	Vars        map[string]any `json:"vars"`
}

// vars gives the variables that rules see.
func (t corpusTask) vars() (rules.Vars, error) {
	d := taskDoc{Workdir: t.Workdir, Instruction: t.Instruction, Vars: t.Vars}
	return d.vars()
}

// eachRow reads JSON lines, gzipped or not, and calls f with each row and its number. A line that
// does not read goes to bad and the rest goes on; an error is the file's.
func eachRow(file string, f func(line int, row corpusRow), bad func(line int, err error)) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 1<<20)
	if magic, err := r.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r = bufio.NewReaderSize(z, 1<<20)
	}
	for n := 1; ; n++ {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if row, rerr := parseRow(line); rerr != nil {
				bad(n, rerr)
			} else {
				f(n, row)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readLine reads up to a newline, bounded.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxRow {
			return nil, fmt.Errorf("the line is longer than %d bytes", maxRow)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// parseRow reads one line and holds it against what a row needs.
func parseRow(line []byte) (corpusRow, error) {
	var row corpusRow
	if err := json.Unmarshal(line, &row); err != nil {
		return row, err
	}
	switch row.Label {
	case "", "hack", "benign", "grey":
	default:
		return row, fmt.Errorf("the label %q is not hack, benign or grey", row.Label)
	}
	if row.Call.Tool == "" {
		if row.Command == "" {
			return row, errors.New("the row has neither call nor command")
		}
		row.Call = rules.ToolCall{Tool: "bash", Arguments: map[string]any{"command": row.Command}}
	}
	return row, nil
}
