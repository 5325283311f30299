// Package strict decodes a tree of YAML nodes into Go values and says of everything that does not
// fit where it stands, under which field, and what to do about it.
//
// The yaml library's own strict mode stops at types it can bend (a number becomes a string, a
// version 1.10 becomes 1.1) and reports lines only. A task file is written by hand and read by a
// grader, so nothing here is bent: a value has the type that its field has, or it is an error.
package strict

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is one thing that does not fit. Line and Column count from 1; both are 0 where the source
// has no places.
type Error struct {
	Line, Column int
	Field        string // dotted path, with [n] for list items; "" for the document
	Message      string
	Remedy       string
}

// maxErrors bounds what one document can report.
const maxErrors = 100

// maxDepth bounds nesting; no task type is deeper than five.
const maxDepth = 64

// Decoder collects the errors of one document and the places of its fields.
type Decoder struct {
	Errors []Error
	places map[string]*yaml.Node
}

// Decode fills out, a pointer to a struct, from node. Fields are named by their yaml tags. Errors
// are collected, never returned one by one: out holds all that did fit.
func Decode(node *yaml.Node, out any) *Decoder {
	d := &Decoder{places: map[string]*yaml.Node{}}
	if node.Kind == yaml.DocumentNode {
		if len(node.Content) != 1 {
			d.fail(node, "", "the document is empty", "write the fields of the format")
			return d
		}
		node = node.Content[0]
	}
	d.value(node, reflect.ValueOf(out).Elem(), "", 0)
	return d
}

// Has reports whether the document sets the field.
func (d *Decoder) Has(field string) bool { return d.places[field] != nil }

// Fail adds an error at the place of field, or of the nearest field above it that is there.
func (d *Decoder) Fail(field, message, remedy string) {
	at := field
	for at != "" && d.places[at] == nil {
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	node := d.places[at]
	if node == nil {
		node = &yaml.Node{}
	}
	d.fail(node, field, message, remedy)
}

func (d *Decoder) fail(n *yaml.Node, field, message, remedy string) {
	if len(d.Errors) < maxErrors {
		d.Errors = append(d.Errors, Error{Line: n.Line, Column: n.Column, Field: field, Message: message, Remedy: remedy})
	}
}

func (d *Decoder) value(n *yaml.Node, v reflect.Value, field string, depth int) {
	d.places[field] = n
	if depth > maxDepth {
		d.fail(n, field, "nested too deeply", "flatten it")
		return
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.fail(n, field, "anchors and aliases are not read", "write the value out")
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		d.pointer(n, v, field, depth)
	case reflect.Struct:
		d.structure(n, v, field, depth)
	case reflect.Map:
		d.mapping(n, v, field, depth)
	case reflect.Slice:
		d.list(n, v, field, depth)
	default:
		d.scalar(n, v, field)
	}
}

func (d *Decoder) pointer(n *yaml.Node, v reflect.Value, field string, depth int) {
	if n.Tag == "!!null" {
		return
	}
	v.Set(reflect.New(v.Type().Elem()))
	d.value(n, v.Elem(), field, depth)
}

// fields gives the struct's fields by their yaml names, those of inlined structs among them.
func fields(t reflect.Type) map[string][]int {
	names := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" || name == "" || options == "inline" {
			continue
		}
		names[name] = f.Index
	}
	return names
}

func (d *Decoder) structure(n *yaml.Node, v reflect.Value, field string, depth int) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, field, "is "+describe(n)+", not a mapping of fields", "write `name: value` lines below it")
		return
	}
	known := fields(v.Type())
	d.pairs(n, field, func(key, value *yaml.Node, name string) {
		index, ok := known[key.Value]
		if !ok {
			d.fail(key, name, "unknown field", suggest(key.Value, known))
			return
		}
		d.value(value, v.FieldByIndex(index), name, depth+1)
	})
}

func (d *Decoder) mapping(n *yaml.Node, v reflect.Value, field string, depth int) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, field, "is "+describe(n)+", not a mapping", "write `name: value` lines below it, or {}")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	d.pairs(n, field, func(key, value *yaml.Node, name string) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(value, item, name, depth+1)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
}

// pairs calls each for every key of a mapping, once: a key that stands twice is an error.
func (d *Decoder) pairs(n *yaml.Node, field string, each func(key, value *yaml.Node, name string)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := join(field, key.Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			d.fail(key, field, "a key is not a word", "write `name: value`")
		case key.Value == "<<" && key.Tag == "!!merge":
			d.fail(key, name, "merge keys are not read", "write the fields out")
		case seen[key.Value]:
			d.fail(key, name, "the field stands twice", "keep one of them")
		default:
			seen[key.Value] = true
			each(key, value, name)
		}
	}
}

func (d *Decoder) list(n *yaml.Node, v reflect.Value, field string, depth int) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, field, "is "+describe(n)+", not a list", "write it as [item, item]")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(item, v.Index(i), field+"["+strconv.Itoa(i)+"]", depth+1)
	}
}

func (d *Decoder) scalar(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, field, "is "+describe(n)+", not "+kindWord(v), "write one value")
		return
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		if n.Tag != "!!str" {
			d.fail(n, field, "is "+describe(n)+", not a string", "put it in quotes: \""+clip(n.Value)+"\"")
			return
		}
		v.SetString(n.Value)
		return
	case reflect.Bool, reflect.Int, reflect.Int64:
		err = n.Decode(v.Addr().Interface())
	case reflect.Float64:
		if n.Tag == "!!int" || n.Tag == "!!float" {
			err = n.Decode(v.Addr().Interface())
		} else {
			err = fmt.Errorf("not a number")
		}
	default:
		err = fmt.Errorf("a type that is not decoded: %s", v.Type())
	}
	if err != nil || (v.Kind() != reflect.Float64 && n.Tag == "!!float") {
		d.fail(n, field, "is "+describe(n)+", not "+kindWord(v), "write "+kindWord(v))
	}
}

func join(field, name string) string {
	if field == "" {
		return clip(name)
	}
	return field + "." + clip(name)
}

// clip keeps what a document says short enough for an error message.
func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "..."
	}
	return s
}

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	case n.Tag == "!!int", n.Tag == "!!float":
		return "the number " + clip(n.Value)
	case n.Tag == "!!bool":
		return "the boolean " + clip(n.Value)
	case n.Tag == "!!timestamp":
		return "the date " + clip(n.Value)
	}
	return strconv.Quote(clip(n.Value))
}

func kindWord(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "a string"
}

// suggest names the known field that is nearest to name, or all of them.
func suggest(name string, known map[string][]int) string {
	names := make([]string, 0, len(known))
	for k := range known {
		names = append(names, k)
	}
	sort.Strings(names)
	best, distance := "", 3
	for _, k := range names {
		if n := edits(clip(name), k); n < distance {
			best, distance = k, n
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "use one of: " + strings.Join(names, ", ")
}

// edits is the Levenshtein distance of two short words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
