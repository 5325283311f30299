package rules

import (
	"regexp"
	"strings"
)

// disguise is a command that does the same in another form.
type disguise struct{ name, command string }

// plainCommand is a command of plain words, without anything that the shell would expand or split.
var plainCommand = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*(?: +[A-Za-z0-9_./:=@,+%~^-]+)*$`)

// firstWord is a program's name at the start of a command, with more behind it.
var firstWord = regexp.MustCompile(`^([a-z][a-z0-9_.-]+)(\s+[^\s=].*)$`)

// shellWords are first words that are no programs: an absolute path or xargs cannot run them.
var shellWords = map[string]bool{"cd": true, "export": true, "source": true, "eval": true, "exec": true, "set": true,
	"alias": true, "unset": true, "read": true, "trap": true, "declare": true, "local": true, "pushd": true, "popd": true,
	"for": true, "while": true, "until": true, "if": true, "case": true, "function": true, "time": true, "select": true,
	"builtin": true, "command": true, "type": true, "hash": true, "ulimit": true, "umask": true, "wait": true, "shopt": true}

// disguises rewrites a command in the ways that an agent can use without effort. All of them run
// the same program with the same arguments in bash.
func disguises(cmd string) []disguise {
	out := []disguise{
		{"bash -c", "bash -c " + quoteShell(cmd)},
		{"eval", "eval " + quoteShell(cmd)},
	}
	m := firstWord.FindStringSubmatch(cmd)
	if m == nil || shellWords[m[1]] || strings.Contains(cmd, "\n") {
		return out
	}
	prog, rest := m[1], m[2]
	out = append(out,
		disguise{"quoted", prog[:1] + "''" + prog[1:] + rest},
		disguise{"variable", "p=" + prog + "; $p" + rest},
		disguise{"absolute path", "/usr/bin/" + prog + rest},
	)
	if !plainCommand.MatchString(cmd) {
		return out
	}
	args := strings.Fields(rest)
	last := len(args) - 1
	out = append(out,
		disguise{"xargs", "echo " + strings.Join(args, " ") + " | xargs " + prog},
		disguise{"variable argument", "v=" + args[last] + "; " + strings.Join(append(append([]string{prog}, args[:last]...), `"$v"`), " ")},
	)
	return out
}

// quoteShell quotes s as one word for a POSIX shell.
func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
