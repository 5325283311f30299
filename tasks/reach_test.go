package tasks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/egress"
)

const reachTask = `id: a
instruction: do it
image: i
workdir: /w
vars: {package: acme-intervals, base_version: "1.3", fix_version: "1.4"}
`

func TestNetworkWords(t *testing.T) {
	for name, tc := range map[string]struct {
		network string
		wrong   string // in the problem; "" for a good task
	}{
		"allowlist":             {"{agent: allowlist, allowed_hosts: [a.test, 'b.test:8443']}", ""},
		"setup":                 {"{setup: allowlist, setup_hosts: [a.test]}", ""},
		"index alone":           {"{agent: allowlist, package_index: {before: '2023-05-01'}}", ""},
		"index at an instant":   {"{setup: allowlist, package_index: {before: '2023-05-01T12:00:00+02:00'}}", ""},
		"no hosts":              {"{agent: allowlist}", "network.allowed_hosts: is empty"},
		"no hosts in setup":     {"{setup: allowlist}", "network.setup_hosts: is empty"},
		"setup hosts for none":  {"{setup: none, setup_hosts: [a.test]}", "network.setup_hosts: stands beside setup: none"},
		"a URL":                 {"{setup: allowlist, setup_hosts: ['http://a.test/']}", "network.setup_hosts[0]"},
		"index without a way":   {"{package_index: {before: '2023-05-01'}}", "network.package_index: no phase has an allowlist"},
		"index without a date":  {"{agent: allowlist, package_index: {}}", "network.package_index.before"},
		"index at no date":      {"{agent: allowlist, package_index: {before: soon}}", "network.package_index.before"},
		"a date without quotes": {"{agent: allowlist, package_index: {before: 2023-05-01}}", "network.package_index.before"},
		"an unknown field":      {"{agent: allowlist, package_index: {url: x}}", "network.package_index"},
	} {
		_, problems := Parse([]byte(reachTask+"network: "+tc.network+"\n"), t.TempDir())
		var text string
		for _, p := range problems {
			text += p.String() + "\n"
		}
		if tc.wrong == "" && text != "" || !strings.Contains(text, tc.wrong) {
			t.Errorf("%s: %q, want %q", name, text, tc.wrong)
		}
	}
}

func TestReach(t *testing.T) {
	task := &Task{Network: Network{Setup: "allowlist", Agent: "allowlist", AllowedHosts: []string{"a.test"}, SetupHosts: []string{"b.test"},
		PackageIndex: &PackageIndex{Before: "2023-05-01"}}, Vars: Vars{Package: "p", BaseVersion: "1.3", FixVersion: "1.4"}}
	agent, ok := task.AgentReach()
	if !ok || !slices.Equal(agent.Hosts, []string{"a.test"}) || agent.Index == nil || !agent.Index.Before.Equal(time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)) ||
		agent.Index.Package != "p" || agent.Index.Fix != "1.4" || agent.Index.Base != "1.3" {
		t.Errorf("%+v %v", agent, ok)
	}
	setup, ok := task.SetupReach()
	if !ok || !slices.Equal(setup.Hosts, []string{"a.test", "b.test"}) || setup.Index == nil {
		t.Errorf("%+v %v", setup, ok)
	}
	for _, word := range []string{"none", "open", ""} {
		if _, ok := (&Task{Network: Network{Agent: word, Setup: word}}).AgentReach(); ok {
			t.Errorf("%q has an allowlist", word)
		}
	}
	for _, bad := range []string{"", "soon"} {
		task.Network.PackageIndex.Before = bad
		if p, _ := task.AgentReach(); !p.Index.Before.IsZero() {
			t.Errorf("%q: %v", bad, p.Index.Before)
		}
	}
}

// A session without a relay, or a command without a proxy, is told so.
func TestOpenRelayNeedsBothEnds(t *testing.T) {
	var plain struct{ sandbox.Session }
	if err := OpenRelay(context.Background(), plain, egress.New(egress.Options{}), egress.Client{}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Error(err)
	}
	if err := OpenRelay(context.Background(), &relayed{}, nil, egress.Client{}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Error(err)
	}
	box := &relayed{}
	task := &Task{Network: Network{Agent: "allowlist", PackageIndex: &PackageIndex{Before: "2023-05-01"}}}
	policy, _ := task.AgentReach()
	if err := OpenRelay(context.Background(), box, egress.New(egress.Options{}), egress.Client{Policy: policy}); !errors.Is(err, egress.ErrNoIndex) || box.relay != nil {
		t.Error(err)
	}
	policy.Index = nil
	if err := OpenRelay(context.Background(), box, egress.New(egress.Options{}), egress.Client{Policy: policy}); err != nil || box.relay == nil {
		t.Error(err)
	}
}

type relayed struct {
	sandbox.Session
	relay sandbox.Relay
}

func (r *relayed) Relay(_ context.Context, relay sandbox.Relay) error {
	r.relay = relay
	return nil
}
