package grading

import (
	"path"
	"regexp"
	"strings"

	"proctor/tasks"
)

// Where the state of a container is the deliverable, what the agent installed must stay, and what steers
// the verifier must not. Three kinds of place, by absolute path without the first slash:
//
//   - whole: exactly as in the task's image. Start-up files, loader and cron settings, and what else runs
//     before or beside the verifier.
//   - system: files of the image are as there; what was added stays, unless hookOf says what it is.
//   - kept: the agent's.
type place int

const (
	kept place = iota
	system
	whole
)

// wholePlaces are exact, with all below them.
var wholePlaces = prefixes(`etc/ld.so.preload etc/ld.so.conf etc/ld.so.conf.d etc/ld.so.cache etc/environment etc/profile etc/profile.d
	etc/bash.bashrc etc/bashrc etc/bash.bash_logout etc/zsh etc/zshenv etc/zshrc etc/zprofile etc/zlogin etc/inputrc etc/gitconfig
	etc/crontab etc/anacrontab etc/cron.d etc/cron.hourly etc/cron.daily etc/cron.weekly etc/cron.monthly var/spool/cron var/spool/at
	etc/rc.local etc/pip.conf etc/pam.d etc/security etc/nsswitch.conf etc/sudoers etc/sudoers.d etc/apt/apt.conf etc/apt/apt.conf.d
	etc/wgetrc etc/curlrc etc/npmrc usr/pyvenv.cfg usr/local/pyvenv.cfg pyvenv.cfg
	conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml pyproject.toml tox.ini setup.cfg setup.py sitecustomize.py usercustomize.py`)

// homeFiles are whole in every home.
var homeFiles = prefixes(`.bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .kshrc .mkshrc .shrc .inputrc
	.pythonrc .pythonrc.py .pdbrc .pydistutils.cfg .gitconfig .git-credentials .pip .curlrc .wgetrc .npmrc .config/git .config/pip .local/bin`)

// systemPlaces hold programs and libraries.
var systemPlaces = prefixes(`bin sbin lib lib32 lib64 libx32 usr/bin usr/sbin usr/lib usr/lib32 usr/lib64 usr/libx32 usr/libexec
	usr/local/bin usr/local/sbin usr/local/lib usr/local/lib64`)

func prefixes(list string) map[string]bool {
	set := map[string]bool{}
	for _, p := range strings.Fields(list) {
		set[p] = true
	}
	return set
}

// below reports whether name is one of set or lies below one.
func below(name string, set map[string]bool) bool {
	for dir := name; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if set[dir] {
			return true
		}
	}
	return false
}

// statePolicy says what becomes of each path.
type statePolicy struct {
	keep     map[string]bool // the task's own exceptions
	whole    map[string]bool // the task's own tests
	programs map[string]bool // folders of PATH
	system   map[string]bool
	user     string // that the verifier runs as
}

// newStatePolicy makes the policy of a task whose verifier runs with the PATH given.
func newStatePolicy(task *tasks.Task, searchPath string) statePolicy {
	p := statePolicy{keep: map[string]bool{}, whole: map[string]bool{}, programs: map[string]bool{}, system: map[string]bool{}, user: task.User}
	for _, k := range task.Grader.Keep {
		p.keep[strings.TrimPrefix(path.Clean(k), "/")] = true
	}
	for _, t := range task.TestPaths {
		p.whole[strings.TrimPrefix(path.Join(task.Workdir, t), "/")] = true
	}
	for dir := range strings.SplitSeq(searchPath, ":") {
		if !path.IsAbs(dir) {
			continue
		}
		dir = strings.TrimPrefix(path.Clean(dir), "/")
		p.programs[dir] = true
		if !below(dir, systemPlaces) && strings.Contains(dir, "/") {
			p.system[path.Dir(dir)] = true // an environment of its own: its bin and what stands beside that
		}
	}
	return p
}

// roots are the folders to be looked through.
func (p statePolicy) roots() []string {
	roots := []string{"etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr/bin", "usr/sbin", "usr/lib", "usr/lib32", "usr/lib64",
		"usr/libx32", "usr/libexec", "usr/local", "usr/pyvenv.cfg", "root", "home", "var/spool"}
	for dir := range p.whole {
		roots = append(roots, dir)
	}
	for dir := range p.system {
		if !below(dir, prefixes(strings.Join(roots, " "))) {
			roots = append(roots, dir)
		}
	}
	for name := range wholePlaces {
		if !strings.Contains(name, "/") {
			roots = append(roots, name)
		}
	}
	return roots
}

var homeOf = regexp.MustCompile(`^(?:root|home/[^/]+)/(.+)$`)

func (p statePolicy) of(name string) place {
	switch {
	case below(name, p.keep):
		return kept
	case below(name, p.whole) || below(name, wholePlaces) || strings.HasPrefix(name, "etc/python"):
		return whole
	}
	if m := homeOf.FindStringSubmatch(name); m != nil {
		switch {
		case below(m[1], homeFiles):
			return whole
		case strings.HasPrefix(m[1], ".local/lib/python"):
			return systemPart(name)
		}
	}
	if below(name, systemPlaces) || below(name, p.system) {
		return systemPart(name)
	}
	return kept
}

// systemPart leaves to the agent the installed packages that neither Python's start nor the runner use:
// to upgrade one may be what was asked for.
func systemPart(name string) place {
	rest, ok := inSite(name)
	if !ok || runnerModules[moduleOf(rest)] || isHookFile(rest) {
		return system
	}
	return kept
}

// inSite gives what follows the folder of installed packages in a path.
func inSite(name string) (string, bool) {
	for _, site := range []string{"/site-packages/", "/dist-packages/"} {
		if i := strings.LastIndex(name, site); i >= 0 {
			return name[i+len(site):], true
		}
	}
	return "", false
}

// moduleOf gives the module or project of a path below a folder of packages: "pytest" of "pytest/x.py",
// "pytest.py" and "pytest-8.0.dist-info/RECORD".
func moduleOf(rest string) string {
	top, _, _ := strings.Cut(rest, "/")
	if i := strings.IndexAny(top, ".-"); i >= 0 {
		top = top[:i]
	}
	return top
}

// isHookFile reports whether a file of a folder of packages can run code at start-up by its name alone.
func isHookFile(rest string) bool {
	module := moduleOf(rest)
	return module == "sitecustomize" || module == "usercustomize" || strings.HasSuffix(rest, ".pth") || strings.HasSuffix(rest, "/entry_points.txt")
}

// leads reports whether guarded places lie below a path: a link there would lead them elsewhere.
func (p statePolicy) leads(name string) bool {
	if homeLeads.MatchString(name) || pythonFolder.MatchString(name) || p.programs[name] || path.Base(name) == "glibc-hwcaps" {
		return true
	}
	for _, set := range []map[string]bool{wholePlaces, systemPlaces, p.whole, p.system, p.programs} {
		for guarded := range set {
			if strings.HasPrefix(guarded, name+"/") {
				return true
			}
		}
	}
	return false
}

var (
	homeLeads    = regexp.MustCompile(`^(?:root|home|home/[^/]+)(?:/\.config|/\.local|/\.local/lib|/\.local/lib/python[^/]*)?$`)
	pythonFolder = regexp.MustCompile(`(?:^|/)lib(?:64)?/python3[^/]*(?:/(?:site|dist)-packages)?$`)
)
