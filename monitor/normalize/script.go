package normalize

import (
	"regexp"
	"strconv"
	"strings"

	"proctor/rules"
)

// script reads code of another language that is about to run or was written to a file: what its
// constants name, what it fetches, writes and runs.
func (r *run) script(p, lang, src string, f frame) {
	if src == "" || r.depth >= maxDepth || !r.spend() {
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	src = clip(src, maxContent)
	fo := &folder{toks: lex(src, lang), lang: lang, cwd: r.st.cwd}
	lits := fo.literals()
	lits = append(lits, laced(fo.toks, lits)...)
	s := rules.Script{Path: p, Lang: lang, Cwd: r.st.cwd, Content: rewrite(src, lits)}
	a := analysis{r: r, f: fo, s: &s, frame: f, lits: lits, src: src}
	a.paths()
	a.net()
	a.written = len(f.via) > 0 && strings.HasPrefix(f.via[len(f.via)-1], "written:")
	at := r.addScript(s, f)
	a.calls()
	a.shells()
	a.decoded()
	if at >= 0 {
		r.ev.Scripts[at].Writes = s.Writes
	}
}

// laced gives texts that hide in a script's constants without being computed in a way that is
// folded: runs of character codes, and literals that are base64, hex or backwards for a path, a
// URL or a command.
func laced(toks []token, lits []literal) []literal {
	var out []literal
	add := func(s string, at literal) {
		if len(out) < 32 && tellTale(s) {
			out = append(out, literal{value: s, tok: at.tok, next: at.next, start: at.start, end: at.end})
		}
	}
	for _, l := range lits {
		if len(l.value) < 6 || len(l.value) > 4096 || strings.ContainsAny(l.value, " \n") {
			continue
		}
		if b, ok := unbase64(l.value); ok && len(l.value) >= 8 {
			add(string(b), l)
		}
		if c, ok := decodeText(l.value, "hex"); ok {
			add(c.s, l)
		}
		add(reverse(l.value), l)
	}
	var run []byte
	for i, t := range toks {
		n, err := strconv.ParseUint(t.text, 0, 8)
		switch {
		case t.kind == tokNumber && err == nil && n >= 32 && n < 127:
			run = append(run, byte(n))
			continue
		case t.kind == tokPunct && t.text == "," && len(run) > 0:
			continue
		}
		if len(run) >= 6 {
			add(string(run), literal{tok: i, next: i, start: t.start, end: t.start})
		}
		run = run[:0]
	}
	return out
}

// tellTale tells whether decoded text is something to act on, rather than bytes that happened to
// decode.
func tellTale(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 32 && s[i] != '\n' && s[i] != '\t' || s[i] > 126 {
			return false
		}
	}
	return len(s) > 3 && s[0] == '/' && s[1] != '/' || strings.Contains(s, "://") || strings.HasPrefix(s, "git ") || strings.HasPrefix(s, "cat ")
}

// addScript adds a script and gives its index; -1 where there is no room.
func (r *run) addScript(s rules.Script, f frame) int {
	if len(r.ev.Scripts) >= 64 {
		return -1
	}
	s.Via = f.via
	r.ev.Scripts = append(r.ev.Scripts, s)
	return len(r.ev.Scripts) - 1
}

// analysis reads one script.
type analysis struct {
	r       *run
	f       *folder
	s       *rules.Script
	frame   frame
	lits    []literal
	src     string
	written bool // the script is only written: what it would change has not changed
}

// paths finds the paths among the constants.
func (a *analysis) paths() {
	walks := a.names("walk", "rglob", "Walk", "WalkDir", "scandir", "find", "glob", "Glob", "iglob", "readdirSync", "listdir", "iterdir")
	for _, l := range a.lits {
		v := strings.TrimPrefix(l.value, "file://")
		if v == "" || len(v) > 1024 || strings.ContainsAny(v, "\n\x00") || strings.Contains(v, "://") {
			continue
		}
		abs := a.r.abs(v)
		switch {
		case strings.ContainsAny(v, "*?[") && strings.Contains(v, "/") && strings.IndexByte(v, ' ') < 0:
			a.s.Paths = appendNew(a.s.Paths, plainDotGit(abs))
			a.r.globHidden(&a.s.Hidden, &a.s.Covers, abs)
			if strings.Contains(v, "**") {
				a.covers(strings.SplitN(abs, "/**", 2)[0])
			}
		case v[0] == '/' || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") || looksLikePath(v) && strings.ContainsAny(v, "/."):
			if strings.HasPrefix(v, "~/") {
				abs = a.r.home() + v[1:]
			}
			a.add(abs)
			if walks && v[0] == '/' {
				a.covers(abs)
			}
		}
	}
}

