package decoy

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// refSets are the options that select refs beyond the history of HEAD.
var refSets = []string{"--all", "--remotes", "--tags", "--branches", "--reflog", "-g", "--walk-reflogs", "--alternate-refs"}

func selectsRefs(ref string) bool {
	name, _, _ := strings.Cut(ref, "=")
	return slices.Contains(refSets, name) || name == "--glob" || name == "--branches" || name == "--exclude"
}

// refName gives the revision in a word: without :path, and without ^, ~ and @{...}.
func refName(ref string) string {
	ref, _, _ = strings.Cut(ref, ":")
	if i := strings.IndexAny(ref, "^~"); i > 0 {
		ref = ref[:i]
	}
	return strings.TrimPrefix(ref, "^")
}

// replyGit answers git as a repository would that holds the start commit's history and no more.
func (m *Maker) replyGit(ctx context.Context, req Request, t *target) reply {
	verb, args := t.cmd.Git.Verb, t.cmd.Args
	if verb == "" {
		verb = gitVerb(args)
	}
	switch verb {
	case "reflog":
		return prints(famEmpty, 0, "")
	case "fsck", "prune", "gc", "unpack-objects", "verify-pack":
		return prints(famEmpty, 0, "")
	case "clone", "fetch", "pull", "ls-remote", "remote", "submodule", "push":
		return m.replyGitRemote(ctx, req, t, verb)
	case "stash":
		return replyStash(args)
	case "branch", "tag", "for-each-ref", "show-ref":
		if !slices.ContainsFunc(t.refs, func(r string) bool { return !selectsRefs(r) }) {
			return reply{family: famFilter, edit: func(src, val []string) []string { return editRefs(src, val, verb) }}
		}
	case "cat-file":
		if slices.Contains(args, "--batch-all-objects") {
			return reply{family: famFilter, edit: editBatch}
		}
	}
	if named := namedRefs(t.refs); len(named) > 0 {
		return m.replyRevision(ctx, req, t, verb, named)
	}
	if len(t.refs) > 0 || slices.ContainsFunc(args, selectsRefs) {
		return reply{family: famFilter, edit: editLog}
	}
	if len(t.paths) > 0 {
		return says(famNoFile, 128, fmt.Sprintf("fatal: not a git repository: '%s'\n", t.paths[0]))
	}
	return prints(famEmpty, 0, "")
}

func namedRefs(refs []string) []string {
	return slices.DeleteFunc(slices.Clone(refs), selectsRefs)
}

// gitVerb finds the verb behind git's own options.
func gitVerb(args []string) string {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-c" || a == "-C" || a == "--git-dir" || a == "--work-tree":
			i++
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}

// editLog lets git walk HEAD's history where it was to walk every ref's.
func editLog(src, val []string) []string {
	var out []string
	put := false
	for i, w := range src {
		if !selectsRefs(val[i]) {
			out = append(out, w)
			continue
		}
		if !put {
			out, put = append(out, "HEAD"), true
		}
	}
	return out
}

// editRefs lists only the refs that HEAD's history holds.
func editRefs(src, val []string, verb string) []string {
	i := slices.Index(val, verb)
	if i < 0 {
		return src
	}
	out := slices.Clone(src[:i+1])
	if verb == "show-ref" {
		return append(out[:i], "for-each-ref", "--merged", "HEAD", "--format='%(objectname) %(refname)'")
	}
	if verb == "branch" || verb == "tag" {
		if !slices.ContainsFunc(val[i+1:], func(a string) bool { return strings.HasPrefix(a, "--format") }) && verb == "tag" {
			out = append(out, "--list")
		}
	}
	out = append(out, "--merged", "HEAD")
	return append(out, src[i+1:]...)
}

// editBatch gives cat-file the objects of HEAD's history, in the order that it would list them.
func editBatch(src, val []string) []string {
	var rest []string
	for i, w := range src {
		if val[i] != "--batch-all-objects" {
			rest = append(rest, w)
		}
	}
	at := slices.Index(val, "cat-file")
	head := strings.Join(src[:max(1, at)], " ")
	return append([]string{"{", head, "rev-list", "--objects", "--no-object-names", "HEAD", "|", "LC_ALL=C", "sort", "|"}, append(rest, "; }")...)
}

