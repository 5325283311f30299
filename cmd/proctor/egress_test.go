package main

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/sandbox/egress"
	"proctor/sandbox/egress/index/indextest"
)

// releases are what the tests' index has: the task's package before and after its fix, a helper that came
// in time, and one that came later.
var releases = []indextest.Release{
	{Project: "acme-intervals", Version: "1.2", Uploaded: "2022-01-01T00:00:00Z"},
	{Project: "acme-intervals", Version: "1.3", Uploaded: "2022-06-01T00:00:00Z"},
	{Project: "acme-intervals", Version: "1.4", Uploaded: "2022-08-01T00:00:00Z"},
	{Project: "acme-intervals", Version: "1.3.9", Uploaded: "2024-08-01T00:00:00Z"},
	{Project: "helper", Version: "1.0", Uploaded: "2022-01-01T00:00:00Z", Requires: []string{"helper-base"}},
	{Project: "helper", Version: "2.0", Uploaded: "2023-06-01T00:00:00Z"},
	{Project: "helper-base", Version: "0.5", Uploaded: "2021-01-01T00:00:00Z"},
}

// An allowlist and a package index, end to end: honest work has what it needs, the fixed version cannot be
// had, what is refused looks like a machine that resolves nothing, the record holds all of it, and a
// server that was killed carries on.
func TestAllowlist(t *testing.T) {
	t.Parallel()
	index := indextest.New(t, releases...)
	origin, err := url.Parse(index.Origin)
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, t.TempDir(), "--package-index", index.URL, "--egress-private", "127.0.0.0/8")
	task, err := json.Marshal(map[string]any{
		"id": "reach", "instruction": "work", "image": baseImage, "workdir": "/work",
		"network": map[string]any{"agent": "allowlist", "allowed_hosts": []string{"localhost:" + origin.Port()}, "package_index": map[string]string{"before": "2023-05-01"}},
		"vars":    map[string]string{"package": "acme-intervals", "base_version": "1.3", "fix_version": "1.4"},
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.client.Create(t.Context(), rollouts.CreateRequest{Mode: "shadow", Task: task})
	if err != nil {
		t.Fatalf("create: %v\n%s", err, s.stderr)
	}
	direct := index.Origin + "/files/acme_intervals-1.4-py3-none-any.whl"
	for _, tc := range []struct{ command, want string }{
		{"pip install -q --target a helper 2>&1; cd a && python3 -c 'import helper, helper_base as b; print(helper.V, b.V)'; cd ..", "1.0 0.5\n"},
		{"pip install -q --target b acme-intervals 2>&1; cd b && python3 -c 'import acme_intervals as a; print(a.V)'; cd ..", "1.3\n"},
		{"pip download -q acme-intervals==1.4 2>&1", "(from versions: 1.2, 1.3)\nERROR: No matching distribution found for acme-intervals==1.4\n"},
		{"pip download -q 'acme-intervals>1.3' 2>&1", "No matching distribution found for acme-intervals>1.3\n"},
		{"pip download -q helper==2.0 2>&1", "(from versions: 1.0)\nERROR: No matching distribution found for helper==2.0\n"},
		{"pip download -q no-such-project 2>&1", "No matching distribution found for no-such-project\n"},
		{"curl -s -o /dev/null -w '%{http_code}\\n' $PIP_INDEX_URL/../files/acme-intervals/acme_intervals-1.4-py3-none-any.whl", "404\n"},
		{"curl -sS " + direct + " 2>&1", "Couldn't connect to server\n"},
		{"curl -sS https://refused.example.test/ 2>&1", "curl: (6) Could not resolve host: refused.example.test\n"},
		{"git ls-remote https://refused.example.test/r 2>&1", "fatal: unable to access 'https://refused.example.test/r/': Could not resolve host: refused.example.test\n"},
		{"python3 -c 'import socket; socket.getaddrinfo(\"refused.example.test\", 443)' 2>&1 | tail -n 1", "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"},
		{"curl -sS http://192.0.2.1/ 2>&1", "Couldn't connect to server\n"},
		{"curl -sS -x 127.0.0.11:3128 http://localhost:" + origin.Port() + "/hello 2>&1", "hello\n"},
		{"curl -sS -p -x 127.0.0.11:3128 http://localhost:" + origin.Port() + "/hello 2>&1", "hello\n"},
	} {
		got, err := s.bash(made, tc.command, "")
		if err != nil || !strings.HasSuffix(got.Output, tc.want) {
			t.Errorf("%s: %v %q, want %q", tc.command, err, got.Output, tc.want)
		}
	}
	s.kill()
	s.start()
	if got, err := s.bash(made, "pip download -q --no-deps helper 2>&1; ls *.whl", ""); err != nil || got.Output != "helper-1.0-py3-none-any.whl\n" {
		t.Errorf("after a crash: %v %q", err, got.Output)
	}
	for _, path := range index.Asked() {
		if strings.Contains(path, "1.4") || strings.Contains(path, "2.0") || strings.Contains(path, "1.3.9") {
			t.Errorf("the index was asked for %s", path)
		}
	}
	s.recorded(t, made, egress.KindIndex+" "+egress.Carried+" GET /simple/helper/", egress.KindName+" "+egress.Refused+" refused.example.test",
		egress.KindHTTP+" "+egress.Carried+" GET /hello")
}

// A decoy for a fetch from the task's upstream looks as a host does that the allowlist does not have. And a
// task that needs an index that the server does not have is refused.
func TestAllowlistDecoys(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	_, err := s.client.Create(t.Context(), rollouts.CreateRequest{Task: json.RawMessage(`{"id": "reach", "instruction": "work", "image": "` + baseImage + `", "workdir": "/work",
		"network": {"agent": "allowlist", "package_index": {"before": "2023-05-01"}}}`)})
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != rollouts.CodeUnsupported || !strings.Contains(p.Detail, "--package-index URL, --npm-index URL or both") {
		t.Errorf("%+v", err)
	}
	if views, _, err := s.client.List(t.Context(), nil); err != nil || len(views) != 0 {
		t.Errorf("%+v %v", views, err)
	}
	made, err := s.client.Create(t.Context(), rollouts.CreateRequest{Task: json.RawMessage(`{"id": "reach", "instruction": "work", "image": "` + baseImage + `", "workdir": "/work",
		"network": {"agent": "allowlist", "allowed_hosts": ["good.example.test"]},
		"vars": {"upstream_repo": "upstream.example.test/acme/intervals", "package": "intervals", "fix_version": "1.4"}}`)})
	if err != nil {
		t.Fatalf("create: %v\n%s", err, s.stderr)
	}
	commands := []string{"curl -sS https://HOST/acme/intervals/archive/1.4.tar.gz", "curl -s https://HOST/acme/intervals/raw/1.4/a.py",
		"git clone https://HOST/acme/intervals.git r", "git ls-remote https://HOST/acme/intervals"}
	for _, command := range commands {
		var seen []monitor.Observation
		for _, host := range []string{"upstream.example.test", "downriver.example.test"} {
			got, err := s.bash(made, strings.ReplaceAll(command, "HOST", host), "")
			if err != nil {
				t.Fatal(err)
			}
			got.Output = strings.ReplaceAll(got.Output, host, "HOST")
			seen = append(seen, got)
		}
		if seen[0].Output != seen[1].Output || *seen[0].ExitCode != *seen[1].ExitCode {
			t.Errorf("%s: %q %d, and of another host %q %d", command, seen[0].Output, *seen[0].ExitCode, seen[1].Output, *seen[1].ExitCode)
		}
	}
	record, err := s.client.Trajectory(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	decoyed := 0
	for _, c := range record.Calls {
		if c.Verdict.Action == monitor.Decoyed {
			decoyed++
		}
	}
	if decoyed < len(commands) {
		t.Errorf("%d of %d fetches from the upstream were answered by decoys", decoyed, len(commands))
	}
}

// recorded submits a rollout, and looks in its events for what was done: kind, outcome, and request or host.
func (c *child) recorded(t *testing.T, made rollouts.Created, keys ...string) {
	t.Helper()
	if err := c.client.Submit(t.Context(), made.ID, made.AgentToken); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, key := range keys {
		want[key] = false
	}
	stop := errors.New("enough")
	err := c.client.Watch(t.Context(), made.ID, func(e client.Event) error {
		var d struct{ Connection egress.Event }
		if e.Kind == "egress" && json.Unmarshal(e.Data, &d) == nil {
			for key := range want {
				if strings.HasPrefix(key, d.Connection.Kind+" "+d.Connection.Outcome+" ") && (strings.HasSuffix(key, d.Connection.Request) && d.Connection.Request != "" || strings.HasSuffix(key, d.Connection.Host)) {
					want[key] = true
				}
			}
		}
		if e.Kind == rollouts.StatusSubmitted {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	for key, seen := range want {
		if !seen {
			t.Errorf("no event of %q", key)
		}
	}
	if got, err := c.bash(made, "true", ""); err == nil {
		t.Errorf("a call after the submission: %+v", got)
	}
}
