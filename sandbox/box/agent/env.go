package agent

import (
	"os"
	"strings"
)

// neutral keeps programs from waiting for a person. What the image or the task sets goes before it.
var neutral = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
	"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true",
	"DEBIAN_FRONTEND=noninteractive", "GIT_TERMINAL_PROMPT=0", "PIP_NO_INPUT=1",
	"TERM=dumb",
}

// baseEnv is the environment of commands: what is given, then HOME, USER and SHELL of who runs them, then
// the neutral defaults; the first setting of a name holds. Without SHELL every bash that starts looks it up
// by way of the name service, which costs it fifteen system calls.
func baseEnv(given []string, who identity) []string {
	return mergeEnv(given, []string{"HOME=" + who.home, "USER=" + who.name, "SHELL=" + firstShell()}, neutral)
}

// firstShell is the shell that is there, the last of those known where none is.
func firstShell() string {
	for _, path := range shells {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return shells[len(shells)-1]
}

// mergeEnv joins lists of KEY=value; the first setting of a name holds, what is none is left out.
func mergeEnv(lists ...[]string) []string {
	var merged []string
	seen := map[string]bool{}
	for _, list := range lists {
		for _, entry := range list {
			name, _, ok := strings.Cut(entry, "=")
			if !ok || name == "" || seen[name] || strings.ContainsRune(entry, 0) {
				continue
			}
			seen[name] = true
			merged = append(merged, entry)
		}
	}
	return merged
}

// lookup gives the value of name in env, "" where there is none.
func lookup(env []string, name string) string {
	for _, entry := range env {
		if k, v, ok := strings.Cut(entry, "="); ok && k == name {
			return v
		}
	}
	return ""
}
