package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// allowed says which packages of ours a folder may import, by prefix; the longest prefix of a
// package's path that is a key speaks. Engines are wired in cmd only, so nobody but cmd may import
// one.
var allowed = map[string][]string{
	"sandbox":             {},
	"sandbox/box":         {"sandbox"},
	"sandbox/confine":     {"sandbox"},
	"sandbox/docker":      {"sandbox", "sandbox/box", "sandbox/confine", "sandbox/diskwatch"},
	"sandbox/oci":         {"sandbox", "sandbox/box", "sandbox/confine", "sandbox/diskwatch"},
	"sandbox/sandboxtest": {"sandbox", "sandbox/box"},
	"sandbox/pool":        {"sandbox"},
	"sandbox/egress":      {"sandbox"},
	"sandbox/diskwatch":   {},
	"rules":               {"rules", "internal/lazydfa"},
	"judge":               {"judge", "internal/lazydfa"},
	"monitor":             {"sandbox", "rules", "judge", "monitor"},
	"tasks":               {"sandbox", "tasks"},
	"internal/lazydfa":    {},
	"internal":            {"sandbox", "rules", "judge", "monitor", "tasks", "internal"},
	"cmd/boxd":            {"sandbox", "sandbox/box"},
	"cmd/proctor":         {"sandbox", "sandbox/box", "sandbox/confine", "sandbox/docker", "sandbox/oci", "sandbox/pool", "sandbox/egress", "rules", "judge", "monitor", "tasks", "internal"},
}

// engines are the packages that only cmd may import.
var engines = []string{"sandbox/docker", "sandbox/oci", "sandbox/kube"}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportDirections(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, "proctor/")
		may, ok := ruleFor(from)
		if !ok {
			t.Errorf("%s lies in no folder of the layout; put it where a reader would look, or add the folder here", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, "proctor/")
			if !ours || permitted(from, to, may) {
				continue
			}
			t.Errorf("%s imports %s; it may import only %v", from, to, may)
		}
	}
}

// ruleFor gives the imports that the longest matching folder allows.
func ruleFor(pkg string) ([]string, bool) {
	folder := folderOf(pkg)
	return allowed[folder], folder != ""
}

// folderOf gives the folder that speaks for a package; "" where none does.
func folderOf(pkg string) (best string) {
	for folder := range allowed {
		if under(pkg, folder) && len(folder) > len(best) {
			best = folder
		}
	}
	return best
}

func permitted(from, to string, may []string) bool {
	for _, e := range engines {
		if under(to, e) && !under(from, e) && !strings.HasPrefix(from, "cmd/") {
			return false
		}
	}
	for _, folder := range may {
		if under(to, folder) {
			return true
		}
	}
	// A folder's own sub-packages, such as sandbox/box/wire for sandbox/box; and all of a top folder's, for those that have
	// no line of their own.
	top, _, _ := strings.Cut(from, "/")
	return under(to, from) || (top != "sandbox" && under(to, top) && folderOf(from) == top)
}

func under(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// packages lists every package of the module with its imports, tests' apart.
func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "proctor/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// The table itself is held against what it must refuse.
func TestDirectionsRefuse(t *testing.T) {
	for _, tc := range []struct{ from, to string }{
		{"sandbox", "rules"}, {"rules", "monitor"}, {"judge", "rules"}, {"monitor", "internal/api"}, {"tasks", "monitor"},
		{"internal/rollouts", "sandbox/docker"}, {"tasks", "sandbox/docker"}, {"sandbox/box", "sandbox/docker"},
		{"internal/lazydfa", "internal/store"}, {"rules", "internal/store"},
	} {
		may, ok := ruleFor(tc.from)
		if !ok || permitted(tc.from, tc.to, may) {
			t.Errorf("%s may import %s", tc.from, tc.to)
		}
	}
}
