package decoy

import (
	"context"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"proctor/rules"
)

var fetchers = []string{"curl", "wget", "aria2c", "gh", "hub", "ssh", "scp", "rsync", "nc", "ncat", "telnet", "ftp", "http", "lynx", "w3m", "links", "openssl", "axel"}

func fetcher(program string) bool { return slices.Contains(fetchers, program) }

// replyNetwork answers a command that reaches for a host, as on a machine without a network.
func (m *Maker) replyNetwork(ctx context.Context, req Request, t *target) reply {
	host := firstHost(t)
	if r, ok := m.askNetwork(ctx, req, t); ok {
		return r
	}
	return templateNetwork(t, host)
}

func firstHost(t *target) string {
	if len(t.hosts) > 0 {
		return t.hosts[0]
	}
	for _, a := range t.cmd.Args {
		if u, err := url.Parse(a); err == nil && u.Hostname() != "" {
			return u.Hostname()
		}
	}
	return ""
}

// askNetwork runs the program against a name that no resolver knows (RFC 2606, .invalid).
func (m *Maker) askNetwork(ctx context.Context, req Request, t *target) (reply, bool) {
	if m.run == nil || !slices.Contains([]string{"curl", "wget", "git", "ssh"}, t.cmd.Program) || t.cmd.Opaque || t.cmd.Stdin != "" {
		return reply{}, false
	}
	if hasOption(t.cmd.Args, "Kxi", "config", "proxy", "resolve", "connect-to", "unix-socket", "input-file", "preproxy") && t.cmd.Program != "git" {
		return reply{}, false
	}
	back := map[string]string{}
	argv := []string{t.cmd.Program}
	for _, a := range t.cmd.Args {
		for _, h := range t.hosts {
			if net.ParseIP(h) != nil {
				return reply{}, false
			}
			if strings.Contains(a, h) {
				sib := invalid(m.scramble(strings.Repeat("a", len(h))))
				back[sib] = h
				a = strings.ReplaceAll(a, h, sib)
			}
		}
		if strings.Contains(a, "://") && !strings.Contains(a, ".invalid") {
			return reply{}, false // somewhere else as well: not to be run
		}
		argv = append(argv, a)
	}
	if len(back) == 0 {
		return reply{}, false
	}
	r, ok := m.ask(ctx, dirAt(&req.Event, t.index), argv, probeTimeout, back)
	r.family = famNetwork
	return r, ok && r.exit != 0
}

// invalid gives a name of the same length as s, where that leaves a label, under .invalid.
func invalid(s string) string {
	n := max(3, len(s)-len(".invalid"))
	return s[:min(n, len(s))] + ".invalid"
}

// meter is what curl prints on stderr before it gives up, where neither -s nor a terminal stops it.
const meter = "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n" +
	"                                 Dload  Upload   Total   Spent    Left  Speed\n" +
	"\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"

// templateNetwork words it as curl 7.88, wget 1.21, OpenSSH 9.2 and gh do.
func templateNetwork(t *target, host string) reply {
	args := t.cmd.Args
	ip := net.ParseIP(host) != nil
	switch t.cmd.Program {
	case "curl":
		silent := hasOption(args, "s", "silent")
		if silent && !hasOption(args, "S", "show-error") {
			return reply{family: famNetwork, exit: curlExit(ip)}
		}
		text := "curl: (6) Could not resolve host: " + host + "\n"
		if ip {
			text = "curl: (7) Failed to connect to " + host + " port " + portOf(args, host) + " after 0 ms: Couldn't connect to server\n"
		}
		if !silent {
			text = meter + text
		}
		return says(famNetwork, curlExit(ip), text)
	case "wget":
		if hasOption(args, "q", "quiet") {
			return reply{family: famNetwork, exit: 4}
		}
		return says(famNetwork, 4, "wget: unable to resolve host address ‘"+host+"’\n")
	case "ssh", "scp", "rsync", "sftp":
		return says(famNetwork, 255, "ssh: Could not resolve hostname "+host+": Temporary failure in name resolution\n")
	case "gh":
		return says(famNetwork, 1, "error connecting to "+host+"\ncheck your internet connection or https://githubstatus.com\n")
	case "nc", "ncat", "telnet":
		return says(famNetwork, 1, t.cmd.Program+": getaddrinfo for host \""+host+"\" port "+last(args)+": Temporary failure in name resolution\n")
	}
	if t.cmd.Program == "exec" || t.cmd.Program == "cat" || t.cmd.Program == "read" {
		return says(famNetwork, 1, "bash: "+host+": Temporary failure in name resolution\nbash: line 1: /dev/tcp/"+host+"/80: Invalid argument\n")
	}
	return says(famNetwork, 1, t.cmd.Program+": "+host+": Temporary failure in name resolution\n")
}

func curlExit(ip bool) int {
	if ip {
		return 7
	}
	return 6
}

func portOf(args []string, host string) string {
	for _, a := range args {
		u, err := url.Parse(a)
		if err != nil || u.Hostname() != host {
			continue
		}
		if u.Port() != "" {
			return u.Port()
		}
		if u.Scheme == "https" {
			return "443"
		}
	}
	return "80"
}

