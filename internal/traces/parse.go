package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxNesting bounds lists of lists of documents.
const maxNesting = 3

// object is a JSON object whose values are not decoded yet.
type object map[string]json.RawMessage

// has reports whether all keys are there.
func (o object) has(keys ...string) bool {
	for _, k := range keys {
		if _, ok := o[k]; !ok {
			return false
		}
	}
	return true
}

// text gives a value that is text, or "".
func (o object) text(key string) string {
	var s string
	if raw := bytes.TrimSpace(o[key]); len(raw) > 0 && raw[0] == '"' {
		_ = json.Unmarshal(raw, &s) // no text is no name
	}
	return s
}

// first gives the first text among keys; a number counts as text.
func (o object) first(keys ...string) string {
	for _, k := range keys {
		if s := o.text(k); s != "" {
			return s
		}
		if n := bytes.TrimSpace(o[k]); len(n) > 0 && (n[0] >= '0' && n[0] <= '9') {
			return string(n)
		}
	}
	return ""
}

// reader reads documents of one format.
type reader struct {
	format string
	fits   func(o object) bool
	read   func(d *Document, o object) ([]*Trace, error)
}

// readers are tried in order; the first that fits reads. Formats that name themselves come first.
func readers() []reader {
	return []reader{
		{Proctor, fitsProctor, readProctor},
		{ATIF, fitsATIF, readATIF},
		{MiniSWEAgent, fitsMini, readMini},
		{SWEAgent, fitsSWEAgent, readSWEAgent},
		{Inspect, fitsInspect, readInspect},
		{OpenHands, fitsOpenHands, readOpenHands},
		{OpenAI, fitsOpenAI, readOpenAI},
	}
}

// Parse gives the traces of a document. The error is an *Unknown.
func Parse(d *Document) ([]*Trace, error) {
	out, err := parse(d, d.Data, 0)
	if err != nil {
		var u *Unknown
		if errors.As(err, &u) {
			return nil, u
		}
		return nil, d.unknown("%v", err)
	}
	for i, t := range out {
		t.File, t.Line = d.File, d.Line
		if t.ID == "" {
			t.ID = d.name(i, len(out))
		}
		if t.Task == "" && d.Line == 0 && len(out) == 1 {
			t.Task = stem(d.File)
		}
	}
	return out, nil
}

func parse(d *Document, data []byte, depth int) ([]*Trace, error) {
	data = bytes.TrimSpace(data)
	if bytes.HasPrefix(data, []byte("[")) {
		return parseList(d, data, depth)
	}
	o, err := topLevel(data)
	if err != nil {
		return nil, errors.New(notJSON(data, err))
	}
	for _, r := range readers() {
		if !r.fits(o) {
			continue
		}
		out, err := r.read(d, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.format, err)
		}
		for _, t := range out {
			t.Format = r.format
		}
		return out, nil
	}
	return nil, d.unknown("no format that is known; it is an object with the keys %s", keys(o))
}

// parseList reads a list: of messages, of events, of corpus rows, or of documents.
func parseList(d *Document, data []byte, depth int) ([]*Trace, error) {
	items, err := elements(data)
	if err != nil {
		return nil, errors.New(notJSON(data, err))
	}
	if len(items) == 0 {
		return nil, errors.New("an empty list")
	}
	if bytes.HasPrefix(items[0], []byte("[")) { // OpenHands once wrote pairs of action and observation
		return named(OpenHands)(readPairs(items))
	}
	var head object
	if err := json.Unmarshal(items[0], &head); err != nil {
		return nil, errors.New("a list of neither messages nor events")
	}
	switch {
	case head.has("call", "id"), head.has("command", "id") && !head.has("role"):
		return named(Corpus)(readCorpus(items))
	case head.has("role"), head.has("type") && (head.has("call_id") || head.has("content")):
		return named(OpenAI)(one(readMessages(items)))
	case head.has("source") && (head.has("action") || head.has("observation") || head.has("kind") || head.has("message")):
		return named(OpenHands)(one(readEvents(items)))
	case depth >= maxNesting:
		return nil, errors.New("lists nested too deep")
	}
	var out []*Trace
	for i, item := range items {
		some, err := parse(d, item, depth+1)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out = append(out, some...)
	}
	return out, nil
}

// named gives traces their format.
func named(format string) func([]*Trace, error) ([]*Trace, error) {
	return func(out []*Trace, err error) ([]*Trace, error) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}
		for _, t := range out {
			t.Format = format
		}
		return out, nil
	}
}

// one makes a list of a trace.
func one(t *Trace, err error) ([]*Trace, error) {
	if err != nil {
		return nil, err
	}
	return []*Trace{t}, nil
}

// notJSON says where a text stops being JSON.
func notJSON(data []byte, err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		if syntax.Offset >= int64(len(data)) {
			return fmt.Sprintf("JSON that is cut off after %d bytes", len(data))
		}
		return fmt.Sprintf("not JSON at byte %d: %v", syntax.Offset, err)
	}
	return "not a JSON object: " + err.Error()
}

// keys lists the first keys of an object, in order.
func keys(o object) string {
	names := sorted(o)
	more := ""
	if len(names) > 8 {
		names, more = names[:8], ", ..."
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%.40q", n)
	}
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(names, ", ") + more
}
