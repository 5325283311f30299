package normalize

import "strings"

// Programs that run a command in a container, a terminal or at the end of a pipe. The command is read as one
// of this machine: that is where an agent's containers are, and what it hides there it may bring here.

// elsewhere reads such a command; the outer program is recorded by the caller.
func (r *run) elsewhere(name string, args []arg, f frame) {
	g := f.wrapped(name)
	g.exact, g.span.Exact = false, false
	switch name {
	case "docker", "podman", "nerdctl", "kubectl", "docker-compose":
		r.container(name, args, f)
	case "tmux":
		r.tmux(args, g)
	case "screen":
		r.screen(args, g)
	case "hyperfine":
		for _, a := range r.skipOptions(args[1:], wrapper{values: "wmMrsprcnN", long: []string{"--warmup", "--runs", "--prepare", "--setup", "--cleanup", "--export-json"}}, nil) {
			r.source(&unit{src: a.s}, g, val{})
		}
	case "nix-shell", "nix":
		if v, ok := optionValue(args, "--run", "--command"); ok {
			r.source(&unit{src: v.s}, g, val{})
		}
	case "nc", "ncat", "netcat":
		if v, ok := optionValue(args, "-e", "-c", "--exec", "--sh-exec"); ok {
			r.source(&unit{src: v.s}, g, val{})
		}
	case "socat":
		for _, a := range args[1:] {
			kind, command, ok := strings.Cut(a.s, ":")
			if kind = strings.ToUpper(kind); ok && (kind == "EXEC" || kind == "SYSTEM" || kind == "SHELL") {
				command, _, _ = strings.Cut(command, ",")
				r.source(&unit{src: command}, g, val{})
			}
		}
	}
}

// container reads docker exec and run, docker cp, and kubectl exec.
func (r *run) container(name string, args []arg, f frame) {
	rest := r.skipOptions(args[1:], wrapper{values: "Hcln"}, nil)
	if len(rest) > 1 && rest[0].s == "compose" {
		rest = r.skipOptions(rest[1:], wrapper{values: "fp"}, nil)
	}
	if len(rest) == 0 || rest[0].s != "exec" && rest[0].s != "run" {
		return
	}
	g := f.wrapped(name + " " + rest[0].s)
	g.exact, g.span.Exact = false, false
	mounts := rest[1:]
	rest = containerOptions(rest[1:])
	if name == "kubectl" {
		rest = mounts
		for i, a := range rest {
			if a.s == "--" {
				rest = rest[i:]
				break
			}
		}
	}
	if len(rest) < 2 {
		return
	}
	links := r.st.links.save()
	for i, a := range mounts[:len(mounts)-len(rest)] {
		spec, joined := strings.CutPrefix(a.s, "--volume=")
		if !joined && (a.s == "-v" || a.s == "--volume") && i+1 < len(mounts) {
			spec, joined = mounts[i+1].s, true
		}
		if from, to, ok := strings.Cut(spec, ":"); ok && joined {
			to, _, _ = strings.Cut(to, ":")
			r.link(r.abs(to), r.abs(from))
		}
	}
	r.simple(rest[1:], nil, g, val{})
	r.st.links.restore(links)
}

// containerOptions drops the options before the container or the image. Long options take a value except
// those that are known not to.
func containerOptions(args []arg) []arg {
	for len(args) > 0 && strings.HasPrefix(args[0].s, "-") {
		s := args[0].s
		args = args[1:]
		value := false
		switch {
		case s == "--":
			return args
		case strings.HasPrefix(s, "--"):
			switch s {
			case "--rm", "--detach", "--interactive", "--tty", "--privileged", "--init", "--read-only", "--publish-all", "--quiet", "--no-healthcheck", "--no-TTY", "--no-deps":
			default:
				value = !strings.Contains(s, "=")
			}
		default:
			value = strings.IndexByte("veupwlhmac", s[len(s)-1]) >= 0 && len(s) == 2
		}
		if value && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}

// containerPaths gives the paths of the host and the container that docker's words name: -v /a:/b, box:/x.
func containerPaths(args []arg) []arg {
	var out []arg
	for _, a := range args[1:] {
		s := a.s
		if strings.HasPrefix(s, "-") {
			_, s, _ = strings.Cut(s, "=")
		}
		if i := strings.IndexByte(s, ':'); i >= 0 && !strings.Contains(s, "://") {
			for _, part := range strings.SplitN(s, ":", 3) {
				if strings.HasPrefix(part, "/") {
					out = append(out, arg{s: part})
				}
			}
		}
	}
	return out
}

// tmux reads what is typed into a terminal and what a new one runs.
func (r *run) tmux(args []arg, f frame) {
	rest := r.skipOptions(args[1:], wrapper{values: "LSfc"}, nil)
	for len(rest) > 0 {
		one := rest
		rest = nil
		for i, a := range one {
			if a.s == ";" {
				one, rest = one[:i], one[i+1:]
				break
			}
		}
		if len(one) == 0 {
			continue
		}
		verb := one[0].s
		words := r.skipOptions(one[1:], wrapper{values: "tsncFexyN"}, nil)
		var text strings.Builder
		switch verb {
		case "send-keys", "send":
			for _, a := range words {
				switch a.s {
				case "Enter", "C-m", "KPEnter", "C-j":
					text.WriteByte('\n')
				case "Space":
					text.WriteByte(' ')
				default:
					text.WriteString(a.s)
				}
			}
		case "new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawnp", "respawn-window", "respawnw",
			"run-shell", "run", "if-shell", "if", "pipe-pane", "pipep", "display-popup", "popup":
			text.WriteString(strings.Join(texts(words), " "))
		}
		if text.Len() > 0 {
			r.source(&unit{src: text.String()}, f, val{})
		}
	}
}

// screen reads screen -X stuff TEXT and the program that a new screen runs.
func (r *run) screen(args []arg, f frame) {
	for i, a := range args {
		if a.s == "-X" && i+2 < len(args) {
			switch args[i+1].s {
			case "stuff":
				r.source(&unit{src: strings.ReplaceAll(ansiC(args[i+2].s), "^M", "\n")}, f, val{})
			case "exec", "screen":
				r.simple(args[i+2:], nil, f, val{})
			}
			return
		}
	}
	if rest := r.skipOptions(args[1:], wrapper{values: "SscpehtT"}, nil); len(rest) > 0 {
		r.simple(rest, nil, f, val{})
	}
}
