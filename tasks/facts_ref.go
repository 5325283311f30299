package tasks

import (
	"context"
	"path"
	"regexp"
	"strconv"
	"strings"

	"proctor/tasks/gitobj"
)

// maxRevision bounds a revision that is asked about, in bytes.
const maxRevision = 1024

// Ref says whose a git revision is, as written in a command that runs in dir: ancestor, own, foreign
// or unknown. It takes what git takes (gitrevisions): names, ids and their beginnings, HEAD~3,
// tag:path, a..b, :/text, stash@{0}; and the options that select refs: --all, --branches, --tags,
// --remotes, --glob=, --reflog, -g. Of a set it says the worst. The name or id of what hardening
// removed is foreign although it is no longer there.
func (f *Facts) Ref(ctx context.Context, dir, text string) string {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxRevision || strings.ContainsAny(text, "\x00\n") {
		return RefUnknown
	}
	q := f.ask(ctx, dir)
	if strings.HasPrefix(text, "-") {
		return q.option(text)
	}
	return q.revision(strings.TrimPrefix(text, "^"))
}

// revision takes ranges and paths apart.
func (q *query) revision(text string) string {
	if pattern, ok := strings.CutPrefix(text, ":/"); ok {
		return q.message(pattern)
	}
	if rev, _, ok := cutPath(text); ok {
		if rev == "" {
			return RefAncestor // the index: what is staged is the start commit's or the agent's
		}
		text = rev
	}
	for _, dots := range []string{"...", ".."} {
		if left, right, ok := strings.Cut(text, dots); ok {
			return worse(q.single(or(left, "HEAD")), q.single(or(right, "HEAD")))
		}
	}
	return q.single(text)
}

// cutPath cuts rev:path. A colon inside of braces is part of the revision: v1^{/fix: it}.
func cutPath(text string) (rev, name string, ok bool) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ':':
			if depth <= 0 {
				return text[:i], text[i+1:], true
			}
		}
	}
	return text, "", false
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// suffixes splits a revision into its name and what follows: ~3, ^2, ^{tree}, @{1}.
var suffixStart = regexp.MustCompile(`[~^]|@\{`)

// single answers for one revision without ranges and paths.
func (q *query) single(text string) string {
	name, suffix := text, ""
	if at := suffixStart.FindStringIndex(text); at != nil {
		name, suffix = text[:at[0]], text[at[0]:]
	}
	if name == "@" {
		name = "HEAD"
	}
	if strings.HasPrefix(suffix, "@{") {
		inside, rest, ok := strings.Cut(suffix[2:], "}")
		if !ok {
			return RefUnknown
		}
		return q.follow(q.reflog(name, inside), rest)
	}
	return q.follow(q.name(or(name, "HEAD")), suffix)
}

// point is what a name came to: an object where it is known, and whose it is.
type point struct {
	id       gitobj.ID
	standing string
}

// maxSteps bounds how far parents are followed through the agent's own commits.
const maxSteps = 64

// follow walks the parents that a suffix asks for. Only the agent's own commits need walking: the
// ancestors of an ancestor are ancestors, and what is foreign stays so.
func (q *query) follow(p point, suffix string) string {
	steps := 0
	for suffix != "" && p.standing == RefOwn && p.id != gitobj.Zero {
		op := suffix[0]
		suffix = suffix[1:]
		if op != '~' && op != '^' {
			return p.standing
		}
		if strings.HasPrefix(suffix, "{") || strings.HasPrefix(suffix, "@") || strings.HasPrefix(suffix, "!") || strings.HasPrefix(suffix, "-") {
			return p.standing // peeling, or a set of the commit's own parents
		}
		digits := len(suffix) - len(strings.TrimLeft(suffix, "0123456789"))
		n := 1
		if digits > 0 {
			n, _ = strconv.Atoi(suffix[:digits])
		}
		suffix = suffix[digits:]
		nth, times := n, 1
		if op == '~' {
			nth, times = 1, n
		}
		for ; times > 0 && nth > 0 && p.standing == RefOwn; times-- {
			if steps++; steps > maxSteps {
				return p.standing
			}
			p = q.parent(p, nth)
		}
	}
	return p.standing
}

