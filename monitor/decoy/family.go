package decoy

import (
	"context"
	"slices"
	"strings"
)

// Families that a rule's decoy may name. Where the family fits what the command does, it decides the
// words; where it does not, or is not known, the class's own way does, which is the one that fits.
const (
	WishNoFile   = "no-such-file"        // what is named is not there
	WishDenied   = "permission-denied"   // it is there, and closed
	WishRevision = "bad-revision"        // the repository has no such revision
	WishHistory  = "filtered-history"    // git runs, over HEAD's history alone
	WishWalk     = "filtered-walk"       // the listing runs, protected entries left out
	WishNetwork  = "network-unreachable" // no host can be reached
	WishVersion  = "no-such-version"     // the package manager finds none
	WishWrite    = "write-denied"        // the file cannot be written
	WishImport   = "import-error"        // the module cannot be imported
	WishNoTool   = "command-not-found"   // the program is not installed
	WishEmpty    = "empty"               // nothing is printed, status 0
)

// Families gives the names that a rule's decoy may have beside explicit and observe.
func Families() []string {
	return []string{WishNoFile, WishDenied, WishRevision, WishHistory, WishWalk, WishNetwork, WishVersion, WishWrite, WishImport, WishNoTool, WishEmpty}
}

// wished answers t in the family that its rule names; false where that fits nothing that t does.
func (m *Maker) wished(ctx context.Context, req Request, t *target) (reply, bool) {
	code := t.code != nil || interpreted(t)
	switch {
	case t.family == WishDenied && len(t.paths) > 0 && !code:
		r := closed(m.replyPath(ctx, req, t))
		r.family = WishDenied
		return r, r.edit == nil
	case t.family == WishNoFile && len(t.paths) > 0 && len(t.writes) == 0 && !code && t.cmd.Program != "git":
		return m.replyPath(ctx, req, t), true
	case t.family == WishRevision && t.cmd.Program == "git" && len(namedRefs(t.refs)) > 0 && t.cmd.Git.Verb != "stash":
		return m.replyRevision(ctx, req, t, gitVerb(t.cmd.Args), namedRefs(t.refs)), true
	case t.family == WishNetwork && fetcher(t.cmd.Program) && !code:
		return m.replyNetwork(ctx, req, t), true
	case t.family == WishVersion && packager(t.cmd.Program):
		return m.replyPackage(ctx, req, t), true
	case t.family == WishWrite && len(t.writes) > 0 && !code:
		return m.replyWrite(ctx, req, t), true
	case t.family == WishImport && interpreter(t.cmd.Program) == "python":
		return replyImport(t)
	case t.family == WishNoTool && !shellBuiltin(t.cmd.Program):
		return m.notInstalled(t.cmd.Program), true
	case t.family == WishEmpty:
		return prints(famEmpty, 0, ""), true
	}
	return reply{}, false
}

// replyImport answers an import as of a module that is not there: the first that the code imports at
// its top level and that what is denied names; false where it names none.
func replyImport(t *target) (reply, bool) {
	s := sourceOf(t)
	for i, line := range strings.Split(s.code, "\n") {
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == ';' })
		if len(words) < 2 || words[0] != "import" && words[0] != "from" {
			continue
		}
		top, _, _ := strings.Cut(words[1], ".")
		if !slices.ContainsFunc(append(slices.Clone(t.paths), pkgNames(t)...), func(p string) bool {
			return slices.Contains(strings.Split(p, "/"), top)
		}) {
			continue
		}
		return says(WishImport, 1, traceback(s, i+1, strings.TrimSpace(line), "ModuleNotFoundError: No module named '"+words[1]+"'")), true
	}
	return reply{}, false
}

func pkgNames(t *target) []string {
	var out []string
	for _, p := range t.pkgs {
		out = append(out, p.Name)
	}
	return out
}
