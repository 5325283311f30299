package normalize

import (
	"path"
	"regexp"
	"strings"

	"proctor/rules"
)

// abs gives a path as an absolute, clean one, after the shell's folder.
func (r *run) abs(p string) string { return absFrom(r.st.cwd, p) }

func absFrom(dir, p string) string {
	p = strings.TrimPrefix(p, "file://")
	if p == "" {
		return dir
	}
	if !strings.HasPrefix(p, "/") {
		if strings.HasPrefix(p, "$") {
			// An unknown value may be absolute; as written is the most that can be said.
			return p
		}
		p = dir + "/" + p
	}
	return path.Clean(p)
}

// follow resolves the links that the rollout made and those that always exist, 16 deep.
func (r *run) follow(p string) string {
	for range 16 {
		next := r.followOnce(p)
		if next == p {
			break
		}
		p = next
	}
	return p
}

func (r *run) followOnce(p string) string {
	if strings.HasPrefix(p, "/proc/") {
		for _, self := range [...]string{"/proc/self", "/proc/thread-self", "/proc/$$", "/proc/$BASHPID"} {
			if rest, ok := strings.CutPrefix(p, self+"/cwd"); ok && (rest == "" || rest[0] == '/') {
				return path.Clean(r.st.cwd + rest)
			}
			if rest, ok := strings.CutPrefix(p, self+"/root"); ok && (rest == "" || rest[0] == '/') {
				return path.Clean("/" + rest)
			}
		}
	}
	if r.st.links.empty() {
		return p
	}
	for i := 1; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		if target, ok := r.st.links.get(p[:i]); ok {
			return path.Clean(absFrom(path.Dir(p[:i]), target) + "/" + p[i:])
		}
	}
	return p
}

// contentOf gives what a file holds as far as it is known: what the rollout wrote, else what the
// sandbox has.
func (r *run) contentOf(p string) val {
	if s, ok := r.temp[p]; ok {
		return known(s)
	}
	p = r.follow(p)
	if fl, ok := r.st.files.get(p); ok {
		if fl.whole {
			return known(fl.content)
		}
	}
	if b, ok := r.facts.Read(r.context(), p, maxContent); ok {
		return known(string(b))
	}
	if fl, ok := r.st.files.get(p); ok {
		return val{fl.content, false}
	}
	return val{}
}

// pathState asks the facts once a call for each path.
func (r *run) pathState(p string) PathState {
	if s, ok := r.states[p]; ok {
		return s
	}
	s := r.facts.Path(r.context(), p)
	if len(r.states) < 4*maxWords {
		r.states[p] = s
	}
	return s
}

// hidden tells whether an absolute path leads to something that the task hides. What the agent made
// itself is never hidden.
func (r *run) hidden(p string) bool {
	if p == "" || p[0] != '/' && p[0] != '$' {
		return false
	}
	if r.hiddenHere(p) {
		return true
	}
	q := r.follow(p)
	if q != p && r.hiddenHere(q) {
		return true
	}
	if real := r.facts.Real(r.context(), q); real != q && real != "" {
		return r.hiddenHere(real)
	}
	return false
}

func (r *run) hiddenHere(p string) bool {
	listed := false
	for _, h := range r.n.task.hidden {
		if rules.Below(p, h) {
			listed = true
			break
		}
	}
	switch r.pathState(p) {
	case PathHidden:
		return true
	case PathAbsent:
		return false
	}
	if fl, ok := r.st.files.get(p); ok && fl.made && listed && !r.n.task.exactly(p) {
		return false
	}
	return listed
}

func (t taskFacts) exactly(p string) bool {
	for _, h := range t.hidden {
		if p == h {
			return true
		}
	}
	return false
}

