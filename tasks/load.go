package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"go.yaml.in/yaml/v3"

	"proctor/tasks/strict"
)

// TaskFile is the name of a native task's file.
const TaskFile = "task.yaml"

// maxTaskFile bounds a task file, in bytes: a long issue text with a thousand test ids is a tenth.
const maxTaskFile = 4 << 20

// Load reads native tasks. A path is a task.yaml, a task's folder, or a folder of such folders. It
// gives every task that holds, in order of id, and every problem of the others: one bad task never
// hides a good one. An id that two tasks claim is a problem of the later.
func Load(ctx context.Context, paths ...string) ([]*Task, []Problem) {
	var tasks []*Task
	var problems []Problem
	seen := map[string]string{}
	loaded := map[string]bool{}
	for _, path := range paths {
		files, err := taskFiles(path)
		if err != nil {
			problems = append(problems, *err)
			continue
		}
		for _, file := range files {
			if ctx.Err() != nil {
				return tasks, append(problems, Problem{File: file, Message: "not read: " + ctx.Err().Error()})
			}
			if loaded[absolute(file)] {
				continue // the same file by two paths is one task
			}
			loaded[absolute(file)] = true
			task, found := loadFile(file)
			problems = append(problems, found...)
			if task == nil {
				continue
			}
			if first, ok := seen[task.ID]; ok {
				problems = append(problems, Problem{File: file, Task: task.ID, Field: "id",
					Message: fmt.Sprintf("%q is already the id of %s", task.ID, first), Remedy: "give each task an id of its own"})
				continue
			}
			seen[task.ID] = file
			tasks = append(tasks, task)
		}
	}
	sort.Slice(tasks, func(i, j int) bool { return tasks[i].ID < tasks[j].ID })
	return tasks, problems
}

func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}

// taskFiles finds the task files that a path stands for.
func taskFiles(path string) ([]string, *Problem) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &Problem{File: path, Message: reason(err), Remedy: "name a task.yaml, a task's folder, or a folder of task folders"}
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	if own := filepath.Join(path, TaskFile); isFile(own) {
		return []string{own}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, &Problem{File: path, Message: reason(err), Remedy: "make the folder readable"}
	}
	var files []string
	for _, e := range entries {
		if own := filepath.Join(path, e.Name(), TaskFile); isFile(own) {
			files = append(files, own)
		}
	}
	if len(files) == 0 {
		return nil, &Problem{File: path, Message: "holds no " + TaskFile + ", and no folder that does", Remedy: "name a task's folder"}
	}
	return files, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// reason is a file error without the path, which the Problem already names.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// loadFile reads one task; nil where it does not hold.
func loadFile(file string) (*Task, []Problem) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxTaskFile {
		return nil, []Problem{{File: file, Message: fmt.Sprintf("is %d bytes, over the limit of %d", info.Size(), maxTaskFile), Remedy: "move long texts to files beside it"}}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, []Problem{{File: file, Message: reason(err), Remedy: "make the file readable"}}
	}
	task, problems := parseYAML(data, filepath.Dir(file))
	for i := range problems {
		problems[i].File = file
	}
	return task, problems
}

// Parse reads a task from the bytes of a task.yaml whose files lie in dir. Problems name no file.
func Parse(data []byte, dir string) (*Task, []Problem) { return parseYAML(data, dir) }

// YAML gives the task as a task.yaml that Parse reads back.
func (t *Task) YAML() ([]byte, error) { return yaml.Marshal(t) }

// parseYAML reads a task from the bytes of a task.yaml that lies in dir.
func parseYAML(data []byte, dir string) (*Task, []Problem) {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, []Problem{syntaxProblem(err)}
	}
	if node.Kind == 0 {
		return nil, []Problem{{Message: "is empty", Remedy: "write at least id, instruction, image and workdir"}}
	}
	task := &Task{}
	d := strict.Decode(&node, task)
	task.Dir = absolute(dir)
	c := &checker{Decoder: d, task: task, onDisk: true}
	c.check()
	return c.result()
}
