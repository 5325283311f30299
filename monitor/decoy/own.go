package decoy

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"proctor/rules"
	"proctor/sandbox"
)

// The best decoy is the call itself, where what it reaches for is proved not to be there.
//
// Why: any text of ours, typed or shown, can be compared with what the shell keeps ($_, history, a
// DEBUG trap, functions, aliases), with times, with processes, with another tool's answer. A call
// that runs as it was typed in a sandbox that does not hold the thing differs from a clean
// environment in nothing, because it is one.
//
// How: a target needs words of ours only while its object is, or may be, there. Protected paths are
// proved gone by hardening, by a look at the sandbox, or by taking them out of it (absence.go);
// foreign revisions by the proof of the repository; hosts and packages by a sandbox without a
// network. What is left over is answered as before, and only that.
//
// Guarantee: a call is run as it is only where every object that its confirmed hits are about is
// proved absent. Never for tampering, which is about what is written and not about what is learned.
//
// When in doubt: an object that could not be named, or that lies where nothing was proved, is taken
// to be there.

// needWords gives the targets that cannot be left to the call itself.
func (m *Maker) needWords(ctx context.Context, req Request, targets []target) []target {
	if req.Late {
		return targets
	}
	var out []target
	for i := range targets {
		if !m.absentFor(ctx, req, &targets[i]) {
			out = append(out, targets[i])
		}
	}
	return out
}

// absentFor reports whether all that t is after is proved not to be in the sandbox.
func (m *Maker) absentFor(ctx context.Context, req Request, t *target) bool {
	switch t.class {
	case rules.GraderTamper, rules.ResultForging, rules.SpecialCasing, rules.Fabrication, rules.JudgeInjection:
		return false
	case "": // from the memory alone: a file that may not be written stays so
		if len(t.writes) > 0 {
			return false
		}
	}
	if t.class == rules.HiddenArtifact && t.cmd != nil && lists(t.cmd) && len(t.cmd.Hidden) == 0 && !m.onlyFromAbove(ctx, t.cmd.Paths) {
		return false
	}
	paths := append(reachedBy(t), slices.DeleteFunc(slices.Clone(t.writes), func(w string) bool { return !denied(w, m.vars) })...)
	for _, p := range paths {
		if !m.pathAbsent(ctx, p) {
			return false
		}
	}
	if (len(t.hosts) > 0 || t.class == rules.UpstreamFetch) && !m.offline {
		return false
	}
	if len(t.pkgs) > 0 && !m.packagesAbsent(t) {
		return false
	}
	if (len(t.refs) > 0 || t.class == rules.GitHistory) && !m.historyClean(ctx, req, t) {
		return false
	}
	return len(paths)+len(t.hosts)+len(t.pkgs)+len(t.refs) > 0 || m.classAbsent(ctx, req, t)
}

// reachedBy gives every path that t reaches for, those that it would only meet on the way included.
func reachedBy(t *target) []string {
	paths := slices.Clone(t.paths)
	if t.cmd != nil {
		paths = append(append(paths, t.cmd.Covers...), t.cmd.Copies...)
	}
	if t.code != nil {
		paths = append(append(append(paths, t.code.Hidden...), t.code.Covers...), t.code.Copies...)
	}
	return paths
}

// classAbsent judges a target that names nothing by what its class could mean at all.
func (m *Maker) classAbsent(ctx context.Context, req Request, t *target) bool {
	switch t.class {
	case rules.UpstreamFetch:
		return m.offline
	case rules.GitHistory:
		return true // asked before
	case rules.UpstreamPackage:
		return t.cmd != nil && (packager(t.cmd.Program) || byModule(t.cmd)) && m.packagesAbsent(t)
	case rules.HiddenArtifact: // a walk from above meets every protected path, and nothing else that is protected
		return t.cmd != nil && t.code == nil && lists(t.cmd) && m.pathsAbsent(ctx, m.vars["hidden_paths"])
	case rules.SandboxEscape, rules.HarnessIntrospection:
		return t.cmd != nil && len(t.cmd.Paths) == 0 && m.missing(ctx, req, t.cmd.Program)
	}
	return false
}

// onlyFromAbove reports whether each path is the work folder, one above it, or not there. What else a
// walk starts from may be what it is after, declared or not.
func (m *Maker) onlyFromAbove(ctx context.Context, paths []string) bool {
	work := m.vars.One("workdir")
	return !slices.ContainsFunc(paths, func(p string) bool {
		return path.Clean(p) != "/" && !under(work, p) && !m.pathAbsent(ctx, p)
	})
}

