package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"proctor/internal/rollouts"
	"proctor/sandbox/egress"
	"proctor/sandbox/egress/index/indextest"
)

// packages are what the tests' npm registry has: the task's package before and after its fix, a helper that
// came in time, and one that came later.
var packages = []indextest.Package{
	{Name: "acme-intervals", Version: "1.2.0", Published: "2022-01-01T00:00:00.000Z"},
	{Name: "acme-intervals", Version: "1.3.0", Published: "2022-06-01T00:00:00.000Z"},
	{Name: "acme-intervals", Version: "1.4.0", Published: "2022-08-01T00:00:00.000Z"},
	{Name: "acme-intervals", Version: "1.3.9", Published: "2024-08-01T00:00:00.000Z"},
	{Name: "helper", Version: "1.0.0", Published: "2022-01-01T00:00:00.000Z", Requires: map[string]string{"@acme/base": "^0.5.0"}},
	{Name: "helper", Version: "1.1.0", Published: "2023-06-01T00:00:00.000Z"},
	{Name: "@acme/base", Version: "0.5.0", Published: "2021-01-01T00:00:00.000Z"},
}

// A task with a package index on a server that has an npm registry alone: npm has what it needs, the fixed
// version cannot be had, pip is told of no index, and the record holds what was asked for.
func TestAllowlistNPM(t *testing.T) {
	t.Parallel()
	image := needNode(t)
	registry := indextest.NewNPM(t, packages...)
	s := startServer(t, t.TempDir(), "--npm-index", strings.Replace(registry.URL, "http://", "http://secret-of-the-index@", 1))
	task, err := json.Marshal(map[string]any{
		"id": "reach", "instruction": "work", "image": image, "workdir": "/work",
		"network": map[string]any{"agent": "allowlist", "package_index": map[string]string{"before": "2023-05-01"}},
		"vars":    map[string]string{"package": "acme-intervals", "base_version": "1.3.0", "fix_version": "1.4.0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.client.Create(t.Context(), rollouts.CreateRequest{Mode: "shadow", Task: task})
	if err != nil {
		t.Fatalf("create: %v\n%s", err, s.stderr)
	}
	for _, tc := range []struct{ command, want string }{
		{"npm install --silent helper acme-intervals 2>&1; node -p 'require(\"helper\") + \" \" + require(\"@acme/base\") + \" \" + require(\"acme-intervals\")'", "1.0.0 0.5.0 1.3.0\n"},
		{"npm install 2>&1 | tail -n 1", "up to date in "},
		{"npm install acme-intervals@1.4.0 2>&1 | grep -c 'No matching version found for acme-intervals@1.4.0'", "1\n"},
		{"npm install 'helper@>1.0.0' 2>&1 | grep -c 'No matching version found'", "1\n"},
		{"npm install no-such-package 2>&1 | grep -c 'E404'", "1\n"},
		{"npm view acme-intervals versions --json | tr -d ' \\n'", `["1.2.0","1.3.0"]`},
		{"curl -s -o /dev/null -w '%{http_code}\\n' ${npm_config_registry}acme-intervals/-/acme-intervals-1.4.0.tgz", "404\n"},
		{"curl -sS " + registry.Origin + "/tarballs/acme-intervals-1.4.0.tgz 2>&1", "Couldn't connect to server\n"},
		{"curl -sS http://127.0.0.12/simple/helper/ 2>&1", "Couldn't connect to server\n"},
		{"env | grep -c -e INDEX_URL -e secret-of", "0\n"},
	} {
		got, err := s.bash(made, tc.command, "")
		if err != nil || !strings.Contains(got.Output, tc.want) {
			t.Errorf("%s: %v %q, want %q", tc.command, err, got.Output, tc.want)
		}
	}
	if slices.ContainsFunc(registry.Asked(), func(path string) bool {
		return strings.HasPrefix(path, "/tarballs/") && (strings.Contains(path, "1.4.0") || strings.Contains(path, "1.1.0") || strings.Contains(path, "1.3.9"))
	}) {
		t.Errorf("the registry was asked for %q", registry.Asked())
	}
	s.recorded(t, made, egress.KindNPM+" "+egress.Carried+" GET /helper", egress.KindNPM+" "+egress.Carried+" GET /@acme/base/-/base-0.5.0.tgz")
}
