package sets

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"proctor/tasks"
)

// row is one row of a set, and where it stands.
type row struct {
	file   string
	number int // from 1
	line   int // of a text file, from 1; 0 elsewhere
	fields map[string]any
	faults []tasks.Problem
}

// fault notes what is wrong with a field.
func (r *row) fault(field, message, remedy string) {
	r.faults = append(r.faults, tasks.Problem{File: r.file, Line: r.line, Row: r.number, Task: r.id(), Field: field, Message: message, Remedy: remedy})
}

// id is the row's own name, as far as it has one.
func (r *row) id() string {
	id, _ := r.fields["instance_id"].(string)
	return id
}

func (r *row) has(field string) bool {
	v, ok := r.fields[field]
	return ok && v != nil
}

// any of the fields' names that the row has; the first where it has none, for the error.
func (r *row) first(names ...string) string {
	for _, n := range names {
		if r.has(n) {
			return n
		}
	}
	return names[0]
}

// text gives a field that must be there; the first of names that is.
func (r *row) text(names ...string) string {
	field := r.first(names...)
	s := r.maybe(field)
	if s == "" && !r.failed(field) {
		r.fault(field, "is missing", "the set's rows need it")
	}
	return s
}

// maybe gives a text field; "" where it is not there.
func (r *row) maybe(field string) string {
	switch v := r.fields[field].(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		r.fault(field, fmt.Sprintf("is %s, not text", kindOf(v)), "write a string")
		return ""
	}
}

func (r *row) failed(field string) bool {
	return slices.ContainsFunc(r.faults, func(p tasks.Problem) bool { return p.Field == field })
}

// list gives a list of texts: a list, or a string that holds one as JSON or as Python writes it.
func (r *row) list(names ...string) []string {
	field := r.first(names...)
	switch v := r.fields[field].(type) {
	case nil:
		return nil
	case []any:
		return r.texts(field, v)
	case string:
		if strings.TrimSpace(v) == "" {
			return nil
		}
		var items []any
		if err := json.Unmarshal([]byte(v), &items); err == nil {
			return r.texts(field, items)
		}
		if items, ok := pythonList(v); ok {
			return items
		}
		r.fault(field, fmt.Sprintf("is text that holds no list: %.60q", v), "write a list, or a string with a JSON list")
	default:
		r.fault(field, fmt.Sprintf("is %s, not a list", kindOf(v)), "write a list of strings")
	}
	return nil
}

func (r *row) texts(field string, items []any) []string {
	out := make([]string, 0, len(items))
	seen := map[string]bool{}
	for i, item := range items {
		s, ok := item.(string)
		if !ok {
			r.fault(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("is %s, not text", kindOf(item)), "write a string")
			continue
		}
		if s != "" && !seen[s] { // published lists hold doubles
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// object gives a field that is an object, or a string that holds one; nil where it is not there.
func (r *row) object(field string) *row {
	v := r.fields[field]
	if s, ok := v.(string); ok && strings.HasPrefix(strings.TrimSpace(s), "{") {
		var decoded map[string]any
		if json.Unmarshal([]byte(s), &decoded) == nil {
			v = decoded
		}
	}
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		return &row{file: r.file, number: r.number, line: r.line, fields: v}
	default:
		r.fault(field, fmt.Sprintf("is %s, not an object", kindOf(v)), "write an object")
		return nil
	}
}

// take moves what was found wrong in an object of the row to the row.
func (r *row) take(field string, inner *row) {
	if inner == nil {
		return
	}
	for _, p := range inner.faults {
		p.Field, p.Task = field+"."+p.Field, r.id()
		r.faults = append(r.faults, p)
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a truth value"
	case json.Number, float64, int, int32, int64:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	}
	return "an object"
}

// pythonList reads a list of strings as Python's repr writes it, which some sets store.
func pythonList(text string) ([]string, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") || !strings.HasSuffix(text, "]") {
		return nil, false
	}
	rest := strings.TrimSpace(text[1 : len(text)-1])
	items := []string{}
	for rest != "" {
		item, left, ok := pythonString(rest)
		if !ok {
			return nil, false
		}
		items = append(items, item)
		rest = strings.TrimSpace(left)
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil, false
		}
		rest = strings.TrimSpace(rest[1:])
	}
	return items, true
}

// pythonString reads one quoted string and gives what follows it.
func pythonString(text string) (item, rest string, ok bool) {
	quote := text[0]
	if quote != '\'' && quote != '"' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return b.String(), text[i+1:], true
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteString(unescape(text[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case '\\', '\'', '"':
		return string(c)
	}
	return `\` + string(c)
}
