package rollouts

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"proctor/rules"
	"proctor/tasks"
)

// Bounds of a patch under review: what is beyond is not read, and the event says so.
const (
	reviewFiles = 200
	reviewBytes = 256 << 10 // of added and removed lines, over all files
	reviewText  = 32 << 10  // of added lines, as the event's raw text
)

// patchEvent gives the facts of a patch: one file entity for each file that it touches. The patch
// holds the agent's bytes; nothing in it is believed but that they are there.
func patchEvent(t *tasks.Task, patch []byte) rules.Event {
	d := diffReader{task: t, left: reviewBytes}
	for len(patch) > 0 && !d.full {
		var line []byte
		line, patch, _ = bytes.Cut(patch, []byte("\n"))
		d.line(string(line))
	}
	d.flush()
	ev := rules.Event{Call: rules.CallFacts{Tool: patchTool, Cwd: t.Workdir}, Files: d.files, Opaque: d.full}
	if d.full {
		ev.Notes = []string{"the patch is longer than is read for a review"}
	}
	var text strings.Builder
	for _, f := range d.files {
		text.WriteString(f.Path + "\n")
		if room := reviewText - text.Len(); room > 0 {
			text.WriteString(f.Added[:min(room, len(f.Added))])
		}
	}
	ev.Call.Text = strings.ToValidUTF8(text.String(), "\uFFFD")
	return ev
}

// diffReader reads a git diff line by line.
type diffReader struct {
	task           *tasks.Task
	files          []rules.File
	file           *rules.File
	added, removed strings.Builder
	hunk           int // old and new lines that the hunk at hand still has
	hunkNew        int
	left           int
	full           bool
}

func (d *diffReader) line(s string) {
	if d.hunk > 0 || d.hunkNew > 0 {
		d.body(s)
		return
	}
	switch {
	case strings.HasPrefix(s, "diff --git "):
		d.flush()
		if len(d.files) >= reviewFiles {
			d.full = true
			return
		}
		d.file = &rules.File{Op: "edit", Path: headerPath(s)}
	case d.file == nil:
	case strings.HasPrefix(s, "new file mode 120000"):
		d.file.Op = "link"
	case strings.HasPrefix(s, "new file mode"):
		d.file.Op = "create"
	case strings.HasPrefix(s, "deleted file mode"):
		d.file.Op = "delete"
	case strings.HasPrefix(s, "rename to "):
		d.file.Path = unquote(s[len("rename to "):])
	case strings.HasPrefix(s, "+++ "):
		if p := unquote(strings.TrimRight(s[4:], "\t")); p != "/dev/null" {
			d.file.Path = strings.TrimPrefix(p, "b/")
		}
	case strings.HasPrefix(s, "--- "):
		if p := unquote(strings.TrimRight(s[4:], "\t")); p != "/dev/null" {
			d.file.Path = strings.TrimPrefix(p, "a/")
		}
	case strings.HasPrefix(s, "@@ -"):
		d.hunk, d.hunkNew = hunkSizes(s)
	}
}

// body reads a line of a hunk.
func (d *diffReader) body(s string) {
	sign := byte(' ')
	if s != "" {
		sign, s = s[0], s[1:]
	}
	switch sign {
	case '+':
		d.hunkNew--
		d.keep(&d.added, s)
	case '-':
		d.hunk--
		d.keep(&d.removed, s)
	case '\\':
	default:
		d.hunk--
		d.hunkNew--
	}
}

func (d *diffReader) keep(b *strings.Builder, s string) {
	if d.left -= len(s) + 1; d.left < 0 {
		d.full = true
		return
	}
	b.WriteString(s)
	b.WriteByte('\n')
}

// flush ends the file at hand.
func (d *diffReader) flush() {
	if d.file == nil {
		return
	}
	f := *d.file
	rel := path.Clean("/" + f.Path)
	f.Path = path.Join(d.task.Workdir, rel)
	f.InTree = true
	f.Added, f.Removed = strings.ToValidUTF8(d.added.String(), "\uFFFD"), strings.ToValidUTF8(d.removed.String(), "\uFFFD")
	if f.Op == "create" {
		f.Content = f.Added
	}
	for _, p := range d.task.TestPaths {
		f.Test = f.Test || below(rel, path.Clean("/"+p))
	}
	for _, p := range d.task.HiddenPaths {
		f.Hidden = f.Hidden || below(f.Path, path.Clean(p))
	}
	d.files = append(d.files, f)
	d.file, d.hunk, d.hunkNew = nil, 0, 0
	d.added.Reset()
	d.removed.Reset()
}

func below(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// headerPath gives the path of "diff --git a/x b/x"; the lines after it, where there are any, say
// it without doubt.
func headerPath(s string) string {
	rest := strings.TrimPrefix(s, "diff --git ")
	if i := strings.LastIndex(rest, ` "b/`); i >= 0 {
		return strings.TrimPrefix(unquote(rest[i+1:]), "b/")
	}
	// Both halves are alike, but for the first letter, where nothing was renamed.
	if half := len(rest) / 2; len(rest)%2 == 1 && rest[half] == ' ' {
		return strings.TrimPrefix(rest[half+1:], "b/")
	}
	if i := strings.LastIndex(rest, " b/"); i >= 0 {
		return rest[i+3:]
	}
	return rest
}

// unquote reads a path as git writes it: in C quotes where it holds odd bytes.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' {
		return s
	}
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return strings.Trim(s, `"`)
}

// hunkSizes gives how many old and new lines a hunk has: "@@ -1,2 +3,4 @@".
func hunkSizes(s string) (before, after int) {
	fields := strings.Fields(s)
	if len(fields) < 3 {
		return 0, 0
	}
	return hunkSize(fields[1]), hunkSize(fields[2])
}

func hunkSize(s string) int {
	_, n, ok := strings.Cut(s, ",")
	if !ok {
		return 1
	}
	v, err := strconv.Atoi(n)
	if err != nil || v < 0 {
		return 0
	}
	return v
}
