package normalize

import (
	"regexp"
	"strings"

	"proctor/rules"
)

// gitFacts resolves a git command: where it works, its verb after aliases, and whose the revisions
// are that it names.
func (r *run) gitFacts(i int, args []arg, f frame, in val) {
	cmd := &r.ev.Commands[i]
	switch cmd.Program {
	case "git":
	case "hub", "gh":
		return
	default:
		if v, ok := strings.CutPrefix(cmd.Program, "git-"); ok && v != "" {
			args = append([]arg{{s: "git"}, {s: v}}, args[1:]...)
			break
		}
		return
	}
	g := gitCall{dir: r.st.cwd, config: map[string]string{}}
	g.environment(r, cmd.Env)
	rest := g.global(r, args[1:])
	if len(rest) == 0 {
		return
	}
	if r.gitAlias(g, rest, args, f, in, cmd) {
		return
	}
	cmd = &r.ev.Commands[i]
	cmd.Git.Verb = rest[0].s
	cmd.Git.Refs = r.gitRefs(g, rest)
	if t := r.n.task.workdir; t != "/" && !rules.Below(g.dir, t) { // a repository of its own
		r.addPath(cmd, arg{s: g.dir})
	}
	r.gitNet(cmd, g, rest)
	r.gitState(g, rest)
	r.gitBrought(cmd, rest)
	r.gitHooks(g, f)
	r.gitRun(rest, f)
}

type gitCall struct {
	dir    string
	config map[string]string
}

// environment takes GIT_DIR and the alias settings that the environment can carry.
func (g *gitCall) environment(r *run, env map[string]string) {
	get := func(name string) string {
		if v, ok := env[name]; ok {
			return v
		}
		if v, ok := r.st.vars.get(name); ok && v.known && v.exported {
			return v.value
		}
		return ""
	}
	if d := get("GIT_DIR"); d != "" {
		g.dir = r.abs(d)
	}
	for i := range 4 {
		n := string(rune('0' + i))
		if k := get("GIT_CONFIG_KEY_" + n); k != "" {
			g.config[k] = get("GIT_CONFIG_VALUE_" + n)
		}
	}
}

// global takes git's own options and gives the words from the verb on.
func (g *gitCall) global(r *run, args []arg) []arg {
	for len(args) > 0 {
		s := args[0].s
		next := ""
		if len(args) > 1 {
			next = args[1].s
		}
		switch {
		case s == "-C":
			g.dir = absFrom(g.dir, next)
			args = args[1:]
		case s == "-c" || s == "--config-env":
			if k, v, ok := strings.Cut(next, "="); ok {
				g.config[k] = v
			}
			args = args[1:]
		case s == "--git-dir":
			g.dir = absFrom(g.dir, next)
			args = args[1:]
		case strings.HasPrefix(s, "--git-dir="):
			g.dir = absFrom(g.dir, s[len("--git-dir="):])
		case s == "--work-tree" || s == "--namespace" || s == "--exec-path":
			args = args[1:]
		case !strings.HasPrefix(s, "-"):
			return args
		}
		if len(args) == 0 {
			return nil
		}
		args = args[1:]
	}
	return nil
}

// gitAlias expands an alias of the command line, the environment or an earlier git config.
func (r *run) gitAlias(g gitCall, rest, args []arg, f frame, in val, cmd *rules.Command) bool {
	if f.depthOf("git alias") > 2 {
		return false
	}
	text, ok := g.config["alias."+rest[0].s]
	if !ok {
		text, ok = r.st.gitAlias.get(rest[0].s)
	}
	if !ok || text == "" {
		return false
	}
	tail := ""
	for _, a := range rest[1:] {
		tail += " " + quote(a.s)
	}
	src := "git "
	if g.dir != r.st.cwd {
		src += "-C " + quote(g.dir) + " "
	}
	src += text + tail
	if strings.HasPrefix(text, "!") {
		src = text[1:] + tail
	}
	h := f.wrapped("git alias")
	h.exact, h.span.Exact = false, f.span.Exact
	r.source(&unit{src: src}, h, in)
	return true
}

// refVerbs are verbs whose operands before -- may be revisions. The number is how many of them at
// most; 0 stands for all.
var refVerbs = map[string]int{
	"log": 0, "show": 0, "diff": 0, "blame": 1, "annotate": 1, "checkout": 1, "switch": 1, "cherry-pick": 0, "revert": 0, "reset": 1,
	"merge": 0, "rebase": 2, "rev-list": 0, "rev-parse": 0, "cat-file": 2, "archive": 1, "format-patch": 0, "range-diff": 0,
	"ls-tree": 1, "grep": 0, "describe": 0, "name-rev": 0, "shortlog": 0, "whatchanged": 0, "show-branch": 0, "difftool": 0,
	"branch": 0, "tag": 0, "stash": 0, "worktree": 0, "bundle": 0, "fast-export": 0, "bisect": 0, "read-tree": 0, "merge-base": 0,
	"cherry": 0, "diff-tree": 0, "diff-index": 1, "notes": 0, "replace": 0, "pack-objects": 0, "restore": 0, "reflog": 0, "update-ref": 0,
	"unpack-file": 1, "merge-tree": 0, "filter-branch": 0, "submodule": 0, "show-ref": 0, "for-each-ref": 0, "fsck": 0, "cherry-mark": 0, "pull": 0, "push": 0,
}

