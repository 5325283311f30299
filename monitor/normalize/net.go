package normalize

import (
	"regexp"
	"strings"

	"proctor/rules"
)

// netPrograms are programs that reach for the network with what their words name.
func netProgram(name string) bool {
	switch name {
	case "curl", "wget", "wget2", "aria2c", "axel", "http", "https", "xh", "lynx", "w3m", "links", "elinks", "lwp-request", "GET",
		"gh", "hub", "glab", "git", "svn", "hg", "bzr", "scp", "rsync", "ssh", "sftp", "ftp", "lftp", "tftp", "ncftp", "nc", "ncat", "netcat", "telnet",
		"socat", "openssl", "pip", "pip3", "pipx", "uv", "npm", "npx", "yarn", "pnpm", "go", "cargo", "gem", "conda", "mamba",
		"docker", "podman", "skopeo", "gdown", "huggingface-cli", "hf", "aws", "gsutil", "rclone", "youtube-dl", "yt-dlp", "dig", "nslookup", "host",
		"ping", "ping6", "getent", "drill", "traceroute", "tracepath", "mtr", "resolvectl":
		return true
	}
	return false
}

var urlPattern = regexp.MustCompile(`(?i)\b(?:https?|ftp|git|ssh|wss?|svn|rsync)(?:\+ssh)?://[^\s'"<>\\` + "`" + `|;)\]}]+`)

// netFacts fills in what a command reaches for.
func (r *run) netFacts(cmd *rules.Command, args []arg) {
	name := cmd.Program
	if module := strings.HasPrefix(name, "python") && len(args) > 2 && args[1].s == "-m"; !netProgram(name) && !module {
		return
	}
	var n rules.Net
	for _, a := range args[1:] {
		if strings.Contains(a.s, "://") {
			for _, u := range urlPattern.FindAllString(a.s, 16) {
				r.addURL(&n, u)
			}
		}
	}
	switch name {
	case "curl", "wget", "wget2", "aria2c", "http", "https", "xh", "lynx", "w3m", "axel":
		r.fetcher(&n, args, cmd.Stdin)
	case "gh", "hub", "glab":
		r.forge(&n, name, args)
	case "ftp", "lftp", "tftp", "ncftp":
		for _, a := range operands(name, args[1:]) {
			if strings.Contains(a.s, ".") && hostLike(hostOfTarget(a.s)) {
				r.addHost(&n, hostOfTarget(a.s))
			}
		}
	case "ssh", "sftp":
		if rest := r.skipOptions(args[1:], wrapper{values: sshValues}, nil); len(rest) > 0 {
			r.addHost(&n, hostOfTarget(rest[0].s))
			for _, a := range rest[1:] { // the path that is asked for there
				if strings.Contains(a.s, "/") && len(n.Hosts) > 0 && !strings.Contains(a.s, "://") {
					n.URLs = appendNew(n.URLs, "ssh://"+n.Hosts[0]+"/"+strings.TrimPrefix(a.s, "/"))
				}
			}
		}
	case "scp", "rsync":
		for _, a := range operands(name, args[1:]) {
			if strings.Contains(a.s, ":") && !strings.Contains(a.s, "://") {
				r.addHost(&n, hostOfTarget(a.s))
			}
		}
	case "nc", "ncat", "netcat", "telnet", "socat", "openssl":
		r.rawSocket(&n, name, args, cmd.Stdin)
	case "dig", "nslookup", "host", "ping", "ping6", "getent", "drill", "traceroute", "tracepath", "mtr", "resolvectl":
		for _, a := range args[1:] { // a name that is asked for reaches its servers, whatever answers
			h := strings.TrimPrefix(a.s, "@")
			if i := strings.LastIndexAny(h, ")}`"); i >= 0 { // what a substitution gives is asked below the name that follows it
				h = strings.TrimPrefix(h[i+1:], ".")
			}
			if strings.Contains(h, ".") && hostLike(h) {
				r.addHost(&n, h)
			}
		}
	case "docker", "podman", "skopeo":
		for _, a := range args[1:] {
			if host, rest, ok := strings.Cut(strings.TrimPrefix(a.s, "docker://"), "/"); ok && strings.Contains(host, ".") && validHost(host) && !strings.HasPrefix(host, ".") && strings.Contains(rest, "/") {
				r.addURL(&n, "https://"+host+"/"+rest)
			}
		}
	case "git", "hg", "svn":
		for _, a := range args[1:] {
			if h := scpHost(a.s); h != "" {
				r.addHost(&n, h)
				r.addURL(&n, "ssh://"+strings.Replace(a.s, ":", "/", 1))
			}
		}
	}
	if _, unix := optionValue(args, "--unix-socket", "--abstract-unix-socket"); unix {
		n = rules.Net{} // the URL's host is a placeholder
	}
	r.judgeNet(&n)
	cmd.Net = n
}

