package normalize

import (
	"strings"
)

// A wrapper runs another program: what is left of its words after its own options.
type wrapper struct {
	values   string // single-letter options that take a value, in the next word or the same
	long     []string
	operands int  // own operands before the program: timeout's duration
	assigns  bool // NAME=VALUE words before the program set its environment
	subverb  string
}

var wrappers = map[string]wrapper{
	"sudo":             {values: "ughpCrtTUDR", long: []string{"--user", "--group", "--host", "--prompt", "--chdir"}, assigns: true},
	"doas":             {values: "uC"},
	"env":              {values: "uC", long: []string{"--unset", "--chdir"}, assigns: true},
	"nice":             {values: "n"},
	"ionice":           {values: "cnp"},
	"timeout":          {values: "ks", long: []string{"--kill-after", "--signal"}, operands: 1},
	"nohup":            {},
	"setsid":           {},
	"stdbuf":           {values: "ioe"},
	"time":             {values: "fo"},
	"command":          {},
	"builtin":          {},
	"busybox":          {},
	"toybox":           {},
	"chroot":           {operands: 1},
	"unshare":          {values: "SGRw"},
	"strace":           {values: "eopsSuEIOXa"},
	"ltrace":           {values: "eopsuna"},
	"fakeroot":         {},
	"catchsegv":        {},
	"chrt":             {operands: 1},
	"taskset":          {operands: 1},
	"prlimit":          {},
	"setarch":          {operands: 1},
	"linux64":          {},
	"dbus-run-session": {},
	"xvfb-run":         {values: "ens"},
	"runuser":          {values: "ugG"},
	"setpriv":          {},
	"uv":               {subverb: "run", long: []string{"--with", "--python", "--project", "--directory"}, values: "p"},
	"poetry":           {subverb: "run"},
	"pipenv":           {subverb: "run"},
	"hatch":            {subverb: "run"},
	"pdm":              {subverb: "run"},
	"conda":            {subverb: "run", values: "np"},
	"micromamba":       {subverb: "run", values: "np"},
	"coverage":         {subverb: "run"},
	"nsenter":          {values: "tSG", long: []string{"--target"}},
	"systemd-run":      {values: "pEHMu", long: []string{"--unit", "--property", "--setenv", "--slice", "--uid", "--gid"}},
	"entr":             {},
	"proxychains":      {values: "f"},
	"proxychains4":     {values: "f"},
	"torsocks":         {},
	"unbuffer":         {},
	"rlwrap":           {},
	"gosu":             {operands: 1},
	"su-exec":          {operands: 1},
	"faketime":         {operands: 1},
	"valgrind":         {},
	"tini":             {},
	"dumb-init":        {},
	"bundle":           {subverb: "exec"},
	"proot":            {values: "rbwS"},

	"ld-linux-x86-64.so.2": {long: []string{"--library-path", "--preload"}},
}

// wrapper reads a command that runs another one, and reports whether it did.
func (r *run) wrapper(args []arg, env map[string]string, f frame, in val) (val, bool) {
	name := base(args[0].s)
	switch name {
	case "xargs", "parallel":
		return r.xargs(name, args, env, f, in)
	case "watch":
		rest := r.skipOptions(args[1:], wrapper{values: "nd"}, nil)
		if len(rest) > 0 {
			return r.nested(args, strings.Join(texts(rest), " "), anyOpaque(rest), "watch", env, f, in), true
		}
	case "ssh":
		return r.ssh(args, env, f, in)
	case "su", "script", "flock", "runuser":
		cmd, ok := optionValue(args, "-c", "--command")
		for i, a := range args { // script -qc
			if !ok && name == "script" && i+1 < len(args) && len(a.s) > 2 && a.s[0] == '-' && a.s[1] != '-' && strings.HasSuffix(a.s, "c") {
				cmd, ok = args[i+1], true
			}
		}
		if ok {
			r.record(args, env, f, in)
			return r.nested(args, cmd.s, false, name+" -c", env, f, in), true
		}
		if name == "su" || name == "script" {
			return val{}, false
		}
		if name == "flock" {
			rest := r.skipOptions(args[1:], wrapper{values: "wE", operands: 1}, nil)
			if len(rest) > 0 {
				return r.simple(rest, env, f.wrapped(name), in), true
			}
		}
	case "crontab", "at", "batch":
		r.scheduled(args, f, in)
		return val{}, false
	case "docker", "podman", "nerdctl", "docker-compose", "kubectl", "tmux", "screen", "hyperfine", "nix-shell", "nix", "nc", "ncat", "netcat", "socat":
		r.elsewhere(name, args, f)
		return val{}, false
	case "perf":
		if len(args) > 2 && (args[1].s == "stat" || args[1].s == "record" || args[1].s == "trace") {
			if rest := r.skipOptions(args[2:], wrapper{values: "eopCtIFcr"}, nil); len(rest) > 0 {
				return r.simple(rest, env, f.wrapped(name), in), true
			}
		}
	}
	w, ok := wrappers[name]
	if !ok {
		return val{}, false
	}
	rest := args[1:]
	if w.subverb != "" {
		if len(rest) == 0 || rest[0].s != w.subverb {
			return val{}, false
		}
		rest = rest[1:]
	}
	own := map[string]string{}
	for k, v := range env {
		own[k] = v
	}
	if name == "env" {
		if s, ok := optionValue(args, "-S", "--split-string"); ok {
			return r.nested(args, s.s, s.opaque, "env", env, f, in), true
		}
		r.envChdir(rest)
	}
	rest = r.skipOptions(rest, w, own)
	if len(rest) == 0 || rest[0].s == "" {
		return val{}, false
	}
	if len(own) == 0 {
		own = nil
	}
	switch name {
	case "uv":
		if i := r.record(args, env, f, in); i >= 0 {
			r.packageFacts(i, args, in)
		}
	case "chroot", "unshare", "nsenter", "systemd-run", "proot", "proxychains", "proxychains4", "torsocks", "gosu":
		r.record(args, env, f, in)
	}
	if name == "coverage" {
		rest = append([]arg{{s: "python"}}, rest...)
	}
	return r.simple(rest, own, f.wrapped(name), in), true
}