// setOptions select revisions by what they are.
func setOption(verb, s string) string {
	name, _, _ := strings.Cut(s, "=")
	switch name {
	case "--all":
		if verb == "add" || verb == "commit" || verb == "push" || verb == "stash" || verb == "repack" || verb == "fetch" {
			return ""
		}
		return "--all"
	case "--branches", "--tags", "--remotes", "--glob", "--reflog", "--walk-reflogs", "--lost-found", "--unreachable", "--dangling",
		"--batch-all-objects", "--alternate-refs", "--indexed-objects":
		return name
	case "-g":
		if verb == "log" || verb == "show" || verb == "rev-list" {
			return "--walk-reflogs"
		}
	}
	return ""
}

func (r *run) gitRefs(g gitCall, rest []arg) []rules.Ref {
	verb := rest[0].s
	var refs []rules.Ref
	add := func(text, raw string) {
		if text != "" && len(refs) < 64 {
			refs = append(refs, rules.Ref{Text: text, Standing: r.standing(g.dir, text, raw)})
		}
	}
	limit, takes := refVerbs[verb]
	if !takes {
		return nil
	}
	words := rest[1:]
	switch verb {
	case "stash":
		if len(words) == 0 || strings.HasPrefix(words[0].s, "-") || words[0].s == "push" || words[0].s == "save" || words[0].s == "create" {
			return nil
		}
		if len(operands("git", words)) == 1 && (words[0].s == "show" || words[0].s == "pop" || words[0].s == "apply") || words[0].s == "list" {
			add("stash@{0}", "")
		}
	case "reflog":
		add("--reflog", "")
	case "fsck":
		add("--unreachable", "")
	}
	n := 0
	for j := 0; j < len(words); j++ {
		s := words[j].s
		if s == "--" {
			break
		}
		if strings.HasPrefix(s, "-") {
			if o := setOption(verb, s); o != "" {
				add(o, s)
			}
			switch {
			case strings.HasPrefix(s, "--source=") && verb == "restore":
				add(s[len("--source="):], "")
			case verb == "restore" && (s == "-s" || s == "--source") && j+1 < len(words),
				(verb == "branch" || verb == "tag") && (s == "--contains" || s == "--no-contains" || s == "--merged") && j+1 < len(words) && !strings.HasPrefix(words[j+1].s, "-"):
				j++
				add(words[j].s, words[j].raw)
			case gitValueOption(verb, s):
				j++
			}
			continue
		}
		if limit > 0 && n >= limit {
			break
		}
		if r.refsOf(g.dir, verb, words[j], n, add) {
			n++
		}
	}
	if len(refs) == 0 && impliesHead(verb) && r.facts.Ref(r.context(), g.dir, "HEAD") == rules.Foreign {
		add("HEAD", "")
	}
	return refs
}

func impliesHead(verb string) bool {
	switch verb {
	case "log", "show", "blame", "rev-list", "archive", "format-patch", "shortlog", "whatchanged", "ls-tree", "annotate":
		return true
	}
	return false
}

func gitValueOption(verb, s string) bool {
	if s == "-n" {
		return verb == "log" || verb == "show" || verb == "rev-list" || verb == "shortlog" || verb == "format-patch" || verb == "reflog"
	}
	switch s {
	case "-S", "-G", "-L", "--format", "--pretty", "--grep", "--author", "--since", "--until", "--after", "--before", "-o", "--output", "-m", "-U", "--prefix", "--date", "-b", "-B", "-c", "-F":
		return !(s == "-m" && verb != "commit" && verb != "tag" && verb != "stash" || s == "-c" && verb != "switch" && verb != "commit" || s == "-b" && verb != "checkout")
	}
	return false
}

