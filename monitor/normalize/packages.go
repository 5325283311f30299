package normalize

import (
	"slices"
	"strconv"
	"strings"

	"proctor/rules"
)

// packageFacts adds the packages that a command would fetch or install.
func (r *run) packageFacts(i int, args []arg, in val) {
	words := texts(args)
	name := base(words[0])
	manager, rest := name, words[1:]
	switch {
	case strings.HasPrefix(name, "python") || name == "pypy3":
		if len(rest) < 2 || rest[0] != "-m" || rest[1] != "pip" && rest[1] != "pipx" {
			return
		}
		manager, rest = "pip", rest[2:]
	case name == "pip" || strings.HasPrefix(name, "pip3") || strings.HasPrefix(name, "pip2") || name == "pipx":
		manager = "pip"
	case name == "uvx":
		manager, rest = "pip", append([]string{"run"}, rest...)
	case name == "uv" && len(rest) > 0:
		manager = "pip"
		if rest[0] == "pip" || rest[0] == "tool" {
			rest = rest[1:]
		}
	case name == "mamba" || name == "micromamba" || name == "conda":
		manager = "conda"
	case name == "yarn" || name == "pnpm" || name == "bun" || name == "npx" || name == "npm":
		manager = "npm"
	case name == "apt" || name == "apt-get" || name == "aptitude" || name == "apk" || name == "dnf" || name == "yum":
		manager = "apt"
	case name == "go" || name == "cargo" || name == "gem" || name == "bundle" || name == "poetry" || name == "pdm" || name == "mvn" || name == "composer" || name == "easy_install":
	default:
		return
	}
	if name == "npx" {
		rest = append([]string{"exec"}, rest...)
	}
	if name == "easy_install" {
		manager, rest = "pip", append([]string{"install"}, rest...)
	}
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		rest = rest[1:]
	}
	if len(rest) == 0 || !fetchVerb(manager, rest) {
		return
	}
	r.packageWords(i, manager, rest, in)
}

// fetchVerb tells whether a package manager's words bring packages in or show what is in them.
func fetchVerb(manager string, rest []string) bool {
	verb := rest[0]
	switch manager {
	case "pip":
		return verb == "install" || verb == "download" || verb == "wheel" || verb == "add" || verb == "run" || verb == "inject"
	case "poetry", "pdm":
		return verb == "add"
	case "conda":
		return verb == "install" || verb == "create" || verb == "search" || verb == "update" || verb == "upgrade"
	case "npm":
		return verb == "install" || verb == "i" || verb == "add" || verb == "pack" || verb == "exec" || verb == "x" || verb == "dlx" || verb == "update" || verb == "view" || verb == "info" || verb == "show" || verb == "diff"
	case "go":
		return verb == "get" || verb == "install" || verb == "run" && len(rest) > 1 && strings.Contains(rest[1], "@") || verb == "mod" && len(rest) > 1 && (rest[1] == "download" || rest[1] == "edit") || verb == "list" && len(rest) > 1 && rest[1] == "-m"
	case "cargo":
		return verb == "install" || verb == "add" || verb == "fetch" || verb == "download" || verb == "vendor"
	case "gem":
		return verb == "install" || verb == "fetch" || verb == "unpack"
	case "bundle":
		return verb == "add"
	case "composer":
		return verb == "require"
	case "mvn":
		return true
	case "apt":
		return verb == "install" || verb == "download" || verb == "source" || verb == "add"
	}
	return false
}