func (r *run) envChdir(args []arg) {
	if d, ok := optionValue(args, "-C", "--chdir"); ok && !d.opaque {
		r.st.cwd = r.abs(d.s)
	}
}

// skipOptions drops a wrapper's options, operands and assignments.
func (r *run) skipOptions(args []arg, w wrapper, env map[string]string) []arg {
	operands := w.operands
	for len(args) > 0 {
		a := args[0].s
		switch {
		case a == "--":
			args = args[1:]
			for operands > 0 && len(args) > 0 {
				args, operands = args[1:], operands-1
			}
			return args
		case strings.HasPrefix(a, "--"):
			args = args[1:]
			if takesValue(a, w.long) && len(args) > 0 {
				args = args[1:]
			}
		case len(a) > 1 && a[0] == '-':
			args = args[1:]
			if len(a) == 2 && strings.IndexByte(w.values, a[1]) >= 0 && len(args) > 0 {
				args = args[1:]
			}
		case w.assigns && isAssignment(a):
			name, value, _ := strings.Cut(a, "=")
			if env != nil {
				env[name] = value
			}
			args = args[1:]
		case operands > 0:
			args, operands = args[1:], operands-1
		default:
			return args
		}
	}
	return nil
}

func takesValue(opt string, long []string) bool {
	if strings.Contains(opt, "=") {
		return false
	}
	for _, l := range long {
		if l == opt {
			return true
		}
	}
	return false
}

func isAssignment(s string) bool {
	i := strings.IndexByte(s, '=')
	if i <= 0 || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for j := 0; j < i; j++ {
		if !isWordByte(s[j]) {
			return false
		}
	}
	return true
}

// optionValue gives the value of an option, given apart (-c x) or joined (--command=x).
func optionValue(args []arg, names ...string) (arg, bool) {
	for i, a := range args {
		for _, n := range names {
			if a.s == n && i+1 < len(args) {
				return args[i+1], true
			}
			if v, ok := strings.CutPrefix(a.s, n+"="); ok && strings.HasPrefix(n, "--") {
				return arg{s: v, raw: a.raw, opaque: a.opaque}, true
			}
		}
	}
	return arg{}, false
}

// findExec reads the commands of find -exec and fd -x; {} stands for what the walk meets.
func (r *run) findExec(args []arg, f frame) {
	var roots []arg
	for _, a := range args[1:] {
		if strings.HasPrefix(a.s, "-") || a.s == "(" || a.s == "!" {
			break
		}
		roots = append(roots, a)
	}
	for i := 1; i < len(args); i++ {
		switch args[i].s {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec":
		default:
			continue
		}
		var cmd []arg
		for i++; i < len(args) && args[i].s != ";" && args[i].s != "+"; i++ {
			a := args[i]
			if a.s == "{}" && len(roots) > 0 {
				a = roots[0]
				a.s = strings.TrimRight(a.s, "/") + "/{}"
				a.opaque = true
			}
			cmd = append(cmd, a)
		}
		if len(cmd) > 0 {
			r.simple(cmd, nil, f.wrapped("find -exec"), val{})
		}
	}
}

// ssh records the connection and, where it leads back to this machine, reads its command too.
func (r *run) ssh(args []arg, env map[string]string, f frame, in val) (val, bool) {
	w := wrapper{values: sshValues}
	rest := r.skipOptions(args[1:], w, nil)
	if len(rest) < 2 {
		return val{}, false
	}
	host := rest[0].s
	if _, h, ok := strings.Cut(host, "@"); ok {
		host = h
	}
	r.record(args, env, f, in)
	if localHost(host) {
		r.nested(args, strings.Join(texts(rest[1:]), " "), false, "ssh", env, f, in)
	}
	return val{}, true
}

// scheduled reads what is handed to cron or at: it runs later, with nobody watching.
func (r *run) scheduled(args []arg, f frame, in val) {
	text := in
	if last := args[len(args)-1].s; text.s == "" && args[0].s == "crontab" && !strings.HasPrefix(last, "-") {
		text = r.contentOf(r.abs(last))
	}
	if v, ok := optionValue(args, "-f"); ok && args[0].s != "crontab" {
		text = r.contentOf(r.abs(v.s))
	}
	for i, line := range strings.Split(text.s, "\n") {
		line = strings.TrimSpace(line)
		if i >= maxLoop || line == "" || line[0] == '#' {
			continue
		}
		if args[0].s == "crontab" {
			if line[0] == '@' {
				_, line, _ = strings.Cut(line, " ")
			} else if fs := strings.Fields(line); len(fs) > 5 {
				line = strings.Join(fs[5:], " ")
			}
		}
		g := f.wrapped(args[0].s)
		g.exact, g.span.Exact = false, false
		r.source(&unit{src: line}, g, val{})
	}
}