func (a *analysis) add(abs string) {
	a.s.Paths = appendNew(a.s.Paths, abs)
	if q := a.r.follow(abs); q != abs {
		a.s.Paths = appendNew(a.s.Paths, q)
	}
	if a.r.hidden(abs) {
		a.s.Hidden = appendNew(a.s.Hidden, abs)
	}
	if a.r.isCopy(abs) {
		a.s.Copies = appendNew(a.s.Copies, abs)
	}
}

func (a *analysis) covers(root string) {
	if root == "" {
		root = "/"
	}
	for _, h := range a.r.hiddenRoots() {
		if h != root && under(h, root) {
			a.s.Covers = appendNew(a.s.Covers, h)
		}
	}
}

// names tells whether the script has one of these names outside strings and comments.
func (a *analysis) names(want ...string) bool {
	for _, t := range a.f.toks {
		// Modules of Node, Ruby and Go are named in strings: require("https"), "net/http".
		module := t.kind == tokString && len(t.text) < 24 && (a.s.Lang == "node" || a.s.Lang == "ruby")
		if t.kind != tokName && !module {
			continue
		}
		for _, w := range want {
			if t.text == w || module && t.text == "node:"+w {
				return true
			}
		}
	}
	return false
}

// netNames are names that scripts reach the network by.
var netNames = []string{
	"urllib", "urlopen", "urlretrieve", "requests", "httpx", "aiohttp", "HTTPConnection", "HTTPSConnection", "socket", "create_connection", "pycurl", "urllib3", "ftplib", "paramiko", "websocket",
	"fetch", "XMLHttpRequest", "got", "https", "http", "net", "HTTP", "URI", "LWP", "Net", "open_uri", "Faraday", "TCPSocket", "open-uri", "axios", "node-fetch", "undici",
	"curl_exec", "curl_init", "file_get_contents", "fsockopen", "reqwest", "ureq", "TcpStream", "HttpClient", "URL", "Dial", "Get",
	"load_dataset", "hf_hub_download", "snapshot_download", "clone_from", "wget", "download_file", "httplib2",
}

func (a *analysis) net() {
	if a.s.Lang == "awk" {
		for _, m := range awkNet.FindAllStringSubmatch(a.src, 8) {
			a.r.addHost(&a.s.Net, m[1])
		}
		for _, l := range a.lits {
			if m := awkNet.FindStringSubmatch(l.value); m != nil {
				a.s.Net.URLs = appendNew(a.s.Net.URLs, "http://"+m[1]+requestPath(a.lits))
			}
		}
		a.r.judgeNet(&a.s.Net)
		return
	}
	if !a.names(netNames...) {
		return
	}
	request := requestPath(a.lits)
	for i, l := range a.lits {
		if strings.Contains(l.value, "://") && len(l.value) < 4096 && !docstring(a.f, l) {
			for _, u := range urlPattern.FindAllString(l.value, 16) {
				a.r.addURL(&a.s.Net, u)
			}
			continue
		}
		if hostLike(l.value) && a.hostArgument(l) {
			a.r.addHost(&a.s.Net, l.value)
			if next := a.afterRequest(i); next != "" {
				request = next
			}
			if request != "" {
				a.s.Net.URLs = appendNew(a.s.Net.URLs, "http://"+l.value+request)
			}
		}
	}
	a.r.judgeNet(&a.s.Net)
}

var awkNet = regexp.MustCompile(`/inet[46]?/(?:tcp|udp)/[^/]*/([^/"']+)/\w+`)

// docstring tells whether a literal stands alone as a statement.
func docstring(f *folder, l literal) bool {
	prev, next := f.at(l.tok-1), f.at(l.next)
	alone := l.tok == 0 || prev.kind == tokPunct && prev.text == ":" || prev.kind != tokPunct && prev.end < l.start && prev.kind != tokName
	return f.lang == "python" && alone && (next.kind != tokPunct || l.next >= len(f.toks)) && strings.Contains(l.value, "\n")
}

var hostName = regexp.MustCompile(`^(?:[a-zA-Z0-9_-]+\.)+[a-zA-Z]{2,}(?::\d+)?$|^\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?$`)

func hostLike(s string) bool { return len(s) < 254 && (hostName.MatchString(s) || s == "localhost") }

// hostArgument tells whether a literal is handed to something that connects.
func (a *analysis) hostArgument(l literal) bool {
	for i := l.tok - 1; i >= 0 && i > l.tok-12; i-- {
		t := a.f.at(i)
		if t.kind != tokName {
			continue
		}
		switch t.text {
		case "HTTPSConnection", "HTTPConnection", "create_connection", "connect", "connect_ex", "host", "hostname", "createConnection", "Dial",
			"TCPSocket", "new", "TcpStream", "FTP", "Socket", "fsockopen", "open", "start", "get", "request", "gethostbyname", "getaddrinfo", "HTTP", "PeerAddr":
			return true
		}
	}
	return false
}

