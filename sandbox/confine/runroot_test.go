package confine

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// inTemp gives a run root in a folder of the test's own.
func inTemp(t *testing.T) *RunRoot {
	t.Helper()
	r := NewRunRoot(filepath.Join(t.TempDir(), "root"), "owner")
	t.Cleanup(func() {
		folders, _ := r.Folders()
		for _, folder := range folders {
			if err := r.Drop(folder); err != nil {
				t.Error(err)
			}
		}
		r.DropIfEmpty()
	})
	return r
}

func TestRunRootPathIsNeutralAndTheOwners(t *testing.T) {
	a, b := NewRunRoot("", "data-a"), NewRunRoot("", "data-b")
	if a.path == b.path || a.path != NewRunRoot("", "data-a").path || strings.Contains(a.path, "proctor") || strings.Contains(a.path, "data") {
		t.Errorf("%s and %s", a.path, b.path)
	}
}

func TestRunFoldersComeAndGo(t *testing.T) {
	r := inTemp(t)
	one, err := r.NewFolder()
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.NewFolder()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := r.Folders(); err != nil || len(found) != 2 {
		t.Errorf("%v %v", found, err)
	}
	if r.DropIfEmpty(); !exists(one) {
		t.Error("a root with folders went")
	}
	if os.Geteuid() == 0 && r.mounts {
		if err := os.WriteFile(filepath.Join(one, "fill"), make([]byte, 1<<20), 0o600); err == nil {
			t.Error("a run folder holds 1 MiB")
		}
	}
	for range 2 { // what is gone may go again
		if err := r.Drop(one); err != nil {
			t.Error(err)
		}
	}
	if exists(one) || !exists(two) {
		t.Error("drop took the wrong one")
	}
	for _, path := range []string{"/etc", r.path, filepath.Join(two, "x"), "/", ""} {
		if err := r.Drop(path); err == nil {
			t.Errorf("%q was dropped", path)
		}
	}
	// A second root at the same place, as after a restart, finds it mounted.
	again := NewRunRoot(r.path, "owner")
	if err := again.Open(); err != nil || again.mounts != r.mounts {
		t.Errorf("%v, mounts %v", err, again.mounts)
	}
}

func TestEnginesOfOneOwnerDoNotDropEachOthersRoot(t *testing.T) {
	r := inTemp(t)
	source := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(source, []byte("agent"), 0o600); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			own := NewRunRoot(r.path, "owner")
			for range 20 {
				folder, err := own.NewFolder()
				if err != nil {
					t.Error(err)
					return
				}
				path, err := own.Install(source)
				if err != nil || !exists(path) || !exists(folder) {
					t.Errorf("%v, agent there %v, folder there %v", err, exists(path), exists(folder))
				}
				if err := own.Drop(folder); err != nil {
					t.Error(err)
				}
				own.DropIfEmpty()
			}
		})
	}
	group.Wait()
}

func TestInstallIsByContent(t *testing.T) {
	r := inTemp(t)
	source := filepath.Join(t.TempDir(), "agent")
	install := func(content string) string {
		t.Helper()
		if err := os.WriteFile(source, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		path, err := r.Install(source)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two := install("v1"), install("v2")
	if one == two || install("v1") != one {
		t.Errorf("%s and %s", one, two)
	}
	if info, err := os.Stat(one); err != nil || info.Mode().Perm() != 0o555 || filepath.Base(one) != "docker-init" {
		t.Errorf("%v %v", info, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(one)); len(left) != 1 {
		t.Errorf("parts left: %v", left)
	}
	if found, err := r.Folders(); err != nil || len(found) != 0 {
		t.Errorf("the agent's folder passes for a run folder: %v %v", found, err)
	}
	if _, err := r.Install(filepath.Join(r.path, "none")); err == nil {
		t.Error("a missing agent was installed")
	}
}

func TestInstalledAgentBearsNoWordOfOurs(t *testing.T) {
	for _, pair := range neutralWords {
		if len(pair[0]) != len(pair[1]) {
			t.Errorf("%q and %q differ in length: every address behind them would move", pair[0], pair[1])
		}
	}
	r := inTemp(t)
	source := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(source, []byte("\x7fELF proctor/sandbox/box.go path\tproctor/cmd/boxd"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := r.Install(source)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "\x7fELF dockerd/process/box.go path\tdockerd/cmd/init" {
		t.Errorf("%q", got)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
