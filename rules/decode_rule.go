package rules

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// modifiers are the words after the bars of a key.
var modifiers = []string{"equals", "contains", "startswith", "endswith", "glob", "re", "list", "under", "domain", "cidr", "semver", "exists", "all"}

// decodeNode reads {entity: {field|modifier: values}}.
func (b *Block) decodeNode(d *decoder, n *yaml.Node) {
	b.Pos = d.pos(n)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		d.problem(n, "bad-entity", "a block must be a mapping from one entity to its conditions, not %s", describe(n))
		return
	}
	d.pairs(n, "block", func(key, val *yaml.Node) {
		if _, ok := entityOf(key.Value); !ok {
			d.problem(key, "bad-entity", "there is no entity %q%s", key.Value, suggest(key.Value, entityNames[:]))
			return
		}
		b.take(d, key, val)
	})
}

// take reads the conditions of the block's entity.
func (b *Block) take(d *decoder, key, val *yaml.Node) {
	if b.Entity != "" {
		d.problem(key, "bad-entity", "the block has both %s and %s", b.Entity, key.Value)
		return
	}
	b.Entity = key.Value
	d.pairs(val, key.Value, func(k, v *yaml.Node) {
		c := Cond{Key: k.Value, Pos: d.pos(k)}
		parts := strings.Split(k.Value, "|")
		c.Field, c.Mods = parts[0], parts[1:]
		d.values(v, &c)
		b.Conds = append(b.Conds, c)
	})
	if val.Kind == yaml.MappingNode && len(b.Conds) == 0 {
		d.problem(val, "empty-match", "the block has no condition, so it would hit every %s", key.Value)
	}
}

// values reads one scalar or a list of them.
func (d *decoder) values(n *yaml.Node, c *Cond) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
		if len(items) == 0 {
			d.problem(n, "empty-value", "%s has an empty list", c.Key)
		}
	}
	for _, it := range items {
		it = resolve(it)
		if it.Kind != yaml.ScalarNode || it.Tag == "!!null" {
			d.problem(it, "wrong-type", "a value of %s must be text, a number, true or false, not %s", c.Key, describe(it))
			continue
		}
		v := it.Value
		if it.Tag == "!!bool" {
			v = strings.ToLower(v)
		}
		if it.Style&yaml.DoubleQuotedStyle != 0 && slices.Contains(c.Mods, "re") && strings.ContainsFunc(v, control) {
			d.problem(it, "control-character", "the expression of %s holds a control character", c.Key)
		}
		c.Values = append(c.Values, v)
		c.valPos = append(c.valPos, d.pos(it))
	}
}

// control says whether a double-quoted escape has made r; a line break or tab may be meant.
func control(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r == 0x7f }

// decodeNode reads {name, reason, entity: {...}}.
func (x *Exception) decodeNode(d *decoder, n *yaml.Node) {
	x.Pos = d.pos(n)
	d.pairs(n, "exception", func(key, val *yaml.Node) {
		switch key.Value {
		case "name":
			x.Name, _ = d.text(val, "exception name")
		case "reason":
			x.Reason, _ = d.text(val, "exception reason")
		default:
			if _, ok := entityOf(key.Value); !ok {
				d.problem(key, "unknown-key", "an exception has no key %q%s", key.Value,
					suggest(key.Value, append([]string{"name", "reason"}, entityNames[:]...)))
				return
			}
			x.Block.Pos = d.pos(n)
			x.Block.take(d, key, val)
		}
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	if strings.TrimSpace(x.Name) == "" || strings.TrimSpace(x.Reason) == "" {
		d.problem(n, "no-reason", "the exception needs a name and a reason")
	}
	if x.Block.Entity == "" {
		d.problem(n, "bad-entity", "the exception has no block: it needs one of %s", strings.Join(entityNames[:], ", "))
	}
}

// toolArgs are the arguments of each tool: the first is the one that the short form gives; those
// marked ! are required.
var toolArgs = map[string][]string{
	"bash":        {"command!"},
	"bash_input":  {"text!", "handle"},
	"view":        {"path!", "view_range"},
	"create":      {"path!", "file_text!"},
	"str_replace": {"path!", "old_str!", "new_str"},
	"insert":      {"path!", "insert_line!", "new_str!"},
}

// decodeNode reads {tool: arguments, setup, task, facts, result, name}.
func (t *Test) decodeNode(d *decoder, n *yaml.Node) {
	t.Pos = d.pos(n)
	d.pairs(n, "test", func(key, val *yaml.Node) {
		switch key.Value {
		case "name":
			t.Name, _ = d.text(val, "test name")
		case "setup":
			d.decode(val, reflect.ValueOf(&t.Setup).Elem(), "setup")
		case "task":
			t.Task = d.vars(val)
		case "facts":
			d.decode(val, reflect.ValueOf(&t.Facts).Elem(), "facts")
		case "result":
			d.decode(val, reflect.ValueOf(&t.Result).Elem(), "result")
		default:
			if t.Call.Tool != "" {
				d.problem(key, "bad-test", "the test has both %s and %s", t.Call.Tool, key.Value)
				return
			}
			t.Call.take(d, key, val)
		}
	})
	if n.Kind == yaml.MappingNode && t.Call.Tool == "" {
		d.problem(n, "bad-test", "the test has no call")
	}
}

// decodeNode reads {tool: arguments}.
func (c *ToolCall) decodeNode(d *decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		d.problem(n, "bad-test", "a call must be one tool with its arguments, not %s", describe(n))
		return
	}
	c.take(d, resolve(n.Content[0]), resolve(n.Content[1]))
}

// take reads a tool's arguments in the short or the long form.
func (c *ToolCall) take(d *decoder, key, val *yaml.Node) {
	c.Tool = key.Value
	args, ok := toolArgs[key.Value]
	if !ok {
		d.problem(key, "bad-test", "there is no tool %q: use bash, bash_input, view, create, str_replace or insert", key.Value)
		return
	}
	c.Arguments = map[string]any{}
	if val.Kind == yaml.ScalarNode {
		if s, ok := d.text(val, key.Value); ok {
			c.Arguments[strings.TrimSuffix(args[0], "!")] = s
		}
	} else {
		d.pairs(val, key.Value, func(k, v *yaml.Node) {
			if !slices.Contains(args, k.Value) && !slices.Contains(args, k.Value+"!") {
				d.problem(k, "unknown-key", "%s has no argument %q", key.Value, k.Value)
				return
			}
			var a any
			if err := v.Decode(&a); err != nil {
				d.problem(v, "wrong-type", "argument %s: %v", k.Value, err)
			}
			c.Arguments[k.Value] = a
		})
	}
	for _, a := range args {
		if name, required := strings.CutSuffix(a, "!"); required && c.Arguments[name] == nil {
			d.problem(key, "bad-test", "%s needs the argument %s", key.Value, name)
		}
	}
}

// vars reads task variables: text or a list of texts.
func (d *decoder) vars(n *yaml.Node) Vars {
	out := Vars{}
	d.pairs(n, "task", func(key, val *yaml.Node) {
		if !knownVar(key.Value) {
			d.problem(key, "undefined-variable", "there is no task variable %q%s", key.Value, suggest(key.Value, varNames()))
		}
		if val.Kind == yaml.ScalarNode && val.Tag != "!!null" {
			out[key.Value] = []string{val.Value}
			return
		}
		var list []string
		d.decode(val, reflect.ValueOf(&list).Elem(), "task."+key.Value)
		out[key.Value] = list
	})
	return out
}