// requestPath gives the path of a request typed by hand: "GET /x HTTP/1.0".
func requestPath(lits []literal) string {
	for _, l := range lits {
		if m := requestLine.FindStringSubmatch(l.value); m != nil {
			return m[1]
		}
	}
	return ""
}

var requestLine = regexp.MustCompile(`^(?:GET|POST|HEAD)\s+(/\S*)`)

// afterRequest gives the path of conn.request("GET", "/x").
func (a *analysis) afterRequest(i int) string {
	for j := i + 1; j < len(a.lits)-1 && j < i+8; j++ {
		if m := a.lits[j].value; (m == "GET" || m == "POST") && strings.HasPrefix(a.lits[j+1].value, "/") {
			return a.lits[j+1].value
		}
	}
	return ""
}

// callArgs are the arguments of a call; one that is not constant is opaque.
type callArg struct {
	c     constant
	known bool
	src   string
}

// argsAt reads the arguments from the bracket at token i.
func (a *analysis) argsAt(i int) ([]callArg, int) {
	var out []callArg
	for j := i + 1; j < len(a.f.toks) && len(out) < 64; {
		if a.f.is(j, ")") || a.f.is(j, "]") {
			return out, j + 1
		}
		start := a.f.at(j).start
		if a.f.at(j).kind == tokName && a.f.is(j+1, "=") && !a.f.is(j+2, "=") {
			j += 2 // a keyword
		}
		if a.f.is(j, "[") {
			elems, k := a.argsAt(j)
			c := constant{lists: true}
			for _, e := range elems {
				if !e.known {
					e.c = text("<" + clip(e.src, 40) + ">")
				}
				c.list = append(c.list, e.c)
			}
			out = append(out, callArg{c: c, known: true})
			j = k
		} else if c, k, ok := a.f.expr(j); ok && (a.f.is(k, ",") || a.f.is(k, ")") || a.f.is(k, "]")) {
			out = append(out, callArg{c: c, known: true})
			j = k
		} else {
			k := a.skip(j)
			out = append(out, callArg{src: a.src[min(start, len(a.src)):min(max(start, a.f.at(k-1).end), len(a.src))]})
			j = k
		}
		if a.f.is(j, ",") {
			j++
		} else if !a.f.is(j, ")") && !a.f.is(j, "]") {
			j = a.skip(j)
			if a.f.is(j, ",") {
				j++
			}
		}
	}
	return out, i + 1
}

