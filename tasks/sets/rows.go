package sets

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"

	"proctor/tasks"
)

// Bounds of a file of rows. Rows of published sets reach a few MB (test lists of a large project).
const (
	maxRow  = 64 << 20 // bytes
	maxRows = 1 << 20
)

// isRows reports whether a file's name says that it holds rows.
func isRows(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	for _, end := range []string{".jsonl", ".ndjson", ".json", ".parquet"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// eachRow reads a file of rows: JSON lines, one JSON document (a list, or an object that holds rows
// by id), or parquet, each also compressed with gzip. What cannot be read is a problem; the rows
// before and after it are given all the same, where the format lets them be found.
func eachRow(file string, each func(*row)) []tasks.Problem {
	f, err := os.Open(file)
	if err != nil {
		return []tasks.Problem{{File: file, Message: err.Error(), Remedy: "name a file of rows"}}
	}
	defer func() { _ = f.Close() }()
	if strings.HasSuffix(strings.ToLower(file), ".parquet") {
		return eachParquet(file, f, each)
	}
	in := bufio.NewReaderSize(f, 1<<16)
	if head, _ := in.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return []tasks.Problem{{File: file, Message: "is no gzip file: " + err.Error(), Remedy: "compress it anew"}}
		}
		in = bufio.NewReaderSize(z, 1<<16)
	}
	if head, _ := in.Peek(4); string(head) == "PAR1" {
		return []tasks.Problem{{File: file, Message: "is parquet inside gzip", Remedy: "unpack it first: parquet is compressed by itself"}}
	}
	if whole(in) {
		return eachOfDocument(file, in, each)
	}
	return eachLine(file, in, each)
}

// whole reports whether JSON starts with a list, or with an object that is not ended on its line.
func whole(in *bufio.Reader) bool {
	head, _ := in.Peek(1 << 16)
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	if len(head) == 0 || head[0] == '[' {
		return len(head) > 0
	}
	line, _, found := bytes.Cut(head, []byte("\n"))
	return found && len(bytes.TrimSpace(line)) <= 2 // "{" alone
}

func decodeRow(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one value on the line")
	}
	if fields == nil {
		return nil, errors.New("null is no row")
	}
	return fields, nil
}

func eachLine(file string, in *bufio.Reader, each func(*row)) []tasks.Problem {
	var problems []tasks.Problem
	for line, number := 1, 0; ; line++ {
		data, err := readLine(in)
		data = bytes.TrimSpace(data)
		if len(data) > 0 {
			number++
			fields, bad := decodeRow(data)
			switch {
			case bad == nil:
				each(&row{file: file, number: number, line: line, fields: fields})
			case errors.Is(bad, io.ErrUnexpectedEOF) && atEnd(in):
				problems = append(problems, tasks.Problem{File: file, Line: line, Row: number, Message: "ends in the middle of a row: the file is cut off", Remedy: "fetch it anew; the rows before are used"})
			default:
				problems = append(problems, tasks.Problem{File: file, Line: line, Row: number, Message: "is no JSON object: " + bad.Error(), Remedy: "write one JSON object a line"})
			}
		}
		if errors.Is(err, io.EOF) {
			return problems
		}
		if err != nil {
			return append(problems, tasks.Problem{File: file, Line: line, Message: err.Error(), Remedy: "check the file; the rows before are used"})
		}
		if number >= maxRows {
			return append(problems, tasks.Problem{File: file, Message: fmt.Sprintf("holds more than %d rows", maxRows), Remedy: "split it"})
		}
	}
}

// atEnd reports whether nothing but blanks follows.
func atEnd(in *bufio.Reader) bool {
	rest, err := in.Peek(64)
	return errors.Is(err, io.EOF) && len(bytes.TrimSpace(rest)) == 0
}

// readLine reads to the end of a line, of at most maxRow bytes.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxRow {
			return nil, fmt.Errorf("a line is over %d MiB", maxRow>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// eachOfDocument reads one JSON document that holds rows: a list, or an object of objects, whose
// names are the rows' ids where these have none.
func eachOfDocument(file string, in io.Reader, each func(*row)) []tasks.Problem {
	d := json.NewDecoder(in)
	d.UseNumber()
	start, err := d.Token()
	number := 0
	for err == nil && d.More() {
		name := ""
		if start == json.Delim('{') {
			var token json.Token
			if token, err = d.Token(); err != nil {
				break
			}
			name, _ = token.(string)
		}
		var value any
		if err = d.Decode(&value); err != nil {
			break
		}
		number++
		fields, ok := value.(map[string]any)
		if !ok {
			return []tasks.Problem{{File: file, Row: number, Field: name, Message: "is " + kindOf(value) + ", not a row", Remedy: "write a list of objects, or one object a line"}}
		}
		if _, has := fields["instance_id"]; !has && name != "" {
			fields["instance_id"] = name
		}
		each(&row{file: file, number: number, fields: fields})
	}
	if err != nil {
		return []tasks.Problem{{File: file, Row: number + 1, Message: "is no JSON: " + err.Error(), Remedy: "fetch it anew; the rows before are used"}}
	}
	return nil
}

// eachParquet reads a parquet file row by row.
func eachParquet(file string, f *os.File, each func(*row)) (problems []tasks.Problem) {
	number := 0
	broken := func(err any) []tasks.Problem {
		return append(problems, tasks.Problem{File: file, Row: number + 1, Message: fmt.Sprintf("is no parquet file that can be read: %v", err), Remedy: "fetch it anew; the rows before are used"})
	}
	// The library panics on some broken files.
	defer func() {
		if p := recover(); p != nil {
			problems = broken(p)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return broken(err)
	}
	opened, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return broken(err)
	}
	reader := parquet.NewGenericReader[map[string]any](opened, opened.Schema())
	defer func() { _ = reader.Close() }()
	for number < maxRows {
		batch := []map[string]any{{}}
		n, err := reader.Read(batch)
		if n == 1 {
			number++
			each(&row{file: file, number: number, fields: plain(batch[0]).(map[string]any)})
		}
		if errors.Is(err, io.EOF) {
			return problems
		}
		if err != nil {
			return broken(err)
		}
	}
	return problems
}

// plain gives a value of a parquet row as JSON would have it.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = plain(item)
		}
		if inner, ok := out["list"].([]any); ok && len(out) == 1 { // a list as parquet nests it
			return elements(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		return out
	case []string:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = item
		}
		return out
	case []byte:
		return string(v)
	case int, int32, int64, float32, float64:
		return json.Number(fmt.Sprint(v))
	}
	return v
}

func elements(list []any) []any {
	for i, item := range list {
		if m, ok := item.(map[string]any); ok && len(m) == 1 {
			for _, v := range m {
				list[i] = v
			}
		}
	}
	return list
}
