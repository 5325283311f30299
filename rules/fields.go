package rules

import (
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// An entity is a kind of thing that a block binds to.
type entity int

const (
	entCommand entity = iota
	entFile
	entScript
	entPackage
	entCall
	entResult
	numEntities
)

// entityNames are the keys of blocks, in the order of the constants.
var entityNames = [numEntities]string{"command", "file", "script", "package", "call", "result"}

// entityTypes are where the fields of each entity are discovered.
var entityTypes = [numEntities]reflect.Type{
	reflect.TypeFor[Command](), reflect.TypeFor[File](), reflect.TypeFor[Script](),
	reflect.TypeFor[Package](), reflect.TypeFor[CallFacts](), reflect.TypeFor[ResultFacts](),
}

// spanType is no field to match on: where a command stands says nothing about it.
var spanType = reflect.TypeFor[Span]()

// entityOf gives the entity of a block's key.
func entityOf(name string) (entity, bool) {
	for i, n := range entityNames {
		if n == name {
			return entity(i), true
		}
	}
	return 0, false
}

// extract gives the texts of a field of the i-th entity of ev.
type extract func(ev *Event, i int) []string

// derived are the fields that no JSON name gives. They win over reflection.
var derived = map[string]extract{
	"command.git.refs":     func(ev *Event, i int) []string { return refTexts(ev.Commands[i].Git.Refs, "") },
	"command.git.foreign":  func(ev *Event, i int) []string { return refTexts(ev.Commands[i].Git.Refs, Foreign) },
	"command.git.unknown":  func(ev *Event, i int) []string { return refTexts(ev.Commands[i].Git.Refs, Unknown) },
	"command.git.own":      func(ev *Event, i int) []string { return refTexts(ev.Commands[i].Git.Refs, Own) },
	"command.git.ancestor": func(ev *Event, i int) []string { return refTexts(ev.Commands[i].Git.Refs, Ancestor) },
	"package.program": func(ev *Event, i int) []string {
		return ofCommand(ev, i, func(c *Command) string { return c.Program })
	},
	"package.line": func(ev *Event, i int) []string {
		return ofCommand(ev, i, func(c *Command) string { return c.Line })
	},
	"call.opaque": func(ev *Event, _ int) []string { return []string{strconv.FormatBool(ev.Opaque)} },
	"call.notes":  func(ev *Event, _ int) []string { return ev.Notes },
}

// refTexts gives the texts of the refs of one standing, or of all where it is "".
func refTexts(refs []Ref, standing Standing) []string {
	var out []string
	for _, r := range refs {
		if standing == "" || r.Standing == standing {
			out = append(out, r.Text)
		}
	}
	return out
}

// ofCommand gives a text of the command that package i belongs to.
func ofCommand(ev *Event, i int, get func(*Command) string) []string {
	n := ev.Packages[i].Command
	if n < 0 || n >= len(ev.Commands) {
		return nil
	}
	return []string{get(&ev.Commands[n])}
}

// count says how many entities of a kind an event has.
func (ev *Event) count(e entity) int {
	switch e {
	case entCommand:
		return len(ev.Commands)
	case entFile:
		return len(ev.Files)
	case entScript:
		return len(ev.Scripts)
	case entPackage:
		return len(ev.Packages)
	case entCall:
		return 1
	}
	if ev.Result == nil {
		return 0
	}
	return 1
}

// value gives the i-th entity for reflection.
func (ev *Event) value(e entity, i int) reflect.Value {
	switch e {
	case entCommand:
		return reflect.ValueOf(&ev.Commands[i]).Elem()
	case entFile:
		return reflect.ValueOf(&ev.Files[i]).Elem()
	case entScript:
		return reflect.ValueOf(&ev.Scripts[i]).Elem()
	case entPackage:
		return reflect.ValueOf(&ev.Packages[i]).Elem()
	case entCall:
		return reflect.ValueOf(&ev.Call).Elem()
	}
	return reflect.ValueOf(ev.Result).Elem()
}

// lookupField finds how to extract a field of an entity. Derived fields come first, then the JSON
// names of the entity's Go type, dotted where they nest; a field added to Event works at once.
func lookupField(e entity, name string) (extract, bool) {
	if f, ok := derived[entityNames[e]+"."+name]; ok {
		return f, true
	}
	path, ok := fieldPath(entityTypes[e], strings.Split(name, "."))
	if !ok {
		return nil, false
	}
	return func(ev *Event, i int) []string { return texts(ev.value(e, i), path) }, true
}

// step is one step from a value to a field: a struct field by index, or a map entry by name.
type step struct {
	field int
	key   string
}

// fieldPath resolves dotted JSON names to steps.
func fieldPath(t reflect.Type, names []string) ([]step, bool) {
	if len(names) == 0 {
		return nil, leaf(t)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return fieldPath(t.Elem(), names)
	case reflect.Map:
		return []step{{key: strings.Join(names, ".")}}, true
	case reflect.Struct:
		for i := range t.NumField() {
			if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == names[0] && t.Field(i).Type != spanType {
				rest, ok := fieldPath(t.Field(i).Type, names[1:])
				return append([]step{{field: i}}, rest...), ok
			}
		}
	}
	return nil, false
}

// leaf says whether values of t have texts.
func leaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int:
		return true
	case reflect.Slice, reflect.Pointer:
		return leaf(t.Elem())
	case reflect.Map:
		return leaf(t.Elem()) && t.Key().Kind() == reflect.String
	}
	return false
}

