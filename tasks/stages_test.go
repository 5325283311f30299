package tasks

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Tasks that begin alike share what they begin with, and what is there is not built again.
func TestStagesAreShared(t *testing.T) {
	l := newPrepareLab(t)
	var mu sync.Mutex
	var built []string
	l.preparer.Progress = func(task, step string) {
		mu.Lock()
		defer mu.Unlock()
		built = append(built, task+" "+step)
	}
	task := func(id, workdir, line string) *Task {
		return &Task{ID: id, Instruction: "i", Workdir: workdir, Dir: t.TempDir(), Network: Network{Setup: "none"},
			Build: &Build{Base: "leaky:1", Pre: []string{"echo made > made"}, Run: []string{line}}}
	}
	ctx := context.Background()
	for _, x := range []*Task{task("a", "/wa", "echo a > a"), task("b", "/wb", "echo b > b"), task("c", "/wa", "echo a > a")} {
		p, err := l.preparer.Prepare(ctx, x, false)
		if err != nil {
			t.Fatal(err)
		}
		box := l.start(p)
		for _, name := range []string{"made", x.Workdir} {
			if _, err := os.Stat(filepath.Join(box.Root, name)); err != nil {
				t.Errorf("task %s: %v", x.ID, err)
			}
		}
	}
	if want := []string{"a build.pip", "a build.run", "b build.run"}; !slices.Equal(built, want) {
		t.Errorf("built %q, want %q", built, want)
	}
}

// Many at once build once, also from two data folders' points of view of one lock folder.
func TestStagesAreBuiltOnce(t *testing.T) {
	l := newPrepareLab(t)
	var mu sync.Mutex
	count := 0
	progress := func(string, string) {
		mu.Lock()
		defer mu.Unlock()
		count++
	}
	l.preparer.Progress = progress
	other := &Preparer{Engine: l.engine, Dir: l.preparer.Dir, Progress: progress}
	task := &Task{ID: "a", Instruction: "i", Workdir: "/wa", Dir: t.TempDir(), Network: Network{Setup: "none"},
		Build: &Build{Base: "leaky:1", Pre: []string{"sleep 0.2"}, Run: []string{"echo a > a"}}}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p := l.preparer
			if i%2 == 1 {
				p = other
			}
			if _, err := p.Prepare(context.Background(), task, false); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if count != 2 {
		t.Errorf("%d stages were built, want 2", count)
	}
}

// A failing stage names its field, and leaves no image that a later run takes for it.
func TestStageFails(t *testing.T) {
	l := newPrepareLab(t)
	task := &Task{ID: "a", Instruction: "i", Workdir: "/wa", Dir: t.TempDir(), Network: Network{Setup: "none"},
		Build: &Build{Base: "leaky:1", Pre: []string{"true", "test -e given"}, Run: []string{"true"}}}
	for range 2 {
		_, err := l.preparer.Prepare(context.Background(), task, false)
		if err == nil || !strings.Contains(err.Error(), "build.pre[1]: exit 1: test -e given") {
			t.Errorf("error is %v", err)
		}
	}
}

// pip's configuration files count where the environment is silent.
func TestHostAccessOfPip(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	conf := "[global]\nindex-url = https://mirror.test/simple\ntrusted_host: mirror.test\n  other.test\ncert = " + ca + "\n# index-url = no\n[list]\nformat = columns\n"
	for name, text := range map[string]string{"ca.pem": "PEM", "pip.conf": conf} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"PIP_CONFIG_FILE": filepath.Join(dir, "pip.conf"), "HOME": dir}
	a := HostAccess(func(name string) string { return vars[name] })
	if a.Env["PIP_INDEX_URL"] != "https://mirror.test/simple" || a.Env["PIP_TRUSTED_HOST"] != "mirror.test other.test" || string(a.CA) != "PEM" {
		t.Errorf("access is %+v", a)
	}
	vars["PIP_INDEX_URL"] = "https://env.test/simple"
	if a := HostAccess(func(name string) string { return vars[name] }); a.Env["PIP_INDEX_URL"] != "https://env.test/simple" {
		t.Errorf("the environment does not win: %+v", a.Env)
	}
}