// looksLikePath tells whether a word may name a file: it has a slash, a dot or nothing odd, and is
// neither an option, a URL nor prose.
func looksLikePath(s string) bool {
	if s == "" || len(s) > 4096 || s[0] == '-' {
		return false
	}
	if strings.ContainsAny(s, "\n\x00") || strings.Contains(s, "://") && !strings.HasPrefix(s, "file://") {
		return false
	}
	if s[0] == '/' || s[0] == '~' || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || s == "." || s == ".." {
		return true
	}
	return !strings.ContainsAny(s, "'\"(){}<>|;,= ") || strings.IndexByte(s, '/') > 0 && strings.IndexByte(s, ' ') < 0
}

// paths fills in the paths that a command names and whether they lead to something hidden.
func (r *run) paths(cmd *rules.Command, args []arg, f frame) {
	if len(args) == 0 {
		return
	}
	if strings.Contains(args[0].s, "/") {
		r.addPath(cmd, args[0])
	}
	if textOnly(cmd.Program) {
		return
	}
	if queries(cmd.Program) {
		r.queried(cmd, args[1:])
	}
	words := args[1:]
	switch {
	case cmd.Program == "find":
		words = findPaths(words)
	case patternFirst(cmd.Program):
		words = searchPaths(cmd.Program, words)
	}
	verbs := verbFirst(cmd.Program)
	for i, a := range words {
		a = valueOf(cmd.Program, a, i)
		if verbs && a.glob == "" && !strings.ContainsAny(a.s, "/.~") && !r.hidden(r.abs(a.s)) {
			continue // a verb, a branch, a package: not a file by its look
		}
		if looksLikePath(a.s) || a.glob != "" {
			r.addPath(cmd, a)
		}
	}
	r.walks(cmd, args)
}

// queries are programs whose words and stdin are text of a language that opens files by name.
func queries(program string) bool {
	switch program {
	case "duckdb", "sqlite3", "psql", "mysql", "mariadb", "clickhouse", "clickhouse-client", "clickhouse-local", "mongosh", "mongo", "redis-cli", "sqlcmd", "gnuplot", "octave", "bc", "m4":
		return true
	}
	return false
}

// inQuery are the names that such a text may open: quoted ones, and absolute paths.
var inQuery = regexp.MustCompile(`'([^'\n]{1,400})'|"([^"\n]{1,400})"|(/[\w./*-]{1,400})|(?m)^\s*\.(?:read|import|open|restore|load)\s+(\S{1,400})|\\(?:i|ir|include|o)\s+(\S{1,400})`)

// queried adds the hidden paths that a query names.
func (r *run) queried(cmd *rules.Command, args []arg) {
	for _, text := range append(texts(args), cmd.Stdin) {
		for _, m := range inQuery.FindAllStringSubmatch(text, maxWords) {
			for _, p := range m[1:] {
				if p == "" || strings.Contains(p, " ") || !strings.Contains(p, "/") || !r.hidden(r.abs(p)) {
					continue
				}
				cmd.Paths = appendNew(cmd.Paths, r.abs(p))
				cmd.Hidden = appendNew(cmd.Hidden, r.abs(p))
			}
		}
	}
}

// ledTo gives the hidden path that a settings file of the agent's own leads a program to.
func (r *run) ledTo(program, p string) string {
	switch path.Ext(p) {
	case ".ts", ".js", ".mjs", ".cjs", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".xml":
	default:
		return ""
	}
	if shows(program) {
		return ""
	}
	fl, ok := r.st.files.get(r.follow(p))
	if !ok || fl.content == "" {
		return ""
	}
	for _, h := range r.n.task.hidden {
		if len(h) > 4 && bounded(fl.content, h) {
			return h
		}
	}
	return ""
}

// shows are programs that print, copy or edit a file, and do not obey it.
func shows(program string) bool {
	switch program {
	case "cat", "less", "more", "head", "tail", "grep", "egrep", "rg", "sed", "awk", "wc", "diff", "cmp", "rm", "cp", "mv", "ls", "stat", "vi", "vim", "nano", "git", "touch", "chmod", "jq", "yq", "echo", "tee", "file", "md5sum", "sha256sum":
		return true
	}
	return false
}

