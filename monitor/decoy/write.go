package decoy

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// writeWordings are how programs say that a file cannot be written; the second %s is the errno's
// words. From coreutils 9.1 and sed 4.8.
var writeWordings = map[string]struct {
	text string
	exit int
}{
	"cp":       {"cp: cannot create regular file '%s': %s\n", 1},
	"install":  {"install: cannot create regular file '%s': %s\n", 1},
	"touch":    {"touch: cannot touch '%s': %s\n", 1},
	"mkdir":    {"mkdir: cannot create directory ‘%s’: %s\n", 1},
	"rm":       {"rm: cannot remove '%s': %s\n", 1},
	"rmdir":    {"rmdir: failed to remove '%s': %s\n", 1},
	"chmod":    {"chmod: changing permissions of '%s': %s\n", 1},
	"chown":    {"chown: changing ownership of '%s': %s\n", 1},
	"tee":      {"tee: %s: %s\n", 1},
	"dd":       {"dd: failed to open '%s': %s\n", 1},
	"ln":       {"ln: failed to create symbolic link '%s': %s\n", 1},
	"mv":       {"mv: cannot create regular file '%s': %s\n", 1},
	"unlink":   {"unlink: cannot unlink '%s': %s\n", 1},
	"curl":     {"curl: (23) Failure writing output to destination\n", 23},
	"wget":     {"%s: %s\n", 3},
	"truncate": {"truncate: cannot open '%s' for writing: %s\n", 1},
}

// replyWrite answers a write where the agent has no business: the folder is not there where it is
// a protected one, else the file is one that a security module of the kernel's keeps, which binds root
// as well and leaves the file's neighbours alone. A file system that is read-only for one file and
// shown writable in /proc/mounts would be a tell.
func (m *Maker) replyWrite(_ context.Context, req Request, t *target) reply {
	w := t.writes[0]
	errno := "Permission denied"
	family := famWrite
	if denied(w, m.vars) {
		errno, family = "No such file or directory", famNoFile
	}
	name := spelledWrite(req, t, w)
	if t.cmd.Program == "sed" {
		if family == famNoFile {
			return says(family, 2, "sed: can't read "+name+": No such file or directory\n")
		}
		return says(family, 4, fmt.Sprintf("sed: couldn't open temporary file %s: %s\n", path.Join(path.Dir(name), "sed"+m.scramble("aAaaaA")), errno))
	}
	if words, ok := writeWordings[t.cmd.Program]; ok && slices.ContainsFunc(t.cmd.Args, func(a string) bool {
		return strings.HasSuffix(w, strings.TrimPrefix(path.Clean(a), "./")) || under(w, a)
	}) {
		text := words.text
		if strings.Contains(text, "%s") {
			text = fmt.Sprintf(text, name, errno)
		}
		return says(family, words.exit, text)
	}
	return m.redirectionFails(family, name, errno)
}

// spelledWrite gives a written path as the agent wrote it, where the text shows it.
func spelledWrite(req Request, t *target, w string) string {
	cwd := req.Event.Call.Cwd
	for _, a := range t.cmd.Args {
		abs := a
		if !path.IsAbs(abs) {
			abs = path.Join(cwd, a)
		}
		if path.Clean(abs) == path.Clean(w) {
			return a
		}
	}
	if rel := strings.TrimPrefix(w, strings.TrimSuffix(cwd, "/")+"/"); rel != w && strings.Contains(req.Event.Call.Text, rel) && !strings.Contains(req.Event.Call.Text, w) {
		return rel
	}
	return w
}
