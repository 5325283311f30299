package decoy

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"proctor/rules"
	"proctor/sandbox"
)

// Stand-ins: where a command cannot be cut out of a call (the shell traces, a loop, sh -c within
// quotes), the whole call is run with each protected name replaced by one just as long that exists
// nowhere, and the name is put back in what is printed. So every other command keeps its meaning,
// set -x shows what was typed, and absence is worded by the programs themselves.
//
// Guarantee: no protected byte is read. A stand-in is only used while none of the protected paths
// exists in the sandbox, so that even a spelling that was not seen leads to nothing.
//
// When in doubt: a call that defines a function or an alias, assigns the name, or writes below it
// would leave the stand-in behind for a later call to show; it is answered in another way.

// standIn gives the call's text with every protected name replaced, and what puts the names back;
// false where that cannot be proven safe.
func (m *Maker) standIn(ctx context.Context, req Request, targets []target) (string, map[string]string, bool) {
	text := req.Call.Command
	roots := m.deniedRoots(targets)
	writes := slices.ContainsFunc(req.Event.Commands, func(c rules.Command) bool {
		return slices.ContainsFunc(c.Writes, func(w string) bool { return denied(w, m.vars) })
	})
	if len(roots) == 0 || writes || m.run == nil || len(text) > textLimit || nesting(text) > nestLimit || looksBack.MatchString(text) || leavesBehind(text) {
		return "", nil, false
	}
	var back = map[string]string{}
	var gone []string
	for _, root := range roots {
		at := spellings(text, root, dirsOf(&req.Event, targets))
		name := path.Base(root)
		other := m.sameLength(name)
		if len(at) == 0 || strings.Contains(text, other) {
			return "", nil, false
		}
		for _, i := range slices.Backward(at) {
			text = text[:i] + other + text[i+len(name):]
		}
		back[other] = name
		gone = append(gone, root, path.Join(path.Dir(root), other))
	}
	names, ok := held(text, back)
	if !ok || len(names) > 0 && (req.Call.Op == sandbox.OpSpawn || m.watched(text)) || !m.allGone(ctx, gone) {
		return "", nil, false
	}
	return text + letGo(names, back), back, true
}

// deniedRoots gives the protected paths that targets reach for, nil where one of them does anything
// else, or writes there.
func (m *Maker) deniedRoots(targets []target) []string {
	var roots []string
	for i := range targets {
		t := &targets[i]
		if t.cmd == nil || len(t.paths) == 0 || len(t.hosts)+len(t.refs)+len(t.pkgs)+len(t.writes) > 0 {
			return nil
		}
		if t.code != nil && len(t.code.Writes) > 0 {
			return nil
		}
		for _, p := range t.paths {
			if !denied(p, m.vars) {
				return nil
			}
			if r := hiddenRoot(p, m.vars); !slices.Contains(roots, r) {
				roots = append(roots, r)
			}
		}
	}
	return roots
}

// dirsOf gives the folders that relative words may start from.
func dirsOf(ev *rules.Event, targets []target) []string {
	dirs := []string{ev.Call.Cwd}
	for i := range targets {
		if d := dirAt(ev, targets[i].index); !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// spellings gives where root's last name stands in text as part of a path that leads to root.
func spellings(text, root string, dirs []string) []int {
	var at []int
	name := path.Base(root)
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return at
		}
		i += from
		from = i + len(name)
		start := i
		for start > 0 && pathByte(text[start-1]) {
			start--
		}
		if from < len(text) && text[from] != '/' && pathByte(text[from]) || i > start && text[i-1] != '/' {
			continue
		}
		lead := text[start:from]
		if slices.ContainsFunc(dirs, func(d string) bool {
			return path.IsAbs(lead) && path.Clean(lead) == root || !path.IsAbs(lead) && path.Join(d, lead) == root
		}) {
			at = append(at, i)
		}
	}
}

func pathByte(c byte) bool {
	return wordRune(rune(c)) || c == '/' || c == '.' || c == '-' || c == '_' || c == '~'
}

// sameLength gives a name as long as the one given that is like no word: its letters and digits are
// replaced by letters that hardly meet.
func (m *Maker) sameLength(name string) string {
	const rare = "qxzjvk"
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []byte(name)
	for i, c := range out {
		if wordRune(rune(c)) {
			out[i] = rare[m.rand.IntN(len(rare))]
		}
	}
	return string(out)
}

// keeps matches what may hold on to a word for later calls.
var keeps = regexp.MustCompile(`\b(alias|export|declare|typeset|local|readonly|coproc|function|trap|PROMPT_COMMAND)\b|\(\s*\)\s*\{`)

// leavesBehind reports whether a text defines something that later calls could show.
func leavesBehind(text string) bool { return keeps.MatchString(text) }

// held gives the variables that a text leaves holding a stand-in; false where something else is left
// that later calls could show, or where text is not a script.
func held(text string, back map[string]string) ([]string, bool) {
	holds := func(n syntax.Node) bool {
		word := text[n.Pos().Offset():n.End().Offset()]
		for other := range back {
			if strings.Contains(word, other) {
				return true
			}
		}
		return false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, false
	}
	var names []string
	fine := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Value != nil && holds(n.Value) {
				names = append(names, n.Name.Value)
			}
			fine = fine && (n.Array == nil || !holds(n.Array)) && n.Index == nil
		case *syntax.WordIter: // the last word stays in the loop's variable
			if slices.ContainsFunc(n.Items, func(w *syntax.Word) bool { return holds(w) }) {
				names = append(names, n.Name.Value)
			}
		case *syntax.Redirect: // a heredoc, or words sent to a file, could be read later
			fine = fine && (n.Hdoc == nil || !holds(n.Hdoc) || feedsCode(text)) && (n.Op != syntax.WordHdoc || !holds(n.Word))
		}
		return fine
	})
	return names, fine
}

// letGo gives a line, to stand behind a text, that puts the names back in the variables that hold a
// stand-in, and leaves $? as it is.
func letGo(names []string, back map[string]string) string {
	var b strings.Builder
	for _, v := range names {
		for other, name := range back {
			// The status of an assignment is that of the substitution in it, which begins with $? as it was.
			b.WriteString("\n" + v + `=$(exit_=$?; printf %s "${` + v + `//` + other + `/` + name + `}"; exit $exit_)`)
		}
	}
	return b.String()
}

// feedsCode reports whether a text's heredocs go to an interpreter, not to a file.
func feedsCode(text string) bool {
	return !strings.Contains(text, ">") && !strings.Contains(text, "tee")
}

// allGone asks the sandbox whether none of the paths exists; false where it cannot be asked.
func (m *Maker) allGone(ctx context.Context, paths []string) bool {
	if m.run == nil {
		return false
	}
	argv := append([]string{"sh", "-c", `for p; do [ -e "$p" ] || [ -L "$p" ] && exit 1; done; exit 0`, "sh"}, paths...)
	r, err := m.run(ctx, sandbox.Exec{Argv: argv, Dir: "/", Timeout: probeTimeout, Limit: 4096})
	return err == nil && r.Exit != nil && *r.Exit == 0
}

// restoring gives what puts the names back in what the agent is shown.
func restoring(back map[string]string) func(sandbox.Result) sandbox.Result {
	return func(r sandbox.Result) sandbox.Result {
		r.Output = restore(r.Output, back)
		return r
	}
}