// refsOf adds the revisions that one operand names: a..b, ^a, a:path. It reports whether it was
// taken for a revision.
func (r *run) refsOf(dir, verb string, a arg, n int, add func(text, raw string)) bool {
	if walksCommits(verb) && strings.HasPrefix(a.s, "^") && len(a.s) > 1 {
		return true // leaves out, and shows nothing of it
	}
	s, raw := strings.TrimPrefix(a.s, "^"), strings.Trim(strings.TrimPrefix(a.raw, "^"), `"'`)
	if i := strings.IndexByte(s, ':'); i > 0 && !strings.Contains(s, "://") {
		s = s[:i]
		if j := strings.IndexByte(raw, ':'); j > 0 {
			raw = raw[:j]
		}
	}
	if x, y, ok := cutRange(s); ok && !dottedPath(s) {
		rx, ry, _ := cutRange(raw)
		leftOut := walksCommits(verb) && !strings.Contains(s, "...")
		if x != "" && !leftOut {
			add(x, rx)
		}
		if y != "" {
			add(y, ry)
		}
		if whole := r.facts.Ref(r.context(), dir, s); whole == rules.Foreign && !(leftOut && r.knownRef(dir, x)) { // known as a whole alone
			add(s, raw)
		}
		return true
	}
	if s == "" || !r.isRef(dir, verb, s, raw, a, n) {
		return false
	}
	add(s, raw)
	return true
}

// walksCommits tells whether a verb shows the commits that lead to its operands, so that of `a..b` and `^a b` it shows
// nothing of a.
func walksCommits(verb string) bool {
	switch verb {
	case "log", "rev-list", "shortlog", "whatchanged", "format-patch":
		return true
	}
	return false
}

// knownRef tells whether the facts know a revision by itself.
func (r *run) knownRef(dir, text string) bool {
	return text == "" || r.facts.Ref(r.context(), dir, text) != rules.Unknown
}

// dottedPath tells a path such as ../a or a/.. from a range such as ..b or ...b.
func dottedPath(s string) bool {
	left := strings.TrimLeft(s, ".")
	dots := len(s) - len(left)
	return strings.Contains(s, "/..") || dots == 1 || dots > 3 || dots > 0 && (left == "" || left[0] == '/')
}

func cutRange(s string) (a, b string, ok bool) {
	if a, b, ok = strings.Cut(s, "..."); ok {
		return a, b, ok
	}
	return strings.Cut(s, "..")
}

var refLike = regexp.MustCompile(`^(?:[0-9a-fA-F]{7,40}|@|HEAD|[A-Z]+_HEAD|(?:HEAD|@|[\w./-]+)(?:[~^][\d^~]*|@\{[^}]*\})+|(?:refs|origin|upstream|remotes|heads|tags)/\S+|stash(?:@\{\d+\})?|v?\d+(?:\.\d+)+\S*|main|master|develop|trunk|dev|next)(?:\^\{\w*\})?$`)

// isRef decides whether an operand is a revision: the facts know it, the agent made it, or it looks
// like one and not like a file of the tree.
func (r *run) isRef(dir, verb, s, raw string, a arg, n int) bool {
	if r.facts.Ref(r.context(), dir, s) != rules.Unknown || raw != "" && raw != s && r.facts.Ref(r.context(), dir, raw) != rules.Unknown {
		return true
	}
	if own, ok := r.st.ownRefs.get(s); ok && own {
		return true
	}
	if refLike.MatchString(s) {
		return true
	}
	switch verb {
	case "show", "cherry-pick", "cat-file", "archive", "merge", "rebase", "revert", "worktree", "bisect", "rev-list":
		if verb == "cat-file" && (s == "blob" || s == "commit" || s == "tree" || s == "tag") {
			return false
		}
		if verb == "bisect" || verb == "worktree" {
			return a.opaque && n > 0
		}
		return a.opaque || !strings.ContainsAny(s, "/.")
	}
	return false
}

// standing gives whose a revision is: the agent's, by what it did in this rollout, or as the facts
// say for the text or for the text as it was written.
func (r *run) standing(dir, text, raw string) rules.Standing {
	if s := r.facts.Ref(r.context(), dir, text); s != rules.Unknown {
		if s == rules.Foreign && (r.n.task.history || r.n.task.namesRef(text)) {
			return rules.Unknown // the judge has the task's text to go by
		}
		return s
	}
	if raw != "" && raw != text {
		if s := r.facts.Ref(r.context(), dir, raw); s != rules.Unknown {
			return s
		}
	}
	if own, ok := r.st.ownRefs.get(strings.TrimRight(text, "~^0123456789")); ok && own {
		return rules.Own
	}
	if own, ok := r.st.ownRefs.get(text); ok && own {
		return rules.Own
	}
	switch text {
	case "--reflog", "--walk-reflogs", "--branches", "--tags", "--remotes", "--glob", "--alternate-refs":
		if own, ok := r.st.ownRefs.get(ownPart(raw)); ok && own {
			return rules.Own
		}
		return r.facts.Ref(r.context(), dir, "--all")
	}
	return rules.Unknown
}

// ownPart gives the branch that --branches=NAME or --glob=refs/heads/NAME selects, where it is one alone.
func ownPart(option string) string {
	_, pat, _ := strings.Cut(option, "=")
	return strings.TrimPrefix(strings.TrimPrefix(pat, "refs/"), "heads/")
}