// What texts gives of truths, which every entity has many of. Nobody writes to what a field gives.
var (
	yes       = []string{"true"}
	no        = []string{"false"}
	textsType = reflect.TypeFor[[]string]()
)

// texts walks steps from v and gives the texts there; a list gives each of its members.
func texts(v reflect.Value, path []step) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return texts(v.Elem(), path)
	case reflect.Slice:
		if v.Type() == textsType {
			if v.CanAddr() { // an interface that holds a slice is a copy of its header
				return *v.Addr().Interface().(*[]string)
			}
			return v.Interface().([]string)
		}
		var out []string
		for i := range v.Len() {
			out = append(out, texts(v.Index(i), path)...)
		}
		return out
	case reflect.Struct:
		return texts(v.Field(path[0].field), path[1:])
	case reflect.Map:
		return mapTexts(v, path)
	case reflect.Bool:
		if v.Bool() {
			return yes
		}
		return no
	case reflect.Int:
		return []string{strconv.FormatInt(v.Int(), 10)}
	case reflect.String:
		return []string{v.String()}
	}
	return nil
}

// mapTexts gives NAME=VALUE of every entry, or the value of the entry that path names.
func mapTexts(v reflect.Value, path []step) []string {
	if len(path) > 0 {
		m := v.MapIndex(reflect.ValueOf(path[0].key))
		if !m.IsValid() {
			return nil
		}
		return []string{m.String()}
	}
	if v.Len() == 0 {
		return nil
	}
	out := make([]string, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		out = append(out, it.Key().String()+"="+it.Value().String())
	}
	sort.Strings(out)
	return out
}

// Fields lists the fields of every entity by name, for documentation, schema and completion.
func Fields() map[string][]string {
	out := map[string][]string{}
	for e := range numEntities {
		seen := map[string]bool{}
		collect(entityTypes[e], "", seen)
		for k := range derived {
			if name, ok := strings.CutPrefix(k, entityNames[e]+"."); ok {
				seen[name] = true
			}
		}
		names := make([]string, 0, len(seen))
		for n := range seen {
			names = append(names, n)
		}
		sort.Strings(names)
		out[entityNames[e]] = names
	}
	return out
}

// collect adds the dotted names of the fields of t that have texts.
func collect(t reflect.Type, prefix string, into map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if tag == "" || tag == "-" || t.Field(i).Type == spanType {
			continue
		}
		if leaf(t.Field(i).Type) {
			into[prefix+tag] = true
			continue
		}
		collect(t.Field(i).Type, prefix+tag+".", into)
	}
}