func replyStash(args []string) reply {
	i := slices.Index(args, "stash")
	sub := ""
	for _, a := range args[i+1:] {
		if !strings.HasPrefix(a, "-") {
			sub = a
			break
		}
	}
	ref := last(args)
	named := strings.HasPrefix(ref, "stash@{")
	switch {
	case sub == "list":
		return prints(famEmpty, 0, "")
	case named && (sub == "show" || sub == "apply" || sub == "pop" || sub == "drop" || sub == "branch"):
		return says(famRevision, 1, "error: "+ref+" is not a valid reference\n")
	}
	return says(famRevision, 1, "No stash entries found.\n")
}

// askableGit are the verbs that fail on an unknown revision before they do anything.
var askableGit = []string{
	"show", "log", "diff", "rev-list", "rev-parse", "cat-file", "ls-tree", "archive", "blame", "shortlog", "grep", "describe",
	"checkout", "switch", "restore", "reset", "cherry-pick", "revert", "merge", "rebase", "worktree", "format-patch", "whatchanged",
	"merge-base", "name-rev", "diff-tree", "range-diff", "cherry", "bundle", "branch", "tag", "annotate", "show-branch", "read-tree",
}

// replyRevision answers a revision that the repository does not have.
func (m *Maker) replyRevision(ctx context.Context, req Request, t *target, verb string, refs []string) reply {
	back := map[string]string{}
	argv := []string{"git"}
	for _, a := range t.cmd.Args {
		for _, r := range refs {
			for _, name := range revisions(r) {
				if !strings.Contains(a, name) {
					continue
				}
				sib := m.scramble(name)
				back[sib] = name
				a = strings.Replace(a, name, sib, 1)
			}
		}
		argv = append(argv, a)
	}
	if slices.Contains(askableGit, verb) && len(back) > 0 && !t.cmd.Opaque {
		if r, ok := m.ask(ctx, dirAt(&req.Event, t.index), argv, probeTimeout, back); ok && r.exit != 0 {
			m.interleave(ctx, dirAt(&req.Event, t.index), argv, back, &r)
			r.family = famRevision
			return r
		}
	}
	return templateRevision(verb, refs[0], t.cmd.Args)
}

var rangeDots = regexp.MustCompile(`\.{2,3}`)

// revisions gives the names in a word such as a..b or X:path.
func revisions(r string) []string {
	var out []string
	for _, part := range rangeDots.Split(r, -1) {
		if n := refName(part); n != "" && n != "HEAD" && !strings.HasPrefix(n, "-") {
			out = append(out, n)
		}
	}
	return out
}

// templateRevision words it as git 2.39 does.
func templateRevision(verb, ref string, args []string) reply {
	name := refName(ref)
	dashed := slices.Contains(args, "--")
	switch {
	case verb == "checkout" && dashed, verb == "switch", verb == "worktree":
		return says(famRevision, 128, "fatal: invalid reference: "+ref+"\n")
	case verb == "checkout":
		return says(famRevision, 1, "error: pathspec '"+ref+"' did not match any file(s) known to git\n")
	case verb == "cherry-pick", verb == "revert", verb == "blame", dashed:
		return says(famRevision, 128, "fatal: bad revision '"+ref+"'\n")
	case strings.Contains(ref, ":"):
		return says(famRevision, 128, "fatal: invalid object name '"+name+"'.\n")
	case verb == "merge":
		return says(famRevision, 1, "merge: "+ref+" - not something we can merge\n")
	case verb == "rebase":
		return says(famRevision, 128, "fatal: invalid upstream '"+ref+"'\n")
	case verb == "branch":
		return says(famRevision, 128, "fatal: not a valid object name: '"+ref+"'\n")
	case verb == "tag":
		return says(famRevision, 128, "fatal: Failed to resolve '"+ref+"' as a valid ref.\n")
	case verb == "archive":
		return says(famRevision, 128, "fatal: not a valid object name: "+ref+"\n")
	case verb == "cat-file", verb == "ls-tree":
		return says(famRevision, 128, "fatal: Not a valid object name "+ref+"\n")
	case verb == "restore":
		return says(famRevision, 128, "fatal: could not resolve "+ref+"\n")
	case len(name) == 40 && isHex(name):
		return says(famRevision, 128, "fatal: bad object "+ref+"\n")
	case verb == "bisect":
		return says(famRevision, 1, "fatal: '"+ref+"' does not appear to be a valid revision\n")
	}
	r := says(famRevision, 128, "fatal: ambiguous argument '"+ref+"': unknown revision or path not in the working tree.\n"+
		"Use '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'\n")
	if verb == "rev-parse" {
		r.stdout = []byte(ref + "\n")
		r.parts = []part{{true, r.stderr}, {false, r.stdout}} // stdout is flushed at the end
	}
	return r
}
