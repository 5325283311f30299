package normalize

import (
	"strings"

	"proctor/rules"
)

// gitState follows what the agent makes: branches, tags, stashes, aliases.
func (r *run) gitState(g gitCall, rest []arg) {
	verb, words := rest[0].s, rest[1:]
	ops := operands("git", words)
	switch verb {
	case "checkout", "switch":
		if v, ok := optionValue(words, "-b", "-B", "-c", "-C", "--orphan"); ok {
			r.st.ownRefs.set(v.s, true)
		}
	case "branch", "tag":
		if len(ops) == 1 && !hasFlag(words, "dDalrv", "--contains", "--list", "--merged") && !refLike.MatchString(ops[0].s) {
			r.st.ownRefs.set(ops[0].s, true)
		}
	case "stash":
		if len(words) == 0 || words[0].s == "push" || words[0].s == "save" || strings.HasPrefix(words[0].s, "-") {
			r.st.ownRefs.set("stash@{0}", true)
			r.st.ownRefs.set("stash", true)
		}
	case "config":
		for len(ops) > 0 && (ops[0].s == "set" || ops[0].s == "--add") {
			ops = ops[1:]
		}
		if len(ops) >= 2 {
			if name, ok := strings.CutPrefix(ops[0].s, "alias."); ok {
				r.st.gitAlias.set(name, ops[1].s)
			}
			if real, ok := insteadOf(ops[0].s); ok && ops[1].s != "" {
				r.st.instead.set(ops[1].s, real)
			}
		}
	}
}

// insteadOf gives the URL of a setting url.URL.insteadOf.
func insteadOf(key string) (string, bool) {
	for _, end := range [...]string{".insteadOf", ".insteadof", ".pushInsteadOf"} {
		if real, ok := strings.CutSuffix(strings.TrimPrefix(key, "url."), end); ok {
			return real, strings.HasPrefix(key, "url.")
		}
	}
	return "", false
}

// gitNet adds the URL that insteadOf settings make of a remote.
func (r *run) gitNet(cmd *rules.Command, g gitCall, rest []arg) {
	short := func(short, real string) bool {
		for _, a := range rest[1:] {
			if tail, ok := strings.CutPrefix(a.s, short); ok && short != "" && strings.Contains(real, "://") {
				r.addURL(&cmd.Net, real+tail)
			}
		}
		return true
	}
	for k, v := range g.config {
		if real, ok := insteadOf(k); ok {
			short(v, real)
		}
	}
	r.st.instead.each(short)
	if _, remote := optionValue(rest, "--remote"); remote && rest[0].s == "archive" {
		if v, _ := optionValue(rest, "--remote"); scpHost(v.s) != "" {
			r.addHost(&cmd.Net, scpHost(v.s))
			r.addURL(&cmd.Net, "ssh://"+strings.Replace(v.s, ":", "/", 1))
		}
		r.judgeNet(&cmd.Net)
		return
	}
	switch rest[0].s {
	case "clone", "fetch", "pull", "ls-remote", "remote", "submodule", "push":
		r.judgeNet(&cmd.Net)
	default:
		cmd.Net = rules.Net{} // a URL in a message or a pattern is not reached for
	}
}

// gitRun reads the commands that git runs for its caller.
func (r *run) gitRun(rest []arg, f frame) {
	verb, words := rest[0].s, rest[1:]
	switch {
	case verb == "bisect" && len(words) > 1 && words[0].s == "run":
		r.simple(words[1:], nil, f.wrapped("git bisect run"), val{})
	case verb == "submodule" && len(words) > 1 && words[0].s == "foreach":
		r.source(&unit{src: strings.Join(texts(words[1:]), " ")}, f.wrapped("git submodule foreach"), val{})
	default:
		r.gitOptions(verb, words, f)
	}
}