// sshValues are ssh's options that take a value.
const sshValues = "bcDEeFIiJLlmOopQRSWw"

var scpLike = regexp.MustCompile(`^(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)+):[^/:][^:]*$`)

func scpHost(s string) string {
	if m := scpLike.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

func hostOfTarget(s string) string {
	if _, h, ok := strings.Cut(s, "@"); ok {
		s = h
	}
	h, _, _ := strings.Cut(s, ":")
	return h
}

func (r *run) addURL(n *rules.Net, raw string) {
	raw = strings.TrimRight(raw, ".,")
	n.URLs = appendNew(n.URLs, clip(raw, 2048))
	rest := raw
	if i := strings.Index(rest, "://"); i >= 0 {
		rest = rest[i+3:]
	}
	host := rest
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	r.addHost(n, host)
	// A second URL inside a first: web archives, proxies, mirrors.
	if i := strings.Index(rest, "://"); i >= 0 {
		j := strings.LastIndexByte(rest[:i], '/')
		if inner := rest[j+1:]; j > 0 {
			n.URLs = appendNew(n.URLs, clip(inner, 2048))
		}
	}
}

// addHost adds a host without its port; what cannot be a host name is left out.
func (r *run) addHost(n *rules.Net, host string) {
	host = strings.ToLower(strings.TrimSpace(host))
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host[1:], "]")
	} else if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.Count(host, ":") == 1 {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	if validHost(host) {
		n.Hosts = appendNew(n.Hosts, host)
	}
}

func validHost(h string) bool {
	if h == "" || len(h) > 253 || h[0] == '.' || strings.Contains(h, "..") {
		return false
	}
	for i := 0; i < len(h); i++ {
		if c := h[i]; !isWordByte(c) && c != '.' && c != '-' && c != ':' {
			return false
		}
	}
	return true
}

// fetcher reads the words of curl, wget and the like: bare hosts, a Host header, a config file.
func (r *run) fetcher(n *rules.Net, args []arg, stdin string) {
	var headers []string
	defer func() {
		for _, h := range headers { // last: whether a Host header counts depends on the URLs
			r.hostHeader(n, h)
		}
	}()
	for i := 1; i < len(args); i++ {
		s := args[i].s
		next := ""
		if i+1 < len(args) {
			next = args[i+1].s
		}
		switch {
		case s == "-H" || s == "--header":
			headers = append(headers, next)
			i++
		case strings.HasPrefix(s, "-H") || strings.HasPrefix(s, "--header="):
			headers = append(headers, strings.TrimPrefix(strings.TrimPrefix(s, "--header="), "-H"))
		case s == "--config" || len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.HasSuffix(s, "K"),
			s == "-i" && args[0].s != "curl", s == "--input-file":
			text := stdin
			if next != "-" {
				text = r.contentOf(r.abs(next)).s
			}
			for _, u := range urlPattern.FindAllString(text, 16) {
				r.addURL(n, u)
			}
			i++
		case s == "--resolve" || s == "--connect-to":
			h, _, _ := strings.Cut(next, ":")
			r.addHost(n, h)
			i++
		case s == "--url":
			r.bareURL(n, next)
			i++
		case strings.HasPrefix(s, "--url="):
			r.bareURL(n, s[6:])
		case fetchValue(s):
			i++
		case strings.HasPrefix(s, "-"):
		default:
			r.bareURL(n, s)
		}
	}
}

