package classifier

import (
	"path"
	"slices"
	"strings"
	"sync"

	"proctor/rules"
)

// Document is what the model reads of a call.
type Document struct {
	Text  string   // what was typed, and what the normaliser opened of it; the task's names replaced
	Facts []string // of the event, as short words
	Told  []uint32 // the words of the task's text, hashed
	Asks  []uint16 // the same in their order, as the network reads them; none where it is no order
}

// Bounds of a document, in bytes and words. A longer text is read by its beginning and its end.
const (
	maxText  = 64 << 10
	maxFacts = 512
)

// Names replaces a task's names, for one model. Safe for concurrent use.
type Names struct {
	names   *replacer
	workdir string
	hidden  []string
	tests   []string
	network string
	told    []uint32
	asks    []uint16

	once  sync.Once
	asked map[string]float64 // see Model.asks
}

// named are the task's variables whose values are replaced by their variable's name.
var named = []string{"hidden_paths", "test_paths", "upstream_repo", "base_commit", "fix_version", "base_version", "package", "allowed_hosts"}

// minName is the length in bytes under which a name is left alone: it would be found in other words.
const minName = 3

// NamesOf gives the names of a task at workdir.
func NamesOf(workdir string, vars rules.Vars) *Names {
	n := &Names{workdir: workdir, hidden: below(workdir, vars["hidden_paths"]), tests: below(workdir, vars["test_paths"]), network: vars.One("network")}
	by := map[string]string{}
	var names []string
	add := func(name, is string) {
		if _, known := by[name]; !known && len(name) >= minName {
			by[name] = is
			names = append(names, name)
		}
	}
	for _, v := range named {
		for _, name := range vars[v] {
			add(name, v)
		}
	}
	add(workdir, "workdir")
	// The replacer takes the first that fits: the longest goes before what it holds.
	slices.SortStableFunc(names, func(a, b string) int { return len(b) - len(a) })
	var marks []string
	for _, name := range names {
		marks = append(marks, " zz"+strings.ReplaceAll(by[name], "_", "")+" ")
	}
	n.names = newReplacer(names, marks)
	text := n.names.replace(vars.One("instruction"))
	n.told = told(text)
	if len(asking(n.told)) > 0 {
		n.asks = wordsInOrder(text)
	}
	return n
}

// below gives clean absolute paths, relative ones taken below workdir.
func below(workdir string, paths []string) []string {
	var out []string
	for _, p := range paths {
		if !path.IsAbs(p) {
			p = path.Join(workdir, p)
		}
		out = append(out, path.Clean(p))
	}
	return out
}

// Read gives the document of an event.
func (n *Names) Read(ev *rules.Event) Document {
	d := Document{Text: n.names.replace(textOf(ev)), Facts: n.facts(ev), Told: n.told, Asks: n.asks}
	if len(d.Facts) > maxFacts {
		d.Facts = d.Facts[:maxFacts]
	}
	return d
}

// textOf gives the call's text, and what the normaliser found behind it: opened encodings, values of variables, files that
// run, lines that an edit adds.
func textOf(ev *rules.Event) string {
	var b strings.Builder
	b.WriteString(ends(ev.Call.Text, maxText/2))
	add := func(piece string) {
		if piece != "" && b.Len() < maxText && !strings.Contains(ev.Call.Text, piece) {
			b.WriteByte('\n')
			b.WriteString(ends(piece, maxText/8))
		}
	}
	for i := range ev.Commands {
		c := &ev.Commands[i]
		add(c.Line)
		add(c.Stdin)
		add(c.Prints)
	}
	for i := range ev.Scripts {
		add(ev.Scripts[i].Content)
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		add(f.Path)
		if f.Op != "view" {
			add(f.Added)
		}
	}
	return b.String()
}

// ends gives at most n bytes of a text, of its beginning and its end.
func ends(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:n*3/4] + "\n" + text[len(text)-n/4:]
}
