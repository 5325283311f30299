package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder turns YAML nodes into pack values, strictly: every unknown key, wrong type and missing
// key is a Problem with its place. It goes on after a problem, so that one run shows them all.
type decoder struct {
	file  string
	src   sources
	probs []Problem
}

// nodeDecoder is a type with a form of its own in YAML.
type nodeDecoder interface {
	decodeNode(d *decoder, n *yaml.Node)
}

func (d *decoder) pos(n *yaml.Node) Pos { return Pos{d.file, n.Line, n.Column} }

func (d *decoder) problem(n *yaml.Node, code, format string, args ...any) {
	d.probs = append(d.probs, d.src.problem(d.pos(n), code, format, args...))
}

// resolve follows an alias. The budget check has excluded cycles.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// decode fills v from n; path names the value in messages.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	n = resolve(n)
	if nd, ok := v.Addr().Interface().(nodeDecoder); ok {
		nd.decodeNode(d, n)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path)
	case reflect.Struct:
		d.decodeStruct(n, v, path)
	case reflect.Slice:
		d.decodeSlice(n, v, path)
	case reflect.Map:
		d.decodeMap(n, v, path)
	case reflect.String:
		if s, ok := d.text(n, path); ok {
			v.SetString(s)
		}
	case reflect.Int:
		i, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
			d.problem(n, "wrong-type", "%s must be a whole number, not %s", path, describe(n))
			return
		}
		v.SetInt(int64(i))
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			d.problem(n, "wrong-type", "%s must be true or false, not %s", path, describe(n))
			return
		}
		v.SetBool(n.Value == "true" || n.Value == "True" || n.Value == "TRUE")
	}
}

// text gives a scalar's text. A number counts as text as it is written: versions look like numbers.
func (d *decoder) text(n *yaml.Node, path string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Tag == "!!bool" || n.Tag == "!!binary" {
		d.problem(n, "wrong-type", "%s must be text, not %s", path, describe(n))
		return "", false
	}
	return n.Value, true
}

func (d *decoder) decodeSlice(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.problem(n, "wrong-type", "%s must be a list, not %s", path, describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		d.decode(c, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

func (d *decoder) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	out := reflect.MakeMap(v.Type())
	d.pairs(n, path, func(key, val *yaml.Node) {
		e := reflect.New(v.Type().Elem()).Elem()
		d.decode(val, e, path+"."+key.Value)
		out.SetMapIndex(reflect.ValueOf(key.Value), e)
	})
	v.Set(out)
}

// pairs walks a mapping in order, and reports what is not a mapping and keys that repeat.
func (d *decoder) pairs(n *yaml.Node, path string, f func(key, val *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, "wrong-type", "%s must be a mapping, not %s", path, describe(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode:
			d.problem(key, "wrong-type", "a key of %s must be text, not %s", path, describe(key))
		case seen[key.Value]:
			d.problem(key, "duplicate-key", "%s has the key %q twice", path, key.Value)
		default:
			seen[key.Value] = true
			f(key, resolve(n.Content[i+1]))
		}
	}
}

// decodeStruct fills the fields of v by their yaml tags, and holds the values against the required,
// enum, min and max tags.
func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	t := v.Type()
	if p := v.FieldByName("Pos"); p.IsValid() {
		p.Set(reflect.ValueOf(d.pos(n)))
	}
	got := map[string]bool{}
	ok := n.Kind == yaml.MappingNode
	d.pairs(n, path, func(key, val *yaml.Node) {
		f, known := fieldByTag(t, key.Value)
		if !known {
			d.problem(key, "unknown-key", "%s has no key %q%s", path, key.Value, suggest(key.Value, structKeys(t)))
			return
		}
		got[key.Value] = true
		d.decode(val, v.FieldByIndex(f.Index), join(path, key.Value))
		d.limits(val, v.FieldByIndex(f.Index), f, join(path, key.Value))
	})
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("yaml")
		if ok && t.Field(i).Tag.Get("required") != "" && !got[tag] {
			d.problem(n, "missing-key", "%s needs the key %q", path, tag)
		}
	}
}

// limits holds a decoded value against the enum, min and max tags of its field.
func (d *decoder) limits(n *yaml.Node, v reflect.Value, f reflect.StructField, path string) {
	if enum := f.Tag.Get("enum"); enum != "" && v.Kind() == reflect.String && v.String() != "" {
		if all := strings.Split(enum, ","); !slices.Contains(all, v.String()) {
			d.problem(n, "bad-value", "%s is %q; it must be one of %s", path, v.String(), strings.Join(all, ", "))
		}
	}
	if lo := f.Tag.Get("min"); lo != "" && v.Kind() == reflect.Int && n.Tag == "!!int" {
		a, _ := strconv.ParseInt(lo, 10, 64)
		b, _ := strconv.ParseInt(f.Tag.Get("max"), 10, 64)
		if v.Int() < a || v.Int() > b {
			d.problem(n, "bad-value", "%s is %d; it must be %d to %d", path, v.Int(), a, b)
		}
	}
}

// fieldByTag finds a struct field by its yaml name.
func fieldByTag(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag == name && tag != "" && tag != "-" {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

// structKeys lists the yaml names of a struct.
func structKeys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" && tag != "-" {
			out = append(out, tag)
		}
	}
	return out
}

// describe says what a node is, for messages.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "nothing"
		}
		return fmt.Sprintf("%s %q", strings.TrimPrefix(n.Tag, "!!"), clip(n.Value, 40))
	}
	return "a document"
}

// join makes a dotted path.
func join(path, key string) string {
	if path == "" || path == "pack" {
		return key
	}
	return path + "." + key
}