// fetchValue are options of curl and wget whose value is neither a URL nor a host.
func fetchValue(s string) bool {
	switch s {
	case "-o", "-O", "-d", "-X", "-u", "-A", "-e", "-b", "-c", "-F", "-w", "-m", "-T", "-x", "-r", "-E", "--output", "--data", "--request",
		"--user", "--user-agent", "--max-time", "--unix-socket", "--cacert", "--cert", "--key", "--write-out", "--retry", "--proxy", "-P", "-t", "-T0":
		return s != "-O" // curl's -O takes none; wget's is followed by a file name, never by a URL alone
	}
	return false
}

func (r *run) bareURL(n *rules.Net, s string) {
	if strings.Contains(s, "://") {
		if !strings.HasPrefix(s, "file://") {
			r.addURL(n, s)
		}
		return
	}
	host := s
	if i := strings.IndexAny(host, "/?"); i >= 0 {
		host = host[:i]
	}
	h, _, _ := strings.Cut(host, ":")
	if strings.Contains(h, ".") && !strings.HasPrefix(h, ".") || h == "localhost" {
		if strings.Contains(s, "/") || h == "localhost" || strings.Count(h, ".") > 0 && !fileLike(h) {
			r.addURL(n, "http://"+s)
		}
	}
}

func fileLike(s string) bool {
	for _, ext := range [...]string{".txt", ".html", ".json", ".py", ".gz", ".zip", ".out", ".tgz", ".diff", ".patch", ".md", ".js", ".css", ".xml", ".log", ".c", ".go", ".rs"} {
		if strings.HasSuffix(s, ext) {
			return true
		}
	}
	return false
}

func (r *run) hostHeader(n *rules.Net, header string) {
	name, value, ok := strings.Cut(header, ":")
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "host") {
		return
	}
	for _, h := range n.Hosts { // sent to this machine alone, it only picks a virtual host
		if !localHost(h) {
			r.addHost(n, value)
			return
		}
	}
}

// forge reads gh, hub and glab: their host, and the repository that they ask about.
func (r *run) forge(n *rules.Net, name string, args []arg) {
	host := "github.com"
	if name == "glab" {
		host = "gitlab.com"
	}
	if len(args) < 2 || args[1].s == "--version" || args[1].s == "--help" || args[1].s == "auth" || args[1].s == "config" {
		return
	}
	r.addHost(n, host)
	repo := ""
	if a, ok := optionValue(args, "-R", "--repo"); ok {
		repo = a.s
	}
	for _, a := range args[2:] {
		s := strings.TrimPrefix(strings.TrimPrefix(a.s, "/"), "repos/")
		if repo == "" && !strings.HasPrefix(s, "-") && strings.Count(s, "/") >= 1 && !strings.Contains(s, "://") {
			repo = s
		}
	}
	if repo != "" {
		n.URLs = appendNew(n.URLs, "https://"+host+"/"+repo)
	}
}

// rawSocket reads nc and the like: a host, and a request typed into it.
func (r *run) rawSocket(n *rules.Net, name string, args []arg, stdin string) {
	for _, a := range args[1:] {
		s := a.s
		switch {
		case name == "openssl" || name == "socat":
			for _, prefix := range [...]string{"TCP:", "TCP4:", "OPENSSL:", "SSL:", "tcp:", "openssl:", "tcp-connect:", "TCP-CONNECT:"} {
				s = strings.TrimPrefix(s, prefix)
			}
			if (strings.Contains(s, ":") || s != a.s) && strings.Contains(s, ".") {
				r.addHost(n, strings.Split(s, ",")[0])
			}
		case !strings.HasPrefix(s, "-") && (strings.Contains(s, ".") || s == "localhost"):
			r.addHost(n, s)
		}
	}
	for _, line := range strings.Split(clip(stdin, 4096), "\n") {
		r.hostHeader(n, strings.TrimRight(line, "\r"))
	}
}