// skip gives the next comma or closing bracket at this level.
func (a *analysis) skip(i int) int {
	depth := 0
	for ; i < len(a.f.toks); i++ {
		t := a.f.toks[i]
		if t.kind != tokPunct {
			continue
		}
		switch t.text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth == 0 {
				return i
			}
			depth--
		case ",":
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// calls reads the calls that run commands, run code or change files.
func (a *analysis) calls() {
	for i := 0; i < len(a.f.toks); i++ {
		t := a.f.toks[i]
		if t.kind != tokName {
			continue
		}
		name, open := t.text, i+1
		if name == "getattr" && a.f.is(open, "(") { // getattr(os, "system")("...")
			args, next := a.argsAt(open)
			if len(args) > 1 && args[1].known {
				name, open = args[1].c.s, next
			}
		}
		if a.f.is(open, "(") && runnable(name) {
			args, _ := a.argsAt(open)
			a.call(name, i, args)
			continue
		}
		// Perl, Ruby and PHP call without brackets: system "git log".
		if (name == "system" || name == "exec" || name == "unlink") && a.f.at(open).kind == tokString {
			if c, _, ok := a.f.expr(open); ok {
				a.call(name, i, []callArg{{c: c, known: true}})
			}
		}
	}
}

func runnable(name string) bool {
	return execCall(name) || fileCall(name) || name == "eval" || name == "compile" || name == "runpy" || name == "Function"
}

func execCall(name string) bool {
	switch name {
	case "system", "popen", "Popen", "run", "call", "check_output", "check_call", "getoutput", "getstatusoutput", "execSync", "exec", "execFile", "execFileSync",
		"spawn", "spawnSync", "Command", "CommandContext", "shell_exec", "passthru", "proc_open", "capture2", "capture3", "capture2e", "execv", "execvp", "execl", "execlp", "create_subprocess_shell", "create_subprocess_exec", "os_system", "pty_spawn", "new":
		return true
	}
	return false
}

func (a *analysis) call(name string, at int, args []callArg) {
	if name == "new" && !(at > 2 && a.f.at(at-3).text == "Command") {
		return
	}
	switch {
	case fileCall(name):
		a.fileCall(name, at, args)
		return
	case len(args) == 0:
		return
	case name == "eval" || name == "exec" && (a.s.Lang == "python" || a.s.Lang == "ruby"), name == "compile", name == "Function":
		if args[0].known && !args[0].c.lists && !args[0].c.num && len(args[0].c.s) > 8 {
			a.r.script("", a.s.Lang, args[0].c.s, a.frame.wrapped("eval"))
		}
		if a.s.Lang != "ruby" {
			return
		}
	}
	first := args[0]
	via := a.frame.wrapped(a.s.Lang)
	via.exact, via.span.Exact = false, false
	switch {
	case !first.known:
		return
	case first.c.lists && name != "Command":
		a.argv(first.c.list, via)
	case name == "Command" || name == "new" || name == "CommandContext" || strings.HasPrefix(name, "execv") || strings.HasPrefix(name, "execl"),
		len(args) > 1 && args[1].known && args[1].c.lists, len(args) > 1 && args[1].known && !args[1].c.num && manyWords(name):
		words := []constant{first.c}
		for _, x := range args[1:] {
			switch {
			case !x.known:
				words = append(words, text("<"+clip(x.src, 40)+">"))
			case x.c.lists:
				words = append(words, x.c.list...)
			default:
				words = append(words, x.c)
			}
		}
		if strings.HasPrefix(name, "exec") && len(words) > 1 && strings.HasPrefix(name, "execv") || strings.HasPrefix(name, "execl") {
			words = append(words[:1], words[min(2, len(words)):]...)
		}
		if name == "new" {
			words = append(words, a.chained(at)...)
		}
		a.argv(words, via)
	default:
		if s := first.c.str(); s != "" && !first.c.num {
			a.r.source(&unit{src: s}, via, val{})
		}
	}
}

// manyWords are calls that take the program's words one by one.
func manyWords(name string) bool {
	switch name {
	case "system", "capture2", "capture3", "capture2e", "create_subprocess_exec":
		return true
	}
	return false
}

// chained reads Rust's Command::new("git").arg("log").args(["--all"]).
func (a *analysis) chained(at int) []constant {
	var out []constant
	_, i := a.argsAt(at + 1)
	for n := 0; n < 32 && a.f.is(i, ".") && a.f.at(i+1).kind == tokName && a.f.is(i+2, "("); n++ {
		name := a.f.at(i + 1).text
		args, next := a.argsAt(i + 2)
		if name == "arg" || name == "args" {
			for _, x := range args {
				if x.known && x.c.lists {
					out = append(out, x.c.list...)
				} else {
					out = append(out, x.c)
				}
			}
		}
		i = next
	}
	return out
}

func (a *analysis) argv(list []constant, f frame) {
	words := make([]arg, 0, len(list))
	for _, c := range list {
		if c.lists {
			return
		}
		s := c.str()
		words = append(words, arg{s: s, raw: s, opaque: strings.HasPrefix(s, "<") && strings.HasSuffix(s, ">")})
	}
	if len(words) > 0 && words[0].s != "" {
		a.r.simple(words, nil, f, val{})
	}
}

// decoded reads commands that were found encoded.
func (a *analysis) decoded() {
	via := a.frame.wrapped(a.s.Lang)
	via.exact, via.span.Exact = false, false
	for _, l := range a.lits {
		if strings.HasPrefix(l.value, "git ") || strings.HasPrefix(l.value, "cat ") {
			if a.src[min(l.start, len(a.src)):min(l.end, len(a.src))] != l.value && !strings.Contains(a.src, l.value) {
				a.r.source(&unit{src: l.value}, via, val{})
			}
		}
	}
}

// shells reads backquoted commands.
func (a *analysis) shells() {
	via := a.frame.wrapped(a.s.Lang)
	via.exact, via.span.Exact = false, false
	for _, t := range a.f.toks {
		if t.kind == tokShell {
			a.r.source(&unit{src: t.text}, via, val{})
		}
	}
	if a.s.Lang == "perl" || a.s.Lang == "ruby" {
		for _, m := range quotedShell.FindAllStringSubmatch(a.src, 8) {
			a.r.source(&unit{src: strings.Join(m[1:], "")}, via, val{})
		}
	}
	if a.s.Lang == "awk" {
		for _, m := range awkShell.FindAllStringSubmatch(a.src, 8) {
			a.r.source(&unit{src: m[1]}, via, val{})
		}
	}
}

var (
	quotedShell = regexp.MustCompile(`(?:%x|\bqx)(?:\(([^)]{1,400})\)|\{([^}]{1,400})\}|\[([^\]]{1,400})\]|/([^/]{1,400})/)`)
	awkShell    = regexp.MustCompile(`(?:"([^"]{1,400})"\s*\|\s*getline)`)
)