func (r *run) packageWords(i int, manager string, rest []string, in val) {
	if manager == "cargo" && slices.Contains(rest, "--path") {
		return // a folder of this machine
	}
	for j := 1; j < len(rest); j++ {
		w := rest[j]
		switch {
		case w == "-r" || w == "--requirement" || w == "-c" || w == "--constraint":
			if j++; j < len(rest) {
				r.requirements(i, manager, rest[j], in)
			}
		case strings.HasPrefix(w, "-r") && len(w) > 2 && manager == "pip":
			r.requirements(i, manager, w[2:], in)
		case manager == "go" && (strings.HasPrefix(w, "-require=") || strings.HasPrefix(w, "-replace=")):
			_, w, _ = strings.Cut(w, "=")
			if _, to, ok := strings.Cut(w, "="); ok {
				w = to
			}
			r.addPackage(i, manager, w)
		case manager == "npm" && (w == "--diff" && j+1 < len(rest) || strings.HasPrefix(w, "--diff=")):
			if w == "--diff" {
				j++
				w = rest[j]
			}
			r.addPackage(i, manager, strings.TrimPrefix(w, "--diff="))
		case (w == "--package" || w == "-p" && rest[0] == "exec") && j+1 < len(rest) && manager == "npm":
			j++
			r.addPackage(i, manager, rest[j])
		case strings.HasPrefix(w, "-Dartifact="):
			r.addPackage(i, manager, w[len("-Dartifact="):])
		case (w == "--with" || w == "--from") && j+1 < len(rest) && manager == "pip":
			j++
			r.addPackage(i, manager, rest[j])
		case packageOption(manager, w):
			j++
		case strings.HasPrefix(w, "-") || manager == "mvn" || manager == "go" && (w == "download" || w == "edit"):
		default:
			r.addPackage(i, manager, w)
		}
	}
}

func packageOption(manager, w string) bool {
	switch w {
	case "-d", "-t", "-i", "-f", "-p", "-n", "--target", "--dest", "--index-url", "--extra-index-url", "--find-links", "--prefix", "--root",
		"--no-binary", "--only-binary", "--platform", "--python-version", "--python", "--pack-destination", "-w", "--cache-dir", "--src", "--path", "--registry", "-C", "--with":
		return !(w == "-d" && manager == "go" || w == "-f" && manager == "npm" || w == "-w" && manager == "npm" || w == "-n" && manager != "conda" || w == "-i" && manager != "pip" || w == "-p" && manager == "npm")
	case "-e", "--editable":
		return manager == "pip"
	}
	return false
}

func (r *run) requirements(i int, manager, file string, in val) {
	text := in.s
	if file != "-" && file != "/dev/stdin" {
		text = r.contentOf(r.abs(file)).s
	}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimSpace(line)
		if n > 100 || line == "" || line[0] == '#' || line[0] == '-' {
			continue
		}
		r.addPackage(i, manager, line)
	}
}

// addPackage adds one requirement as written: name==1.2, name>1, name@latest, git+https://...
func (r *run) addPackage(i int, manager, spec string) {
	if len(r.ev.Packages) >= maxWords || spec == "" || strings.HasPrefix(spec, ".") || strings.HasPrefix(spec, "/") {
		return
	}
	if strings.HasSuffix(spec, ".whl") || strings.HasSuffix(spec, ".tar.gz") && !strings.Contains(spec, "://") {
		return // a file at hand
	}
	p := rules.Package{Manager: manager, Spec: spec, Command: i}
	t := &r.n.task
	switch {
	case strings.Contains(spec, "://") || strings.HasPrefix(spec, "git+") || strings.HasPrefix(spec, "github:"):
		p.Name = spec
		p.Own = r.upstreamURL(strings.TrimPrefix(strings.TrimPrefix(spec, "git+"), "github:")) || t.repo != "" && bounded(strings.ToLower(spec), t.repo)
		p.Relation = "any"
	default:
		var op string
		p.Name, op, p.Version = splitSpec(manager, spec)
		p.Own = t.ownPackage(p.Name)
		p.Relation = t.relation(op, p.Version)
		if op != "=" {
			p.Version = ""
		}
	}
	if !p.Own {
		p.Relation = ""
	}
	r.ev.Packages = append(r.ev.Packages, p)
}

