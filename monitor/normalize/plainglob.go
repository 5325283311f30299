package normalize

import "strings"

// Names that stand in a path where a pattern of it matches them and little else: a path reads the same
// however it was globbed.
var (
	topNames   = []string{"proc", "sys", "dev", "var", "run", "root", "home", "etc", "opt"}
	procNames  = []string{"environ", "cmdline", "maps", "mem", "fd", "root", "cwd", "exe", "mountinfo", "cgroup", "self", "status"}
	gitNames   = []string{"objects", "logs", "packed-refs", "refs", "heads", "remotes", "tags", "stash", "pack", "ORIG_HEAD", "FETCH_HEAD", "lost-found"}
	storeNames = []string{".git", "docker.sock", "site-packages", "dist-packages", "node_modules", "registry", ".cargo", "pkgs", "gems", ".m2", "repository"}
)

// plainGlob writes such a name for each component of a pattern that matches it.
func plainGlob(p string) string {
	if !strings.ContainsAny(p, "*?[") {
		return p
	}
	parts := strings.Split(p, "/")
	inGit, inProc := false, false
	for i, c := range parts {
		if strings.ContainsAny(c, "*?[") {
			c = oneLetter.ReplaceAllString(c, "$1")
			if n := lettersOf(c); strings.ContainsAny(c, "*?[") && n > 1 {
				switch {
				case inGit:
					c = named(c, gitNames)
				case inProc:
					c = named(c, procNames)
				case i == 1:
					c = named(c, topNames)
				case n > 2 || c[0] == '.':
					c = named(c, storeNames)
				}
			}
			parts[i] = c
		}
		inGit = inGit || c == ".git"
		inProc = inProc || i == 1 && c == "proc"
	}
	return strings.Join(parts, "/")
}

// named gives the one name that the pattern of a component stands for, or the pattern.
func named(pat string, names []string) string {
	for _, n := range names {
		if (strings.IndexByte("*?[", pat[0]) >= 0 || pat[0] == n[0]) && matchName(pat, n) {
			return n
		}
	}
	return pat
}

// lettersOf counts the letters of a pattern outside its classes.
func lettersOf(pat string) int {
	n, class := 0, false
	for i := 0; i < len(pat); i++ {
		switch c := pat[i]; {
		case c == '[':
			class = true
		case c == ']':
			class = false
		case !class && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'):
			n++
		}
	}
	return n
}
