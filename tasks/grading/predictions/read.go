package predictions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Row is a prediction as SWE-bench writes it, or why it is none.
type Row struct {
	File       string
	Line       int    // of JSONL, from 1; 0 elsewhere
	Index      int    // in the file, from 1
	InstanceID string // "" where it could not be read
	Model      string
	Patch      []byte // nil where it is null
	Err        error  // ErrRow, with field and remedy; nil for a row that holds
}

// Place names where a row stands.
func (r Row) Place() string {
	if r.Line > 0 {
		return fmt.Sprintf("%s:%d", r.File, r.Line)
	}
	return fmt.Sprintf("%s, prediction %d", r.File, r.Index)
}

// ErrRow: a row is no prediction.
var ErrRow = errors.New("no prediction")

// NoModel is the name of predictions that carry none; the harness's word.
const NoModel = "None"

// MaxRow bounds a row, in bytes: twice the largest patch that is graded, since JSON escapes what it holds.
const MaxRow = 192 << 20

// Read reads predictions: JSONL, a JSON list, or a JSON object by instance id. It calls each for every
// row, bad ones too; an error is the reader's, each's, or says that the file holds no predictions at all.
func Read(file string, in io.Reader, each func(Row) error) error {
	r := bufio.NewReaderSize(in, 1<<20)
	first, err := firstByte(r)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: is empty; write one prediction a line: {\"instance_id\": ..., \"model_name_or_path\": ..., \"model_patch\": ...}", file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if first == '[' || (first == '{' && !startsRow(r)) {
		return readDocument(file, r, first, each)
	}
	return readLines(file, r, each)
}

// firstByte gives the first byte that is no blank, and leaves it.
func firstByte(r *bufio.Reader) (byte, error) {
	if bom, err := r.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3)
	}
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b, r.UnreadByte()
		}
	}
}

// startsRow reports whether an object is a row of JSONL: its first key, or one on its first line, is one
// of a prediction's. An object by instance id holds objects.
func startsRow(r *bufio.Reader) bool {
	head, _ := r.Peek(64 << 10)
	dec := json.NewDecoder(bytes.NewReader(head))
	if _, err := dec.Token(); err != nil {
		return true
	}
	key, err := dec.Token()
	if err != nil {
		return true
	}
	value, err := dec.Token()
	return key == "instance_id" || key == "model_patch" || key == "model_name_or_path" || err != nil || value != json.Delim('{')
}

func readLines(file string, r *bufio.Reader, each func(Row) error) error {
	index := 0
	for line := 1; ; line++ {
		text, over, err := readLine(r)
		if len(bytes.TrimSpace(text)) > 0 || over {
			index++
			row := Row{File: file, Line: line, Index: index}
			switch {
			case over:
				row.InstanceID = guessID(text)
				row.Err = fmt.Errorf("%w: the line is over %d MiB", ErrRow, MaxRow>>20)
			case errors.Is(err, io.EOF) && !json.Valid(text):
				row.Err = fmt.Errorf("%w: the file ends inside of it; write the file anew, or take the line out", ErrRow)
			default:
				row.decode(text, "")
			}
			if err := each(row); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
}

// readLine reads a line; of one that is over MaxRow its beginning, and over.
func readLine(r *bufio.Reader) (text []byte, over bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(text)+len(part) <= MaxRow {
			text = append(text, part...)
		} else {
			over = true
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if over && len(text) > 1<<16 {
			text = text[:1<<16]
		}
		return text, over, err
	}
}

// guessID looks for the id of a row that is too long to be read.
func guessID(head []byte) string {
	_, rest, ok := strings.Cut(string(head), `"instance_id"`)
	if !ok {
		return ""
	}
	var id string
	rest = strings.TrimLeft(rest, ": \t")
	if json.NewDecoder(strings.NewReader(rest)).Decode(&id) != nil {
		return ""
	}
	return id
}

// readDocument reads a list of predictions, or an object of them.
func readDocument(file string, r *bufio.Reader, first byte, each func(Row) error) error {
	dec := json.NewDecoder(r)
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for index := 1; dec.More(); index++ {
		row, key := Row{File: file, Index: index}, ""
		if first == '{' {
			token, err := dec.Token()
			if err != nil {
				return brokenFile(file, index, err)
			}
			key, _ = token.(string)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return brokenFile(file, index, err)
		}
		row.decode(raw, key)
		if err := each(row); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return brokenFile(file, 0, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more follows the JSON document; write one document, or one prediction a line", file)
	}
	return nil
}

func brokenFile(file string, index int, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends early")
	}
	return fmt.Errorf("%s: not valid JSON at prediction %d: %w", file, index, err)
}

// decode reads a row's fields. key is the instance id that it stands under; "" for none.
func (r *Row) decode(text []byte, key string) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		r.InstanceID = key
		r.Err = fmt.Errorf("%w: not a JSON object: %s", ErrRow, reason(err, text))
		return
	}
	r.InstanceID, r.Model = key, NoModel
	problems := []string{}
	if raw, ok := fields["instance_id"]; ok {
		if json.Unmarshal(raw, &r.InstanceID) != nil || r.InstanceID == "" {
			problems = append(problems, "instance_id: is no id; write the task's id as a string")
		}
	} else if key == "" {
		problems = append(problems, "instance_id: is missing; write the task's id")
	}
	if raw, ok := fields["model_name_or_path"]; ok && string(raw) != "null" {
		if json.Unmarshal(raw, &r.Model) != nil || r.Model == "" {
			problems = append(problems, "model_name_or_path: is no name; write a string")
			r.Model = NoModel
		}
	}
	raw, ok := fields["model_patch"]
	var patch *string
	switch {
	case !ok:
		problems = append(problems, `model_patch: is missing; write the patch, or "" where there is none`)
	case json.Unmarshal(raw, &patch) != nil:
		problems = append(problems, "model_patch: is no text; write the patch as a string")
	case patch != nil:
		r.Patch = []byte(*patch)
	}
	if len(problems) > 0 {
		r.Err = fmt.Errorf("%w: %s", ErrRow, strings.Join(problems, "; "))
	}
}

func reason(err error, text []byte) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%v at byte %d", err, syntax.Offset)
	}
	if len(text) > 40 {
		text = append(text[:40:40], "..."...)
	}
	return string(bytes.TrimSpace(text))
}