// splitSpec splits a requirement into name, kind of bound and version. The kind is "=" for one
// version, ">" for it or later, "<" for earlier, "" for whatever is newest.
func splitSpec(manager, spec string) (name, op, version string) {
	spec, _, _ = strings.Cut(spec, ";")
	if manager == "mvn" {
		parts := strings.Split(spec, ":")
		if len(parts) >= 3 {
			return parts[0] + ":" + parts[1], "=", parts[2]
		}
		return spec, "", ""
	}
	if _, real, ok := strings.Cut(spec, "@npm:"); ok && manager == "npm" { // alias@npm:name@1.2
		spec = real
	}
	i := strings.IndexAny(spec, "=<>!~@[ ")
	if strings.HasPrefix(spec, "@") { // a scoped npm name
		if i = strings.IndexByte(spec[1:], '@'); i >= 0 {
			i++
		}
	}
	if i < 0 {
		return strings.TrimSpace(spec), "", ""
	}
	name, rest := strings.TrimSpace(spec[:i]), spec[i:]
	if rest[0] == '[' {
		_, rest, _ = strings.Cut(rest, "]")
	}
	rest = strings.TrimSpace(rest)
	j := strings.IndexFunc(rest, func(c rune) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' })
	if j < 0 {
		return name, "", ""
	}
	version, _, _ = strings.Cut(rest[j:], ",")
	version = strings.TrimPrefix(strings.TrimSpace(version), "v")
	mark := strings.TrimSpace(rest[:j])
	if version == "" || version[0] < '0' || version[0] > '9' {
		return name, "", ""
	}
	switch {
	case strings.HasPrefix(mark, ">") || strings.HasPrefix(mark, "~=") || strings.HasPrefix(mark, "@^") || strings.HasPrefix(mark, "@>"):
		return name, ">", version
	case strings.HasPrefix(mark, "<") || strings.HasPrefix(mark, "!"):
		return name, "<", version
	}
	return name, "=", version
}

// packageName folds a package's name as registries do.
func packageName(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	return nameSeparators.Replace(s)
}

var nameSeparators = strings.NewReplacer("_", "-", " ", "")

// ownPackage tells whether a name is the task's own package: by its published name, or by the
// repository in a Go module path.
func (t *taskFacts) ownPackage(name string) bool {
	n := packageName(name)
	if n == "" {
		return false
	}
	if t.pkg != "" && n == t.pkg {
		return true
	}
	if t.repo != "" && bounded(n, packageName(t.repo)) {
		return true
	}
	return t.pkg != "" && strings.HasPrefix(n, "python3-") && n[len("python3-"):] == t.pkg || t.distroPackage(n)
}

// distroPackage tells whether a distribution's package holds the task's project: libNAME-dev, NAME-devel, ruby-NAME.
func (t *taskFacts) distroPackage(n string) bool {
	bare := n
	for _, end := range [...]string{"-dev", "-devel", "-src", "-source", "-dbgsym", "-java"} {
		bare = strings.TrimSuffix(bare, end)
	}
	kind := bare
	for _, start := range [...]string{"librust-", "lib", "ruby-", "node-", "php-", "lua-", "r-cran-", "golang-", "rust-"} {
		if kind = strings.TrimPrefix(bare, start); kind != bare {
			break
		}
	}
	if kind == n {
		return false
	}
	leaf := t.pkg[strings.LastIndexAny(t.pkg, "/:")+1:]
	return len(kind) > 3 && (kind == leaf || kind == packageName(t.repoName))
}

// relation places a requirement among the task's versions: what of the project it would bring in.
func (t *taskFacts) relation(op, version string) string {
	baseV, fixV := t.vars.One("base_version"), t.vars.One("fix_version")
	switch op {
	case "":
		return "any"
	case ">":
		return "any"
	case "<":
		if fixV != "" && compareVersions(version, fixV) <= 0 {
			return "older"
		}
		return "any"
	}
	if fixV != "" {
		switch c := compareVersions(version, fixV); {
		case c == 0:
			return "fixed"
		case c > 0:
			return "newer"
		}
	}
	if baseV != "" {
		if compareVersions(version, baseV) < 0 {
			return "older"
		}
		return "base"
	}
	if fixV != "" {
		return "older"
	}
	return "unknown"
}

// compareVersions compares the numeric parts of two versions; a shorter one that is a prefix of
// the other names the same release series and is equal.
func compareVersions(a, b string) int {
	as, bs := numbers(a), numbers(b)
	for i := 0; i < len(as) && i < len(bs); i++ {
		if as[i] != bs[i] {
			if as[i] < bs[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

func numbers(v string) []int {
	var out []int
	for _, part := range strings.FieldsFunc(strings.TrimPrefix(strings.ToLower(v), "v"), func(c rune) bool { return c == '.' || c == '-' || c == '+' }) {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}
