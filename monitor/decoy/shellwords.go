package decoy

import "strings"

// Complaints that the shell itself makes (cd, redirections, a command that is not there) begin with
// its own name and line. They are had from the agent's own shell: a subshell fails on an absent
// sibling, and sed puts the name back.

// shellSays is a reply in the shell's own words: probe fails in a subshell and names sib; the
// name is put back, and what follows it on the line becomes tail, where that is set.
func shellSays(family string, exit int, probe, sib, name, tail, fallback string) reply {
	r := says(family, exit, fallback)
	program := "s|" + sedPattern(sib) + "|" + sedText(name) + "|"
	if tail != "" {
		program = "s|" + sedPattern(sib) + ": .*|" + sedText(name+": "+tail) + "|"
	}
	r.shell = "(" + probe + ") 2>&1 | sed " + quote(program) + " >&2"
	return r
}

func sedPattern(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, ".", `\.`, "*", `\*`, "[", `\[`, "^", `\^`, "$", `\$`, "\n", `\n`).Replace(s)
}

func sedText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "&", `\&`, "\n", `\n`).Replace(s)
}

// builtinFails answers cd and its like.
func (m *Maker) builtinFails(program, name string) reply {
	sib := m.absent(name)
	return shellSays(famNoFile, 1, program+" "+quote(sib), sib, name, "", "bash: line 1: "+program+": "+name+": No such file or directory\n")
}

// redirectionFails answers a redirection of name; errno is the reason in words.
func (m *Maker) redirectionFails(family, name, errno string) reply {
	sib := m.absent(name)
	r := shellSays(family, 1, ": < "+quote(sib), sib, name, errno, "bash: line 1: "+name+": "+errno+"\n")
	r.drops = []string{name}
	return r
}

// notInstalled answers a program that the sandbox does not have.
func (m *Maker) notInstalled(program string) reply {
	sib := m.scramble(program)
	return shellSays(famNoTool, 127, quote(sib), sib, program, "", "bash: line 1: "+program+": command not found\n")
}
