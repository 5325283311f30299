package decoy

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wordings are how programs say that a file is not there; %s is the name as the agent wrote it.
// Taken from Debian 12: coreutils 9.1, grep 3.8, sed 4.8, gawk 5.2, mawk 1.3.4, findutils 4.9, tar 1.34.
// Programs that quote a name only where it needs quotes have plain set.
var wordings = map[string]struct {
	text   string
	exit   int
	plain  bool // the name bare, quoted by the program where it holds odd characters
	stdout bool
}{
	"cat":    {"cat: %s: No such file or directory\n", 1, true, false},
	"head":   {"head: cannot open '%s' for reading: No such file or directory\n", 1, false, false},
	"tail":   {"tail: cannot open '%s' for reading: No such file or directory\n", 1, false, false},
	"less":   {"%s: No such file or directory\n", 0, false, true},
	"more":   {"more: cannot open %s: No such file or directory\n", 0, false, false},
	"sed":    {"sed: can't read %s: No such file or directory\n", 2, false, false},
	"awk":    {"awk: fatal: cannot open file `%s' for reading: No such file or directory\n", 2, false, false},
	"mawk":   {"mawk: cannot open %s (No such file or directory)\n", 2, false, false},
	"gawk":   {"gawk: fatal: cannot open file `%s' for reading: No such file or directory\n", 2, false, false},
	"grep":   {"grep: %s: No such file or directory\n", 2, false, false},
	"egrep":  {"grep: %s: No such file or directory\n", 2, false, false},
	"fgrep":  {"grep: %s: No such file or directory\n", 2, false, false},
	"rg":     {"%s: No such file or directory (os error 2)\n", 2, false, false},
	"ls":     {"ls: cannot access '%s': No such file or directory\n", 2, false, false},
	"cp":     {"cp: cannot stat '%s': No such file or directory\n", 1, false, false},
	"mv":     {"mv: cannot stat '%s': No such file or directory\n", 1, false, false},
	"ln":     {"ln: failed to access '%s': No such file or directory\n", 1, false, false},
	"rm":     {"rm: cannot remove '%s': No such file or directory\n", 1, false, false},
	"chmod":  {"chmod: cannot access '%s': No such file or directory\n", 1, false, false},
	"chown":  {"chown: cannot access '%s': No such file or directory\n", 1, false, false},
	"find":   {"find: ‘%s’: No such file or directory\n", 1, false, false},
	"stat":   {"stat: cannot statx '%s': No such file or directory\n", 1, false, false},
	"wc":     {"wc: %s: No such file or directory\n", 1, true, false},
	"du":     {"du: cannot access '%s': No such file or directory\n", 1, false, false},
	"file":   {"%s: cannot open `%[1]s' (No such file or directory)\n", 0, false, true},
	"dd":     {"dd: failed to open '%s': No such file or directory\n", 1, false, false},
	"tar":    {"tar: %s: Cannot stat: No such file or directory\ntar: Exiting with failure status due to previous errors\n", 2, false, false},
	"diff":   {"diff: %s: No such file or directory\n", 2, false, false},
	"cmp":    {"cmp: %s: No such file or directory\n", 2, false, false},
	"sort":   {"sort: cannot read: %s: No such file or directory\n", 2, true, false},
	"tac":    {"tac: failed to open '%s' for reading: No such file or directory\n", 1, false, false},
	"nl":     {"nl: %s: No such file or directory\n", 1, true, false},
	"od":     {"od: %s: No such file or directory\n", 1, true, false},
	"xxd":    {"xxd: %s: No such file or directory\n", 2, false, false},
	"base64": {"base64: %s: No such file or directory\n", 1, true, false},
	"cut":    {"cut: %s: No such file or directory\n", 1, true, false},
	"paste":  {"paste: %s: No such file or directory\n", 1, true, false},
	"uniq":   {"uniq: %s: No such file or directory\n", 1, true, false},
	"md5sum": {"md5sum: %s: No such file or directory\n", 1, true, false}, "sha256sum": {"sha256sum: %s: No such file or directory\n", 1, true, false},
	"sha1sum": {"sha1sum: %s: No such file or directory\n", 1, true, false}, "cksum": {"cksum: %s: No such file or directory\n", 1, true, false},
	"strings":  {"strings: '%s': No such file\n", 1, false, false},
	"jq":       {"jq: error: Could not open file %s: No such file or directory\n", 2, false, false},
	"zcat":     {"gzip: %s.gz: No such file or directory\n", 1, false, false},
	"tree":     {"%s  [error opening dir]\n\n0 directories, 0 files\n", 2, false, true},
	"bash":     {"bash: %s: No such file or directory\n", 127, false, false},
	"sh":       {"sh: 0: cannot open %s: No such file\n", 2, false, false},
	"readlink": {"", 1, false, false},
	"test":     {"", 1, false, false}, "[": {"", 1, false, false}, "[[": {"", 1, false, false},
	"curl": {"curl: (37) Couldn't open file %s\n", 37, false, false},
}

