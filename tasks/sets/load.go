package sets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"proctor/tasks"
)

// Options of Load.
type Options struct {
	Dir    string // where tasks made of rows are written; made if it is not there
	Source string // name of the set that all rows are of; "" to tell by their fields
}

// set is one published set's form.
type set struct {
	name   string
	what   string
	detect func(*row) bool
	draft  func(*row) *draft
}

// all are the sets of rows, the most particular first: the first that knows a row takes it.
func all() []set {
	return []set{
		{"multi-swe", "Multi-SWE-bench, Multi-SWE-RL", isMultiSWE, multiSWE},
		{"swe-bench-pro", "SWE-bench Pro", isPro, pro},
		{"r2e-gym", "R2E-Gym", isR2E, r2e},
		{"swe-smith", "SWE-smith", isSmith, smith},
		{"swe-rebench", "SWE-rebench, SWE-rebench-V2", isRebench, rebench},
		{"swe-gym", "SWE-Gym, Nemotron", isGym, gym},
		{"swe-bench", "SWE-bench, Lite, Verified", isSWEBench, swebench},
	}
}

// Names gives the names that Options.Source takes, with what each is.
func Names() [][2]string {
	var names [][2]string
	for _, s := range all() {
		names = append(names, [2]string{s.name, s.what})
	}
	return append(names, [2]string{"native", "folders with a task.yaml"}, [2]string{"harbor", "Harbor, Terminal-Bench 2"}, [2]string{"terminal-bench", "Terminal-Bench 1"})
}

// Load reads tasks of every form that there is: native folders, folders of other sets, and files of
// rows, also all those of a folder. It gives the tasks that hold, in order of id, and what is wrong
// with the others. An id that two tasks claim is a problem of the later.
func Load(ctx context.Context, o Options, paths ...string) ([]*tasks.Task, []tasks.Problem) {
	l := &loader{options: o, seen: map[string]string{}}
	if o.Source != "" && !knownSource(o.Source) {
		return nil, []tasks.Problem{{Field: "source", Message: fmt.Sprintf("%q is no set that is known", o.Source), Remedy: "use one of " + sourceWords()}}
	}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			l.problem(tasks.Problem{File: path, Message: "not read: " + err.Error()})
			break
		}
		l.path(ctx, path)
	}
	sort.Slice(l.tasks, func(i, j int) bool { return l.tasks[i].ID < l.tasks[j].ID })
	return l.tasks, l.problems
}

func sourceWords() string {
	var words []string
	for _, n := range Names() {
		words = append(words, n[0])
	}
	return strings.Join(words, ", ")
}

func knownSource(name string) bool {
	for _, n := range Names() {
		if n[0] == name {
			return true
		}
	}
	return false
}

type loader struct {
	options  Options
	tasks    []*tasks.Task
	problems []tasks.Problem
	seen     map[string]string // id -> where it was first
}

func (l *loader) problem(p ...tasks.Problem) { l.problems = append(l.problems, p...) }

// path takes a file of rows, a folder of files of rows, or hands the path to the loaders of folders.
func (l *loader) path(ctx context.Context, path string) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		if err == nil && isRows(path) {
			l.rows(ctx, path)
			return
		}
		l.native(ctx, path)
		return
	}
	if l.folder(ctx, path) {
		return
	}
	files := rowFiles(path)
	for _, f := range files {
		l.rows(ctx, f)
	}
	if len(files) == 0 {
		l.native(ctx, path)
	}
}

// rowFiles gives the files of rows in a folder, or in its folder "data", where published sets have them.
func rowFiles(dir string) []string {
	for _, d := range []string{dir, filepath.Join(dir, "data")} {
		entries, err := os.ReadDir(d)
		if err != nil {
			continue
		}
		var files []string
		for _, e := range entries {
			if e.Type().IsRegular() && isRows(e.Name()) && e.Name() != "dataset_infos.json" {
				files = append(files, filepath.Join(d, e.Name()))
			}
		}
		if len(files) > 0 {
			return files
		}
	}
	return nil
}

func (l *loader) native(ctx context.Context, path string) {
	found, problems := tasks.Load(ctx, path)
	l.problem(problems...)
	for _, t := range found {
		l.add(t, tasks.Problem{File: filepath.Join(t.Dir, tasks.TaskFile), Task: t.ID, Field: "id"}, filepath.Join(t.Dir, tasks.TaskFile))
	}
}

// add takes a task whose id is new; at says where it stands, for the error and for later ones.
func (l *loader) add(t *tasks.Task, at tasks.Problem, place string) {
	if first, ok := l.seen[t.ID]; ok {
		if first == place {
			return // the same by two paths
		}
		at.Message, at.Remedy = fmt.Sprintf("%q is already the id of %s", t.ID, first), "give each task an id of its own, or drop one"
		l.problem(at)
		return
	}
	l.seen[t.ID] = place
	l.tasks = append(l.tasks, t)
}

// rows reads a file of rows.
func (l *loader) rows(ctx context.Context, file string) {
	l.problem(eachRow(file, func(r *row) {
		if ctx.Err() == nil {
			l.row(r)
		}
	})...)
	if err := ctx.Err(); err != nil {
		l.problem(tasks.Problem{File: file, Message: "not read to the end: " + err.Error()})
	}
}

func (l *loader) row(r *row) {
	s, ok := l.setOf(r)
	if !ok {
		l.problem(r.faults...)
		return
	}
	d := s.draft(r)
	if len(r.faults) > 0 {
		l.problem(r.faults...)
		return
	}
	at := tasks.Problem{File: r.file, Line: r.line, Row: r.number, Task: d.task.ID}
	folder, err := d.write(l.options.Dir)
	if err != nil {
		at.Message, at.Remedy = "cannot be written down: "+err.Error(), "make room, or name another data folder"
		l.problem(at)
		return
	}
	found, problems := tasks.Load(context.Background(), folder)
	for _, p := range problems {
		p.File, p.Line, p.Column, p.Row, p.Task, p.Field = r.file, r.line, 0, r.number, d.task.ID, d.rowField(p.Field)
		l.problem(p)
	}
	for _, t := range found {
		at.Field = "instance_id"
		l.add(t, at, fmt.Sprintf("%s, row %d", r.file, r.number))
	}
}

// setOf tells a row's set by its fields, or takes the one that was asked for.
func (l *loader) setOf(r *row) (set, bool) {
	for _, s := range all() {
		if l.options.Source == s.name || l.options.Source == "" && s.detect(r) {
			return s, true
		}
	}
	var names []string
	for name := range r.fields {
		names = append(names, name)
	}
	sort.Strings(names)
	if len(names) > 12 {
		names = append(names[:12], "...")
	}
	r.fault("", "is of no set that is known: it has "+strings.Join(names, ", "), "SWE-bench's form has instance_id, repo, base_commit and problem_statement; name the set with --source")
	return set{}, false
}