// textOnly are programs whose words are text, never files.
func textOnly(program string) bool {
	switch program {
	case "echo", "printf", "export", "alias", "true", ":", "expr", "declare", "local", "readonly", "typeset":
		return true
	}
	return false
}

// searchPaths are the words of grep, sed and the like that are paths: operands after the expression,
// and what -f and --option=value name.
func searchPaths(program string, args []arg) []arg {
	out := operands(program, args)
	for i, a := range args {
		if (a.s == "-f" || a.s == "--file") && i+1 < len(args) {
			out = append(out, args[i+1])
		} else if strings.HasPrefix(a.s, "--file=") {
			out = append(out, a)
		}
	}
	return out
}

// verbFirst are programs whose bare words are verbs and names rather than files.
func verbFirst(program string) bool {
	switch program {
	case "git", "gh", "pip", "pip3", "uv", "npm", "npx", "yarn", "pnpm", "go", "cargo", "docker", "podman", "make", "apt", "apt-get", "conda", "mamba",
		"kill", "pkill", "pgrep", "sleep", "env", "which", "type", "man", "systemctl", "service", "seq", "ps", "top", "date", "id", "whoami", "exit", "return", "kubectl", "mvn", "gem", "brew":
		return true
	}
	return false
}

// findPaths are the words of find that are paths: its roots, and the operands of -newer and the like.
func findPaths(args []arg) []arg {
	out := findRoots("find", args)
	for i, a := range args {
		if (strings.HasPrefix(a.s, "-newer") || a.s == "-samefile" || a.s == "-fprint" || a.s == "-files0-from") && i+1 < len(args) {
			out = append(out, args[i+1])
		}
	}
	return out
}

// patternFirst are programs whose first operand is an expression.
func patternFirst(program string) bool {
	switch program {
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "mawk", "jq", "yq":
		return true
	}
	return false
}

// valueOf gives the part of a word that may be a path: the value of --option=value, of dd's if=, of
// a joined -I/dir, of docker's -v /host:/there.
func valueOf(program string, a arg, i int) arg {
	s := a.s
	if strings.HasPrefix(s, "@") && len(s) > 1 { // curl -d @file, gcc @file
		s = s[1:]
	}
	if k := strings.IndexByte(s, '='); k > 0 && (s[0] == '-' || program == "dd" || isAssignment(s)) {
		s = s[k+1:]
	} else if len(s) > 3 && s[0] == '-' && s[1] != '-' && s[2] == '/' {
		s = s[2:]
	}
	if s != a.s {
		a.s, a.glob = s, ""
	}
	return a
}

// addPath adds a word as a path of the command.
func (r *run) addPath(cmd *rules.Command, a arg) {
	p := r.abs(a.s)
	if p == "" {
		return
	}
	p = plainGlob(p)
	cmd.Paths = appendNew(cmd.Paths, p)
	if q := r.follow(p); q != p {
		cmd.Paths = appendNew(cmd.Paths, q)
	}
	if r.isCopy(p) {
		cmd.Copies = appendNew(cmd.Copies, p)
	}
	if a.glob != "" {
		r.globHidden(&cmd.Hidden, &cmd.Covers, absFrom(r.st.cwd, a.glob))
		return
	}
	if r.hidden(p) {
		cmd.Hidden = appendNew(cmd.Hidden, p)
		return
	}
	if h := r.ledTo(cmd.Program, p); h != "" {
		cmd.Hidden = appendNew(cmd.Hidden, h)
		return
	}
	if a.raw != "" && a.raw != a.s {
		// The facts may know the word as it was written.
		if raw := strings.Trim(a.raw, `"'`); r.pathState(raw) == PathHidden {
			cmd.Hidden = appendNew(cmd.Hidden, p)
		}
	}
}
