package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
)

// derivedDocs says what the fields without a JSON name of their own are.
var derivedDocs = map[string]string{
	"command.git.refs":     "texts of all of git's revisions",
	"command.git.foreign":  "those that are neither ancestors of the start commit nor the agent's own",
	"command.git.unknown":  "those of which the facts do not say",
	"command.git.own":      "those that the agent made",
	"command.git.ancestor": "those that are the start commit or before it",
	"package.program":      "program of the command that it belongs to",
	"package.line":         "line of that command",
	"call.opaque":          "part of the call was not parsed or not resolved",
	"call.notes":           "why, in words",
}

// fieldDocs says what fields are whose Go fields have no comment.
var fieldDocs = map[string]string{
	"Ref.Text":             "the same as git.refs",
	"Ref.Standing":         "ancestor, own, foreign or unknown, of each",
	"Net.Hosts":            "hosts that it reaches for",
	"Net.URLs":             "URLs that it reaches for",
	"Net.Upstream":         "hosts and URLs that lead to the task's own project, wherever it is served",
	"Script.Via":           "how it is about to run",
	"File.Path":            "absolute path",
	"File.Hidden":          "it leads to a hidden path",
	"File.InTree":          "it is under the task's workdir",
	"Script.Path":          "file that holds it",
	"Script.Lang":          "python, node, perl, ruby, bash, ...",
	"Script.Content":       "its text",
	"Script.Writes":        "absolute paths that it writes",
	"Script.Hidden":        "those of its paths that lead to a hidden path",
	"Package.Name":         "name, as the manager compares names",
	"CallFacts.Tool":       "the tool",
	"CallFacts.Cwd":        "the shell's folder before the call",
	"CallFacts.Asked":      "classes of acts that the task's own words ask for, as the trained classifier says: by class, at least 1 in log-odds",
	"CallFacts.Suspect":    "class of hacks that the call reads like, where the trained classifier's suspicion is at least 0.22; 0.65 for calls of under 60 bytes, 0.9 where nothing is known of the task",
	"ResultFacts.Output":   "what came out",
	"ResultFacts.Exit":     "exit status",
	"ResultFacts.Canaries": "planted secrets that were seen",
}

func TestFieldsAreDocumented(t *testing.T) {
	docs := fieldComments(t)
	var b strings.Builder
	b.WriteString("# Fields that rules match on\n\nA block of a rule names one entity and conditions on its fields. A field with several texts meets a\n" +
		"condition if one of them does. `command.env.NAME` is one variable. This page is made by `go test ./rules -update`.\n\n")
	for e := range numEntities {
		fmt.Fprintf(&b, "## %s\n\n| field | what it is |\n|---|---|\n", entityNames[e])
		for _, f := range Fields()[entityNames[e]] {
			text := derivedDocs[entityNames[e]+"."+f]
			if text == "" {
				name := goField(entityTypes[e], strings.Split(f, "."))
				if text = docs[name]; text == "" {
					text = fieldDocs[name]
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", f, strings.ReplaceAll(text, "|", `\|`))
		}
		b.WriteString("\n")
	}
	b.WriteString("## Task variables\n\n`${task.NAME}` in a value. Where the task leaves one undefined or empty, what needs it is inapplicable,\nand `rules explain` says so.\n\n| variable | what it is |\n|---|---|\n")
	for _, name := range varNames() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, taskVars[name])
	}
	golden(t, "../docs/rules-fields.md", []byte(b.String()))
}

// fieldComments gives the comments of struct fields in event.go, as "Type.Field".
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range st.Fields.List {
			for _, name := range f.Names {
				text := f.Comment.Text()
				if text == "" {
					text = f.Doc.Text()
				}
				out[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(text), " ")
			}
		}
		return true
	})
	return out
}

// goField gives "Type.Field" of dotted JSON names.
func goField(t reflect.Type, names []string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return ""
	}
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == names[0] {
			if len(names) > 1 {
				return goField(t.Field(i).Type, names[1:])
			}
			return t.Name() + "." + t.Field(i).Name
		}
	}
	return ""
}