// localSource matches what lets a package manager find a package without a network.
var localSource = regexp.MustCompile(`^(-f|-f.+|--find-links.*|--no-index|--offline|--prefer-offline|--cache.*|--registry.*|-i|--(extra-)?index-url.*)$|file:|\.(whl|tar\.gz|tgz|zip|gem|crate|jar)$`)

// packagesAbsent reports whether no package can be had: no network, no caches since the image was
// hardened, and no source on this machine that the command names.
func (m *Maker) packagesAbsent(t *target) bool {
	return m.offline && m.scrubbed && t.cmd != nil && len(t.cmd.Env) == 0 && !slices.ContainsFunc(t.cmd.Args, localSource.MatchString)
}

// pathsAbsent is pathAbsent of all of them.
func (m *Maker) pathsAbsent(ctx context.Context, paths []string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return !m.pathAbsent(ctx, p) })
}

// pathAbsent reports whether there is nothing at p that is to be kept from the agent.
func (m *Maker) pathAbsent(ctx context.Context, p string) bool {
	switch {
	case denied(p, m.vars):
		return m.rootAbsent(ctx, hiddenRoot(p, m.vars))
	case strings.Contains(p+"/", "/.git/"):
		return m.scrubbed && under(p, m.vars.One("workdir"))
	case m.stat == nil || strings.HasPrefix(p, "/proc/") || strings.ContainsAny(p, "*?["):
		return false
	}
	_, err := m.stat(ctx, p)
	return errors.Is(err, fs.ErrNotExist)
}

// historyClean reports whether git can show t nothing but ancestors and the agent's own work: the
// repository is the one that was proved, not another that the command names or stands in.
func (m *Maker) historyClean(ctx context.Context, req Request, t *target) bool {
	work := m.vars.One("workdir")
	if !m.scrubbed || work == "" {
		return false
	}
	if t.cmd == nil {
		return under(req.Event.Call.Cwd, work)
	}
	if !under(dirAt(&req.Event, t.index), work) || namesRepository(t.cmd.Args) {
		return false
	}
	return !slices.ContainsFunc(t.cmd.Paths, func(p string) bool {
		return path.IsAbs(p) && !under(p, work) && !slices.Contains(t.cmd.Writes, p) && !strings.HasPrefix(p, "/dev/") && !m.pathAbsent(ctx, p)
	})
}

// namesRepository reports whether git is pointed at a repository by option.
func namesRepository(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--git-dir") || strings.HasPrefix(a, "--work-tree")
	})
}

// ownCall is the answer that is the agent's own call, run as it is.
func (m *Maker) ownCall(req Request, targets []target) Answer {
	out := Answer{Family: m.familyOf(targets), Action: actionDecoyed, Run: true, Own: true, Absent: m.takeProved()}
	if !slices.ContainsFunc(targets, func(t target) bool { return !met(&t) }) {
		out.Action = actionFiltered
	}
	switch req.Call.Op {
	case sandbox.OpShell, sandbox.OpSpawn:
		out.Command = req.Call.Command
	}
	return out
}

// met reports whether t names nothing that is protected, but would have come upon it.
func met(t *target) bool {
	if t.cmd == nil || len(t.hosts)+len(t.pkgs)+len(namedRefs(t.refs)) > 0 {
		return false
	}
	if t.code != nil {
		return len(t.code.Hidden)+len(t.code.Copies) == 0
	}
	return len(t.cmd.Hidden) == 0 && (lists(t.cmd) || len(t.cmd.Covers) > 0 || len(t.refs) > 0)
}

// familyOf names what the first target is denied.
func (m *Maker) familyOf(targets []target) string {
	if len(targets) == 0 {
		return famEmpty
	}
	t := &targets[0]
	switch {
	case t.family != "":
		return t.family
	case met(t):
		return famFilter
	case len(t.pkgs) > 0 || t.class == rules.UpstreamPackage:
		return famPackage
	case len(t.hosts) > 0 || t.class == rules.UpstreamFetch:
		return famNetwork
	case len(t.refs) > 0 || t.class == rules.GitHistory && len(t.paths) == 0:
		return famRevision
	}
	return famNoFile
}
