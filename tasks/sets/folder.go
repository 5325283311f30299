package sets

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"proctor/tasks"
)

// folderSet is a published set whose tasks are folders.
type folderSet struct {
	name string
	is   func(dir string) bool
	read func(dir string) (*draft, []tasks.Problem)
}

func folderSets() []folderSet {
	return []folderSet{
		{"harbor", isHarbor, harbor},
		{"terminal-bench", isTerminalBench, terminalBench},
	}
}

// folder loads a folder of another set's form, or a folder of such folders; false where there is none.
// Native tasks that lie among them are loaded too.
func (l *loader) folder(ctx context.Context, dir string) bool {
	if s, ok := l.formOf(dir); ok {
		l.foreign(dir, s)
		return true
	}
	if isFile(filepath.Join(dir, tasks.TaskFile)) {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	found := false
	var others []string
	for _, e := range entries {
		below := filepath.Join(dir, e.Name())
		if s, ok := l.formOf(below); ok {
			l.foreign(below, s)
			found = true
		} else if isFile(filepath.Join(below, tasks.TaskFile)) {
			others = append(others, below)
		}
	}
	if found {
		for _, o := range others {
			l.native(ctx, o)
		}
	}
	return found
}

func (l *loader) formOf(dir string) (folderSet, bool) {
	for _, s := range folderSets() {
		if (l.options.Source == "" || l.options.Source == s.name) && s.is(dir) {
			return s, true
		}
	}
	return folderSet{}, false
}

// foreign loads one folder of another set: its files are used where they are.
func (l *loader) foreign(dir string, s folderSet) {
	d, problems := s.read(dir)
	if len(problems) == 0 {
		d.task.Source = s.name
		text, err := yaml.Marshal(&d.task)
		if err != nil {
			problems = append(problems, tasks.Problem{Message: err.Error()})
		} else {
			var t *tasks.Task
			if t, problems = tasks.Parse(text, dir); t != nil {
				l.add(t, tasks.Problem{File: dir, Task: t.ID, Field: "id"}, dir)
			}
		}
	}
	for _, p := range problems {
		if p.File == "" {
			p.File = dir
		}
		p.Line, p.Column, p.Field = 0, 0, d.rowField(p.Field)
		l.problem(p)
	}
}

// workdirLine is a WORKDIR that names a plain path.
var workdirLine = regexp.MustCompile(`(?mi)^\s*WORKDIR\s+"?(/[^\s"$]*)"?\s*$`)

// workdirOf gives the last WORKDIR of a Dockerfile; "/app", the sets' own habit, where it has none.
func workdirOf(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return "/app"
	}
	found := workdirLine.FindAllStringSubmatch(string(data), -1)
	if len(found) == 0 {
		return "/app"
	}
	dir := filepath.Clean(found[len(found)-1][1])
	if dir == "/" {
		return "/app"
	}
	return dir
}

// readText reads a file that must be there.
func readText(dir, name string) (string, []tasks.Problem) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", []tasks.Problem{{File: filepath.Join(dir, name), Message: "cannot be read: " + err.Error(), Remedy: "the set's tasks need it"}}
	}
	return string(data), nil
}

// idOf makes an id of a folder's name, or of a name with an owner before it.
func idOf(name string) string {
	name = strings.ReplaceAll(name, "/", "__")
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '-'
	}, name)
}
