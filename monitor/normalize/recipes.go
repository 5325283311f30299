package normalize

import "strings"

// taskRunner reads the recipes of just, mise and task.
func (r *run) taskRunner(name string, args []arg, f frame) {
	g := f.wrapped(name)
	g.exact, g.span.Exact = false, false
	want := map[string]bool{}
	for _, a := range r.skipOptions(args[1:], wrapper{values: "fdt", long: []string{"--justfile", "--working-directory", "--taskfile", "--dir"}}, nil) {
		if a.s != "run" && !isAssignment(a.s) {
			want[a.s] = true
		}
	}
	var files []string
	switch name {
	case "just":
		files = []string{"justfile", "Justfile", ".justfile"}
	case "task", "go-task":
		files = []string{"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"}
	default:
		files = []string{"mise.toml", ".mise.toml", "mise/config.toml", ".tool-versions"}
	}
	if v, ok := optionValue(args, "-f", "--justfile", "-t", "--taskfile"); ok {
		files = []string{v.s}
	}
	for _, p := range files {
		text := r.contentOf(r.abs(p)).s
		if text == "" {
			continue
		}
		var lines []string
		switch name {
		case "just":
			lines = recipes(tabbed(text), want)
		default:
			lines = taskLines(text)
		}
		for _, line := range lines {
			r.source(&unit{src: line}, g, val{})
		}
		return
	}
}

// tabbed gives a justfile as a makefile: recipe lines start with a tab.
func tabbed(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, " ") {
			lines[i] = "\t" + strings.TrimLeft(l, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// taskLines gives the commands of a Taskfile or of mise's tasks: loosely, those of every task.
func taskLines(text string) []string {
	var out []string
	cmds := false
	for _, line := range strings.Split(text, "\n") {
		l := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(l, "run"):
			if _, v, ok := strings.Cut(l, "="); ok {
				out = append(out, unquoted(strings.Trim(strings.TrimSpace(v), "[]")))
			}
		case l == "cmds:" || l == "- cmd: |":
			cmds = true
		case cmds && strings.HasPrefix(l, "- "):
			out = append(out, unquoted(strings.TrimPrefix(strings.TrimSpace(l[2:]), "cmd: ")))
		case strings.HasPrefix(l, "cmd: "):
			out = append(out, unquoted(strings.TrimSpace(l[5:])))
		default:
			cmds = cmds && (l == "" || strings.HasPrefix(line, "      "))
		}
		if len(out) > 64 {
			break
		}
	}
	return out
}

// makeShells gives the commands that a makefile runs while it is read: $(shell cmd) and name != cmd.
func makeShells(text string) []string {
	var out []string
	for rest := text; len(out) < 32; {
		i := strings.Index(rest, "$(shell ")
		if i < 0 {
			break
		}
		rest = rest[i+len("$(shell "):]
		depth, end := 1, len(rest)
		for j := 0; j < len(rest); j++ {
			if rest[j] == '(' {
				depth++
			} else if rest[j] == ')' {
				if depth--; depth == 0 {
					end = j
					break
				}
			}
		}
		out = append(out, strings.ReplaceAll(rest[:end], "$$", "$"))
	}
	if strings.Contains(text, "!=") {
		for _, line := range strings.Split(text, "\n") {
			if name, cmd, ok := strings.Cut(line, "!="); ok && len(out) < 32 && isAssignment(strings.TrimSpace(name)+"=") {
				out = append(out, strings.TrimSpace(cmd))
			}
		}
	}
	return out
}

// makeOptions gives the makefile that make's words name, and the text of --eval.
func makeOptions(args []arg) (file, eval string) {
	for i, a := range args {
		s := a.s
		switch {
		case (s == "-f" || s == "--file" || s == "--makefile") && i+1 < len(args):
			file = args[i+1].s
		case strings.HasPrefix(s, "-f") && len(s) > 2:
			file = s[2:]
		case strings.HasPrefix(s, "--file=") || strings.HasPrefix(s, "--makefile="):
			_, file, _ = strings.Cut(s, "=")
		case strings.HasPrefix(s, "--eval="):
			eval += s[len("--eval="):] + "\n"
		case (s == "--eval" || s == "-E") && i+1 < len(args):
			eval += args[i+1].s + "\n"
		}
	}
	return file, eval
}
