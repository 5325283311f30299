package normalize

import (
	"sort"
	"strings"
)

// hookVariable tells whether the value of an environment variable is a command that a program runs.
func hookVariable(name string) bool {
	switch name {
	case "GIT_PAGER", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF",
		"GIT_ASKPASS", "SSH_ASKPASS", "LESSOPEN", "LESSCLOSE", "BROWSER", "PROMPT_COMMAND", "RIPGREP_PREPROCESSOR", "FZF_DEFAULT_COMMAND":
		return true
	}
	return false
}

// hooks reads the commands that the environment of a command hands to it.
func (r *run) hooks(env map[string]string, f frame) {
	var names []string
	for name := range env {
		if hookVariable(name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		r.hook(name, env[name], f)
	}
}

// hook reads one command that is named by a setting. A bare name such as "cat" or "vim" says nothing.
func (r *run) hook(name, text string, f frame) {
	text = strings.TrimLeft(strings.TrimSpace(text), "|-!")
	if !strings.ContainsAny(text, " \t/;$`") || f.depthOf(name) > 0 {
		return
	}
	g := f.wrapped(name)
	g.exact, g.span.Exact = false, false
	r.source(&unit{src: text}, g, val{})
}

// shellStart reads the file that a shell reads before anything else.
func (r *run) shellStart(env map[string]string, f frame) {
	for _, name := range [...]string{"BASH_ENV", "ENV"} {
		if p := env[name]; p != "" && f.depthOf(name) == 0 {
			r.simple([]arg{{s: "."}, {s: p}}, nil, f.wrapped(name), val{})
		}
	}
}

// gitHook tells whether a git setting holds a command.
func gitHook(key string) bool {
	low := strings.ToLower(key)
	switch low {
	case "core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.askpass", "core.gitproxy", "sequence.editor", "diff.external", "gpg.program", "credential.helper":
		return true
	}
	section, _, _ := strings.Cut(low, ".")
	last := low[strings.LastIndexByte(low, '.')+1:]
	switch section {
	case "pager":
		return true
	case "difftool", "mergetool", "filter", "diff", "merge", "credential", "uploadpack", "remote":
		switch last {
		case "cmd", "clean", "smudge", "process", "textconv", "command", "driver", "helper", "packobjectshook", "uploadpack", "receivepack":
			return true
		}
	}
	return false
}

// gitHooks reads the commands of git -c key=command.
func (r *run) gitHooks(g gitCall, f frame) {
	if len(g.config) == 0 {
		return
	}
	keys := make([]string, 0, len(g.config))
	for k := range g.config {
		if gitHook(k) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		r.hook("git -c "+k, g.config[k], f)
	}
}

// gitOptions reads the commands that options of a git verb name, and ext:: addresses.
func (r *run) gitOptions(verb string, words []arg, f frame) {
	read := func(via, text string) {
		g := f.wrapped(via)
		g.exact, g.span.Exact = false, false
		r.source(&unit{src: text}, g, val{})
	}
	switch verb {
	case "rebase":
		if v, ok := optionJoined(words, "-x", "--exec"); ok {
			read("git rebase --exec", v.s)
		}
	case "difftool":
		if v, ok := optionJoined(words, "-x", "--extcmd"); ok {
			read("git difftool", v.s)
		}
	case "grep":
		for _, a := range words {
			if v, ok := strings.CutPrefix(a.s, "-O"); ok && v != "" {
				read("git grep -O", v)
			} else if v, ok := strings.CutPrefix(a.s, "--open-files-in-pager="); ok {
				read("git grep -O", v)
			}
		}
	case "filter-branch":
		for i, a := range words {
			if strings.HasSuffix(a.s, "-filter") && strings.HasPrefix(a.s, "--") && i+1 < len(words) {
				read("git filter-branch", words[i+1].s)
			}
		}
	case "clone", "fetch", "pull", "push", "ls-remote", "archive":
		for _, a := range words {
			if v, ok := strings.CutPrefix(a.s, "ext::"); ok {
				read("git ext::", strings.NewReplacer("% ", " ", "%%", "%").Replace(v))
			}
		}
		if v, ok := optionValue(words, "-u", "--upload-pack", "--exec", "--receive-pack"); ok && strings.ContainsAny(v.s, " /") && verb != "push" {
			read("git --upload-pack", v.s)
		}
	}
}