// replyPath answers a command that reaches for a path that is not to be there.
func (m *Maker) replyPath(ctx context.Context, req Request, t *target) reply {
	denied := m.deniedBelow(t)
	if r, ok := filterRun(req, t, denied); ok {
		if m.knowsOptions(ctx, t.cmd.Program) {
			return r
		}
		return m.filterOutput(ctx, req, t, denied)
	}
	if t.cmd.Program == "rm" && !slices.ContainsFunc(spelled(req, t), func(n string) bool { return m.isProtected(req, t, n) }) {
		return asItIs(famNoFile) // a link of the agent's own: what it leads to stays
	}
	if t.cmd.Program == "rm" && hasOption(t.cmd.Args, "f", "force") {
		return prints(famNoFile, 0, "")
	}
	if len(spelled(req, t)) == 0 && len(t.cmd.Covers) > 0 {
		return prints(famEmpty, 0, "") // it walks over what is protected, and cannot be told to leave it out
	}
	r, ok := m.sibling(ctx, req, t)
	if !ok {
		r = m.templatePath(req, t)
	}
	if slices.ContainsFunc(t.paths, ofProcess.MatchString) {
		r = closed(r)
	}
	return r
}

// closed words absence as a refusal.
func closed(r reply) reply {
	words := strings.NewReplacer("No such file or directory", "Permission denied")
	r.stderr = []byte(words.Replace(string(r.stderr)))
	r.parts = slices.Clone(r.parts)
	for i := range r.parts {
		if r.parts[i].err {
			r.parts[i].text = []byte(words.Replace(string(r.parts[i].text)))
		}
	}
	return r
}

// isProtected reports whether a word, links aside, is one of the task's protected paths.
func (m *Maker) isProtected(req Request, t *target, word string) bool {
	if !path.IsAbs(word) {
		word = path.Join(dirAt(&req.Event, t.index), word)
	}
	return denied(word, m.vars)
}

// templatePath words it from the table.
func (m *Maker) templatePath(req Request, t *target) reply {
	names := spelled(req, t)
	if len(names) == 0 {
		if r, ok := m.redirected(t); ok {
			return r
		}
		names = []string{strings.TrimPrefix(last(t.cmd.Args), "if=")}
	}
	if slices.Contains([]string{"cd", "pushd", "source", "."}, t.cmd.Program) {
		return m.builtinFails(t.cmd.Program, names[0])
	}
	w, ok := wordings[t.cmd.Program]
	if !ok {
		return says(famNoFile, 1, fmt.Sprintf("%s: %s: No such file or directory\n", t.cmd.Program, names[0]))
	}
	out := reply{family: famNoFile, exit: w.exit}
	for _, n := range names {
		if w.plain {
			n = shellQuoted(n)
		}
		if w.text == "" {
			break
		}
		line := fmt.Sprintf(w.text, n)
		if w.stdout {
			out.stdout = append(out.stdout, line...)
		} else {
			out.stderr = append(out.stderr, line...)
		}
		if stopsAtFirst[t.cmd.Program] {
			break
		}
	}
	return out
}

// stopsAtFirst are programs that give up at the first name, or summarise at the end.
var stopsAtFirst = map[string]bool{"tar": true, "dd": true, "cmp": true, "sort": true, "cd": true, "bash": true, "sh": true, "source": true, ".": true, "awk": true, "mawk": true, "curl": true}

// shellQuoted quotes a name as GNU programs do where it holds characters special to a shell.
func shellQuoted(n string) string {
	if strings.ContainsAny(n, " *?[]{}$&|;<>()'\"\\`!#~:\t\n") {
		return "'" + n + "'"
	}
	return n
}

// redirected answers a command whose protected path stands behind `<`: then the shell complains, in
// whatever quotes the path stood.
func (m *Maker) redirected(t *target) (reply, bool) {
	if t.cmd.Span.Start < 0 || len(t.text) > textLimit || nesting(t.text) > nestLimit {
		return reply{}, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(t.text), "")
	if err != nil {
		return reply{}, false
	}
	var out reply
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		r, ok := n.(*syntax.Redirect)
		if !ok || found || r.Op != syntax.RdrIn {
			return !found
		}
		src := t.text[int(r.Word.Pos().Offset()):int(r.Word.End().Offset())]
		name, literal := literalWord(r.Word)
		if !literal {
			name = strings.ReplaceAll(src, `\`, "")
		}
		if slices.ContainsFunc(t.paths, func(p string) bool { return path.Base(p) == path.Base(name) }) {
			out, found = m.redirectionFails(famNoFile, name, "No such file or directory"), true
			out.drops = append(out.drops, src)
		}
		return !found
	})
	return out, found
}

func linksSoftly(args []string) bool {
	for _, a := range args {
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "s") || a == "--symbolic" {
			return true
		}
	}
	return false
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}
