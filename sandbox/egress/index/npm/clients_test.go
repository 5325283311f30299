package npm

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proctor/sandbox/egress/index"
	"proctor/sandbox/egress/index/indextest"
)

// packages are what the clients' upstream has: the task's own before and after its fix, a helper that came
// in time, and what it needs, by a scoped name.
var packages = []indextest.Package{
	{Name: "acme-intervals", Version: "1.2.0", Published: "2022-01-01T00:00:00.000Z"},
	{Name: "acme-intervals", Version: "1.3.0", Published: "2022-06-01T00:00:00.000Z", Deprecated: "use 1.4.0"},
	{Name: "acme-intervals", Version: "1.4.0-rc.1", Published: "2022-07-01T00:00:00.000Z"},
	{Name: "acme-intervals", Version: "1.4.0", Published: "2022-08-01T00:00:00.000Z"},
	{Name: "acme-intervals", Version: "1.3.9", Published: "2024-08-01T00:00:00.000Z"},
	{Name: "helper", Version: "1.0.0", Published: "2022-01-01T00:00:00.000Z", Requires: map[string]string{"@acme/base": "^0.5.0"}},
	{Name: "helper", Version: "1.1.0", Published: "2023-06-01T00:00:00.000Z", Requires: map[string]string{"@acme/base": "^0.5.0"}},
	{Name: "@acme/base", Version: "0.5.0", Published: "2021-01-01T00:00:00.000Z"},
	{Name: "@acme/base", Version: "0.5.1", Published: "2024-01-01T00:00:00.000Z"},
}

// clients are the installers, with the words that install from a package.json and the first argument that
// adds a package to it.
var clients = []struct {
	program, install, add string
}{
	{"npm", "install", "install"},
	{"pnpm", "install", "add"},
	{"yarn", "install", "add"},
}

// Real installers, those that this machine has, on a Mirror: what is honest is installed, what came later or
// holds the fix is not found.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: starts Node many times")
	}
	upstream := indextest.NewNPM(t, packages...)
	door := httptest.NewUnstartedServer(nil)
	m, err := newMirror(index.Options{Upstream: upstream.URL}, "http://"+door.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	door.Config.Handler = m.Handler(index.Rule{Before: cutoff, Package: "acme-intervals", Fix: "1.4.0", Base: "1.3.0"})
	door.Start()
	t.Cleanup(door.Close)
	for _, c := range clients {
		t.Run(c.program, func(t *testing.T) {
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skipf("NOT TESTED, %s is not on this machine: %v", c.program, err)
			}
			dir := t.TempDir()
			work := func(args ...string) (string, error) { return client(t, dir, door.URL, c.program, args...) }
			writeManifest(t, dir, `{"name": "mine", "version": "1.0.0", "dependencies": {"helper": "^1.0.0", "acme-intervals": "*"}}`)
			if out, err := work(c.install); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := "1.0.0 1.3.0\n"
			if out, err := client(t, dir, door.URL, "node", "-p", "require('helper') + ' ' + require('acme-intervals')"); err != nil || out != want {
				t.Errorf("installed: %v %q, want %q", err, out, want)
			}
			for _, gone := range []string{"acme-intervals@1.4.0", "acme-intervals@>1.3.0", "acme-intervals@1.4.0-rc.1", "helper@1.1.0", "no-such-package"} {
				if out, err := work(c.add, gone); err == nil {
					t.Errorf("%s was installed: %s", gone, out)
				}
			}
		})
	}
	for _, path := range upstream.Asked() {
		if strings.HasPrefix(path, "/tarballs/") && strings.Contains("acme-intervals-1.4.0.tgz acme-intervals-1.4.0-rc.1.tgz acme-intervals-1.3.9.tgz helper-1.1.0.tgz base-0.5.1.tgz", filepath.Base(path)) {
			t.Errorf("the upstream was asked for %s", path)
		}
	}
}

// What npm says of what is not there is what it says of any registry.
func TestNPMWords(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: starts Node many times")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skipf("NOT TESTED, npm is not on this machine: %v", err)
	}
	upstream := indextest.NewNPM(t, packages...)
	m, err := New(index.Options{Upstream: upstream.URL})
	if err != nil {
		t.Fatal(err)
	}
	door := httptest.NewServer(m.Handler(index.Rule{Before: cutoff, Package: "acme-intervals", Fix: "1.4.0"}))
	t.Cleanup(door.Close)
	dir := t.TempDir()
	writeManifest(t, dir, `{"name": "mine", "version": "1.0.0"}`)
	for _, tc := range []struct{ line, want string }{
		{"view acme-intervals versions --json", `["1.2.0","1.3.0"]`},
		{"view acme-intervals dist-tags.latest", "1.3.0"},
		{"view acme-intervals time.modified", "2022-06-01T00:00:00.000Z"},
		{"view acme-intervals readme", ""},
		{"view @acme/base version", "0.5.0"},
		{"install acme-intervals@1.4.0", "npm error code ETARGET"},
		{"install no-such-package", "npm error code E404"},
		{"view acme-intervals@1.4.0 version", "npm error code E404"},
	} {
		out, _ := client(t, dir, door.URL, "npm", strings.Fields(tc.line)...)
		if got := strings.Join(strings.Fields(out), ""); !strings.HasPrefix(strings.ReplaceAll(got, "ERR!", "error"), strings.ReplaceAll(tc.want, " ", "")) || tc.want == "" && got != "" {
			t.Errorf("npm %s: %q, want %q", tc.line, out, tc.want)
		}
	}
}

// client runs a program as in a sandbox: with the settings of package egress, and a home of its own.
func client(t *testing.T, dir, registry, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "npm_config_registry=" + registry + "/", "YARN_REGISTRY=" + registry + "/", "pnpm_config_registry=" + registry + "/",
		"YARN_NPM_REGISTRY_SERVER=" + registry, "YARN_UNSAFE_HTTP_WHITELIST=127.0.0.1", "YARN_NODE_LINKER=node-modules", "YARN_ENABLE_IMMUTABLE_INSTALLS=false",
		"npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false", "npm_config_fetch_retries=0"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func writeManifest(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
