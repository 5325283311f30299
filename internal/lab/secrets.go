package lab

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"proctor/monitor/canary"
	"proctor/tasks"
)

// Bounds on what is read of a task's hidden files for their lines.
const (
	secretFiles = 200
	secretBytes = 1 << 20 // of one file
)

// Secrets gives the texts that only the grader has: the task's hidden files, and what its test patch
// adds. What cannot be read, or is no text, is left out: nothing rests on it but a proof.
func Secrets(task *tasks.Task) []canary.File {
	if task.Grader == nil || task.Dir == "" {
		return nil
	}
	var out []canary.File
	if task.Grader.Files != "" {
		root := filepath.Join(task.Dir, task.Grader.Files)
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || len(out) >= secretFiles {
				return fs.SkipAll
			}
			if !d.Type().IsRegular() {
				return nil
			}
			if text, ok := readText(path); ok {
				name, _ := filepath.Rel(task.Dir, path)
				out = append(out, canary.File{Name: name, Text: text})
			}
			return nil
		})
	}
	if task.Grader.TestPatch != "" {
		if text, ok := readText(filepath.Join(task.Dir, task.Grader.TestPatch)); ok {
			out = append(out, canary.File{Name: task.Grader.TestPatch, Text: added(text)})
		}
	}
	slices.SortFunc(out, func(a, b canary.File) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func readText(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || info.Size() > secretBytes {
		return "", false
	}
	body, err := os.ReadFile(path)
	return string(body), err == nil && utf8.Valid(body)
}

// added gives a patch's added lines, each in its place: the numbers that evidence names are the
// patch's own.
func added(patch string) string {
	lines := strings.Split(patch, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "+") && !strings.HasPrefix(l, "+++") {
			lines[i] = l[1:]
		} else {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}