// replyGitRemote answers git verbs that reach for another repository.
func (m *Maker) replyGitRemote(ctx context.Context, req Request, t *target, verb string) reply {
	if verb == "remote" {
		return asItIs(famFilter) // configuration only
	}
	if r, ok := m.askNetwork(ctx, req, t); ok && len(t.hosts) > 0 {
		return r
	}
	addr := ""
	for _, a := range t.cmd.Args {
		if strings.Contains(a, "://") || strings.Contains(a, "@") && strings.Contains(a, ":") {
			addr = a
		}
	}
	into := ""
	if verb == "clone" && !hasOption(t.cmd.Args, "q", "quiet") {
		dir := last(t.cmd.Args)
		if dir == addr {
			dir = strings.TrimSuffix(path.Base(addr), ".git")
		}
		into = "Cloning into '" + dir + "'...\n"
	}
	if u, err := url.Parse(addr); err == nil && u.Host != "" {
		return says(famNetwork, 128, into+"fatal: unable to access '"+strings.TrimSuffix(addr, "/")+"/': Could not resolve host: "+u.Hostname()+"\n")
	}
	exit := 128
	if verb == "pull" {
		exit = 1
	}
	return says(famNetwork, exit, "fatal: '"+remoteName(t.cmd.Args, verb)+"' does not appear to be a git repository\n"+
		"fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n")
}

// remoteName gives the remote that a verb names, git's default where it names none.
func remoteName(args []string, verb string) string {
	i := slices.Index(args, verb)
	for _, a := range args[i+1:] {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return "origin"
}

var packagers = []string{"pip", "pip3", "uv", "npm", "yarn", "pnpm", "go", "cargo", "gem", "conda", "mamba", "mvn", "poetry", "pipx"}

func packager(program string) bool { return slices.Contains(packagers, program) }

// replyPackage answers a package manager that cannot find what it was asked for.
func (m *Maker) replyPackage(ctx context.Context, req Request, t *target) reply {
	pkgs := t.pkgs
	if len(pkgs) == 0 {
		for _, p := range req.Event.Packages {
			if p.Command == t.index {
				pkgs = append(pkgs, p)
			}
		}
	}
	if len(pkgs) == 0 {
		return templatePackage(t, rules.Package{Name: last(t.cmd.Args), Spec: last(t.cmd.Args)})
	}
	if r, ok := m.askPackage(ctx, req, t, pkgs); ok {
		return r
	}
	return templatePackage(t, pkgs[0])
}

// askPackage runs the package manager on a name that nobody has taken.
func (m *Maker) askPackage(ctx context.Context, req Request, t *target, pkgs []rules.Package) (reply, bool) {
	if m.run == nil || t.cmd.Opaque || !byModule(t.cmd) && !slices.Contains([]string{"pip", "pip3", "uv", "npm"}, t.cmd.Program) || hasOption(t.cmd.Args, "r", "requirement") {
		return reply{}, false
	}
	back := map[string]string{}
	argv := []string{t.cmd.Program}
	for _, a := range t.cmd.Args {
		for _, p := range pkgs {
			if p.Name != "" && strings.HasPrefix(strings.ToLower(a), strings.ToLower(p.Name)) {
				sib := m.scramble(strings.ToLower(p.Name))
				back[sib] = a[:len(p.Name)]
				a = sib + a[len(p.Name):]
			}
		}
		argv = append(argv, a)
	}
	if len(back) == 0 {
		return reply{}, false
	}
	r, ok := m.ask(ctx, dirAt(&req.Event, t.index), argv, packageTimeout, back)
	r.family = famPackage
	return r, ok && r.exit != 0
}

// templatePackage words it as pip 23, npm 9 and go 1.22 do; registries are not named.
func templatePackage(t *target, p rules.Package) reply {
	spec := p.Spec
	if spec == "" {
		spec = p.Name
	}
	switch t.cmd.Program {
	case "npm", "yarn", "pnpm":
		return says(famPackage, 1, "npm ERR! code EAI_AGAIN\nnpm ERR! syscall getaddrinfo\nnpm ERR! errno EAI_AGAIN\nnpm ERR! network This is a problem related to network connectivity.\n"+
			"npm ERR! network In most cases you are behind a proxy or have bad network settings.\n")
	case "go":
		return says(famPackage, 1, "go: "+spec+": module lookup disabled by GOPROXY=off\n")
	case "cargo":
		return says(famPackage, 101, "error: could not find `"+p.Name+"` in registry `crates-io` with version `*`\n")
	case "conda", "mamba":
		return says(famPackage, 1, "PackagesNotFoundError: The following packages are not available from current channels:\n\n  - "+spec+"\n")
	case "gem":
		return says(famPackage, 2, "ERROR:  Could not find a valid gem '"+p.Name+"' (>= 0) in any repository\n")
	case "uv":
		return says(famPackage, 1, "  × No solution found when resolving dependencies:\n  ╰─▶ Because "+p.Name+" was not found in the package registry and you require\n      "+spec+", we can conclude that your requirements are unsatisfiable.\n")
	}
	return says(famPackage, 1, "ERROR: Could not find a version that satisfies the requirement "+spec+" (from versions: none)\nERROR: No matching distribution found for "+spec+"\n")
}