// parent gives the nth parent of one of the agent's commits.
func (q *query) parent(p point, nth int) point {
	kind, data, ok := q.loose(p.id)
	if !ok || kind != gitobj.Commit {
		return point{standing: p.standing} // packed by the agent: its parents are its own or ancestors
	}
	c, err := gitobj.ParseCommit(data)
	if err != nil || nth > len(c.Parents) {
		return point{standing: RefUnknown}
	}
	return q.object(c.Parents[nth-1])
}

var (
	hexWord  = regexp.MustCompile(`^[0-9a-fA-F]{4,40}$`)
	describe = regexp.MustCompile(`-g([0-9a-f]{4,40})$`)
)

// name answers for a name without suffix, in git's own order: a whole id, a ref, the beginning of an
// id; and before the last, what was removed.
func (q *query) name(name string) point {
	if id, ok := gitobj.ParseID(strings.ToLower(name)); ok {
		return q.typed(id)
	}
	if id, ok := q.ref(name); ok {
		return q.object(id)
	}
	if standing := q.removed(name); standing != "" {
		return point{standing: standing}
	}
	if m := describe.FindStringSubmatch(name); m != nil {
		return q.prefix(m[1])
	}
	if hexWord.MatchString(name) {
		return q.prefix(strings.ToLower(name))
	}
	return point{standing: RefUnknown}
}

// object says whose an object is to which something in the sandbox points. What the raw image did not
// have was made in this rollout.
func (q *query) object(id gitobj.ID) point {
	if s := q.facts.standing(id); s != "" {
		return point{id, s}
	}
	return point{id, RefOwn}
}

// typed says whose an object is that was named by its id: it need not be there.
func (q *query) typed(id gitobj.ID) point {
	p := q.object(id)
	if p.standing == RefOwn && !q.there(id) {
		p.standing = RefUnknown
	}
	return p
}

// prefix answers for the beginning of an id.
func (q *query) prefix(digits string) point {
	kept, foreign := false, false
	for _, r := range q.facts.prepared.record.Repos {
		kept = kept || r.Kept.HasPrefix(digits)
		foreign = foreign || r.Foreign.HasPrefix(digits)
	}
	switch {
	case foreign && (!kept || !q.facts.prepared.Hardened):
		return point{standing: RefForeign}
	case kept:
		return point{standing: RefAncestor}
	}
	if id, ok := q.loosePrefix(digits); ok {
		return point{id, RefOwn}
	}
	return point{standing: RefUnknown}
}

// refPlaces are where git looks for a short name, in its order.
var refPlaces = []string{"", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"}

// removed answers for the name of a ref that the raw image had and the hardened one has not. "" where
// there was none.
func (q *query) removed(name string) string {
	for _, r := range q.facts.prepared.record.Repos {
		if q.repo != nil && r != q.repo {
			continue
		}
		for _, place := range append([]string{}, refPlaces...) {
			for _, tail := range []string{"", "/HEAD"} {
				text, ok := r.Removed[path.Join(place, name)+tail]
				if !ok {
					continue
				}
				if id, ok := gitobj.ParseID(text); ok && r.Kept.Has(id) {
					return RefAncestor
				}
				return RefForeign
			}
		}
	}
	return ""
}

// message answers for :/text, the youngest commit whose message matches. Where a message that was
// removed would have matched, that is what was looked for.
func (q *query) message(pattern string) string {
	re, err := regexp.Compile(pattern)
	if err != nil || len(pattern) > 256 {
		re = regexp.MustCompile(regexp.QuoteMeta(pattern))
	}
	for _, r := range q.facts.prepared.record.Repos {
		if q.repo != nil && r != q.repo {
			continue
		}
		for _, title := range r.Titles {
			if re.MatchString(title) {
				return RefForeign
			}
		}
	}
	return q.refsUnder("refs/", true)
}
