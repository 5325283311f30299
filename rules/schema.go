package rules

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Schema gives the JSON Schema (2020-12) of pack files, generated from the Go types, for editors:
// put `# yaml-language-server: $schema=pack.schema.json` on a pack's first line.
func Schema() ([]byte, error) {
	g := schemaGen{defs: map[string]any{}}
	root := g.of(reflect.TypeFor[Pack]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Proctor rule pack"
	root["$defs"] = g.defs
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

// obj is a JSON object.
type obj = map[string]any

// schemaGen gathers definitions.
type schemaGen struct{ defs map[string]any }

// of gives the schema of a type. Types with a form of their own in YAML are definitions.
func (g *schemaGen) of(t reflect.Type) obj {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[Block]():
		return g.def("block", func() obj { return g.block() })
	case reflect.TypeFor[Exception]():
		return g.def("exception", func() obj { return g.exception() })
	case reflect.TypeFor[Test]():
		return g.def("test", func() obj { return g.test() })
	case reflect.TypeFor[ToolCall]():
		return g.def("call", func() obj { return g.call() })
	}
	switch t.Kind() {
	case reflect.Struct:
		return g.object(t)
	case reflect.Slice:
		return obj{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		return obj{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Int:
		return obj{"type": "integer"}
	case reflect.Bool:
		return obj{"type": "boolean"}
	}
	return text()
}

// text accepts numbers too: versions look like them.
func text() obj { return obj{"type": []string{"string", "number"}} }

// def makes a definition once and refers to it.
func (g *schemaGen) def(name string, build func() obj) obj {
	if _, ok := g.defs[name]; !ok {
		g.defs[name] = obj{} // for those that hold themselves
		g.defs[name] = build()
	}
	return obj{"$ref": "#/$defs/" + name}
}

// object gives the schema of a struct by its tags.
func (g *schemaGen) object(t reflect.Type) obj {
	props, required := obj{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		s := g.of(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			s["type"], s["enum"] = "string", strings.Split(enum, ",")
		}
		for _, bound := range []struct{ tag, key string }{{"min", "minimum"}, {"max", "maximum"}} {
			if n, err := strconv.Atoi(f.Tag.Get(bound.tag)); err == nil {
				s[bound.key] = n
			}
		}
		if f.Tag.Get("required") != "" {
			required = append(required, name)
		}
		props[name] = s
	}
	out := obj{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// entities gives a property for each entity, with a pattern that knows its fields and the modifiers.
func (g *schemaGen) entities() obj {
	props := obj{}
	scalar := obj{"type": []string{"string", "number", "boolean"}}
	mods := `(?:\|(?:` + strings.Join(modifiers, "|") + `))*$`
	for name, fields := range Fields() {
		var alts []string
		for _, f := range fields {
			alt := strings.ReplaceAll(f, ".", `\.`)
			if f == "env" {
				alt += `(?:\.[^|]+)?`
			}
			alts = append(alts, alt)
		}
		props[name] = g.def("conditions_"+name, func() obj {
			return obj{"type": "object", "minProperties": 1, "additionalProperties": false, "patternProperties": obj{
				"^(?:" + strings.Join(alts, "|") + ")" + mods: obj{"oneOf": []any{scalar, obj{"type": "array", "minItems": 1, "items": scalar}}},
			}}
		})
	}
	return props
}

// oneEntity asks for exactly one of the entities.
func oneEntity() []any {
	var out []any
	for _, n := range entityNames {
		out = append(out, obj{"required": []string{n}})
	}
	return out
}

func (g *schemaGen) block() obj {
	return obj{"type": "object", "description": "Conditions that one entity has to meet together.",
		"properties": g.entities(), "additionalProperties": false, "minProperties": 1, "maxProperties": 1}
}

func (g *schemaGen) exception() obj {
	props := g.entities()
	props["name"], props["reason"] = text(), text()
	return obj{"type": "object", "description": "Tested only against the entity that hit.", "properties": props,
		"additionalProperties": false, "required": []string{"name", "reason"}, "oneOf": oneEntity()}
}

// tools gives a property for each tool.
func (g *schemaGen) tools() (props obj, one []any) {
	props = obj{}
	for name, args := range toolArgs {
		long, required := obj{}, []string{}
		for _, a := range args {
			arg, must := strings.CutSuffix(a, "!")
			if must {
				required = append(required, arg)
			}
			switch arg {
			case "view_range":
				long[arg] = obj{"type": "array", "items": obj{"type": "integer"}}
			case "insert_line":
				long[arg] = obj{"type": "integer"}
			default:
				long[arg] = obj{"type": "string"}
			}
		}
		props[name] = obj{"oneOf": []any{obj{"type": "string"},
			obj{"type": "object", "properties": long, "required": required, "additionalProperties": false}}}
	}
	for _, name := range keys(toolArgs) {
		one = append(one, obj{"required": []string{name}})
	}
	return props, one
}

func (g *schemaGen) call() obj {
	props, _ := g.tools()
	return obj{"type": "object", "properties": props, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}
}

func (g *schemaGen) test() obj {
	props, one := g.tools()
	props["name"] = text()
	props["setup"] = obj{"type": "array", "items": g.of(reflect.TypeFor[ToolCall]()), "description": "Calls before it."}
	vars := obj{}
	for name, doc := range taskVars {
		vars[name] = obj{"description": doc, "oneOf": []any{text(), obj{"type": "array", "items": text()}}}
	}
	props["task"] = obj{"type": "object", "properties": vars, "additionalProperties": false, "description": "Task variables in place of those of the test task."}
	props["facts"] = g.object(reflect.TypeFor[TestFacts]())
	props["result"] = g.object(reflect.TypeFor[TestResult]())
	return obj{"type": "object", "description": "One call by tool name.", "properties": props, "additionalProperties": false, "oneOf": one}
}
