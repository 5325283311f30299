package normalize

import (
	"path"
	"slices"
	"strings"

	"proctor/rules"
)

// What took the content of a hidden path along leads where its source does: a file that a command with a
// hidden path wrote, what the end of a pipe wrote or unpacked, what a script wrote that read one. A later look
// at the copy is then a look at the source, whatever the copy is called.

// carryPiped follows the content of hidden paths from the commands [from, to) of a pipe into those after them.
func (r *run) carryPiped(from, to int) {
	if from > to || to > len(r.ev.Commands) {
		return
	}
	var hidden []string
	for _, c := range r.ev.Commands[from:to] {
		hidden = append(hidden, c.Hidden...)
	}
	if len(hidden) == 0 {
		return
	}
	for i := to; i < len(r.ev.Commands); i++ {
		r.carries(&r.ev.Commands[i], hidden)
	}
}

// carryOwn does the same for what commands and scripts read and write themselves.
func (r *run) carryOwn() {
	for i := range r.ev.Commands {
		if c := &r.ev.Commands[i]; len(c.Hidden) > 0 {
			r.carries(c, c.Hidden)
		}
	}
	for _, s := range r.ev.Scripts {
		written := len(s.Via) > 0 && strings.HasPrefix(s.Via[len(s.Via)-1], "written:")
		if len(s.Hidden) > 0 && !written {
			r.carried(s.Writes, s.Hidden)
		}
	}
}

func (r *run) carries(c *rules.Command, hidden []string) {
	switch c.Program {
	case "rm", "mkdir", "chmod", "chown", "touch", "rmdir", "unlink":
		return
	}
	r.carried(c.Writes, hidden)
	dir, ok := unpacksInto(c, r.st.cwd)
	if !ok {
		return
	}
	for _, h := range hidden {
		for rest := strings.Trim(h, "/"); rest != ""; {
			r.link(path.Join(dir, rest), h)
			_, rest, _ = strings.Cut(rest, "/")
		}
	}
}

func (r *run) carried(writes, hidden []string) {
	for _, w := range writes {
		if w == "" || w[0] != '/' || w == r.n.task.workdir || strings.HasPrefix(w, "/dev/") || slices.Contains(hidden, w) || r.hidden(w) {
			continue
		}
		r.link(w, hidden[0])
	}
}

// unpacksInto gives the folder into which a command unpacks an archive that it is given.
func unpacksInto(c *rules.Command, cwd string) (string, bool) {
	option := ""
	switch c.Program {
	case "tar", "bsdtar", "gtar":
		option = "-C"
		if len(c.Args) == 0 || !slices.ContainsFunc(c.Args, func(a string) bool {
			return a == "--extract" || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "x")
		}) && !strings.Contains(c.Args[0], "x") {
			return "", false
		}
	case "unzip", "cpio", "pax":
		option = "-d"
	default:
		return "", false
	}
	for i, a := range c.Args {
		if a == option && i+1 < len(c.Args) {
			return absFrom(cwd, c.Args[i+1]), true
		}
	}
	return cwd, true
}
