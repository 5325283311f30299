package rules

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Format gives a pack file in its canonical form: keys in the order of the schema, two spaces of
// indent. Comments, quotes and flow style stay. A file that is not YAML gives a Problem.
func Format(file string, data []byte) ([]byte, []Problem) {
	src := sources{}
	var doc yaml.Node
	if err := unmarshal(data, &doc); err != nil {
		src[file] = strings.Split(string(data), "\n")
		return nil, []Problem{src.problem(syntaxPos(file, err), "yaml-syntax", "%s", strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	if len(doc.Content) == 0 {
		return data, nil
	}
	d := &decoder{file: file, src: src}
	if !d.bounded(doc.Content[0]) {
		return nil, d.probs
	}
	order(doc.Content[0], reflect.TypeFor[Pack]())
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, []Problem{src.problem(Pos{file, 1, 1}, "yaml-syntax", "it cannot be written back: %v", err)}
	}
	if err := enc.Close(); err != nil {
		return nil, []Problem{src.problem(Pos{file, 1, 1}, "yaml-syntax", "it cannot be written back: %v", err)}
	}
	return out.Bytes(), nil
}

// order sorts the keys of a mapping by the fields of t, and what lies below. Unknown keys go last.
func order(n *yaml.Node, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for _, c := range n.Content {
			order(c, t.Elem())
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct && len(structKeys(t)) > 0:
		type pair struct{ key, val *yaml.Node }
		var pairs []pair
		for i := 0; i+1 < len(n.Content); i += 2 {
			pairs = append(pairs, pair{n.Content[i], n.Content[i+1]})
		}
		names := structKeys(t)
		rank := func(p pair) int {
			if i := slices.Index(names, p.key.Value); i >= 0 {
				return i
			}
			return len(names)
		}
		slices.SortStableFunc(pairs, func(a, b pair) int { return rank(a) - rank(b) })
		n.Content = n.Content[:0]
		for _, p := range pairs {
			n.Content = append(n.Content, p.key, p.val)
			if f, ok := fieldByTag(t, p.key.Value); ok {
				order(p.val, f.Type)
			}
		}
	}
}
