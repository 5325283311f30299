package normalize

import (
	"regexp"
	"slices"
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
	fo, lits := r.foldedAt(p, src, lang)
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
		r.ev.Scripts[at].Asked = slices.ContainsFunc(s.Writes, r.n.task.asks)
	}
}

// folded gives a script's tokens and constants. What is written and then run is read once.
func (r *run) folded(src, lang string) (*folder, []literal) { return r.foldedAt("", src, lang) }

// foldedAt is folded for a script at a path that it may ask for.
func (r *run) foldedAt(p, src, lang string) (*folder, []literal) {
	if !strings.Contains(src, "__file") && !strings.Contains(src, "__dir") && !strings.Contains(src, "__DIR") && !strings.Contains(src, "__FILE") {
		p = ""
	}
	key := [4]string{lang, r.st.cwd, p, src}
	if c, ok := r.folds[key]; ok {
		return c.fo, c.lits
	}
	fo := &folder{toks: lex(src, lang), lang: lang, cwd: r.st.cwd, file: p, home: r.home()}
	lits := fo.literals()
	lits = append(lits, laced(fo.toks, lits)...)
	if r.folds == nil {
		r.folds = map[[4]string]fold{}
	}
	if len(r.folds) < maxDepth {
		r.folds[key] = fold{fo, lits[:len(lits):len(lits)]}
	}
	return fo, lits
}

// fold is a script that was read.
type fold struct {
	fo   *folder
	lits []literal
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
		if c, ok := charCode(t); ok {
			run = append(run, c)
			continue
		}
		switch {
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

// charCode gives the printable character that a number is the code of.
func charCode(t token) (byte, bool) {
	if t.kind != tokNumber || len(t.text) < 2 || len(t.text) > 10 {
		return 0, false
	}
	n, err := strconv.ParseUint(t.text, 0, 8)
	return byte(n), err == nil && n >= 32 && n < 127
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

// names tells whether the script has one of these names outside strings and comments.
func (a *analysis) names(want ...string) bool {
	has := a.f.names(a.s.Lang == "node" || a.s.Lang == "ruby")
	for _, w := range want {
		if has[w] {
			return true
		}
	}
	return false
}

// names gives the names outside strings and comments; with modules also short strings, because
// Node and Ruby name modules in them: require("https"), require("node:https").
func (f *folder) names(modules bool) map[string]bool {
	if f.named != nil {
		return f.named
	}
	f.named = make(map[string]bool, 64)
	for i := range f.toks {
		switch t := &f.toks[i]; {
		case t.kind == tokName:
			f.named[t.text] = true
		case modules && t.kind == tokString && len(t.text) < 24:
			f.named[t.text] = true
			f.named[strings.TrimPrefix(t.text, "node:")] = true
		}
	}
	return f.named
}

// netNames are names that scripts reach the network by.
var netNames = []string{
	"urllib", "urlopen", "urlretrieve", "requests", "httpx", "aiohttp", "HTTPConnection", "HTTPSConnection", "socket", "create_connection", "pycurl", "urllib3", "ftplib", "paramiko", "websocket",
	"fetch", "XMLHttpRequest", "got", "https", "http", "net", "HTTP", "URI", "LWP", "Net", "open_uri", "Faraday", "TCPSocket", "open-uri", "axios", "node-fetch", "undici",
	"curl_exec", "curl_init", "file_get_contents", "fsockopen", "reqwest", "ureq", "TcpStream", "HttpClient", "URL", "Dial", "Get",
	"INET", "UDPSocket", "SocketAddr", "DialTimeout", "createConnection", "connect", "load_dataset", "hf_hub_download", "snapshot_download", "clone_from", "wget", "download_file", "httplib2",
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
	if !a.names(netNames...) && (a.s.Lang != "node" || !strings.Contains(a.src, "https://") || !a.names("import", "from")) {
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
