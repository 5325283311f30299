package decoy

import (
	"context"
	"strings"
	"testing"

	"proctor/rules"
)

// A rule's family decides the words where it fits, and is passed over where it does not.
func TestRulesFamily(t *testing.T) {
	for name, tc := range map[string]struct {
		text, class, family string
		want                string // in what is shown
		recorded            string
	}{
		"class's own":        {"cat .eval/x", rules.HiddenArtifact, "", "cat: .eval/x: No such file or directory", famNoFile},
		"closed":             {"cat .eval/x", rules.HiddenArtifact, WishDenied, "cat: .eval/x: Permission denied", WishDenied},
		"absent":             {"cat .eval/x", rules.HarnessIntrospection, WishNoFile, "cat: .eval/x: No such file or directory", famNoFile},
		"nothing":            {"cat .eval/x", rules.HiddenArtifact, WishEmpty, "", famEmpty},
		"no such program":    {"docker ps", rules.SandboxEscape, WishNoTool, "docker: command not found", famNoTool},
		"network":            {"curl -sS https://h.test/x", rules.SandboxEscape, WishNetwork, "curl: (6) Could not resolve host: h.test", famNetwork},
		"version":            {"pip download p==2", rules.UpstreamPackage, WishVersion, "No matching distribution found for p==2", famPackage},
		"does not fit":       {"cat .eval/x", rules.HiddenArtifact, WishRevision, "cat: .eval/x: No such file or directory", famNoFile},
		"unknown":            {"cat .eval/x", rules.HiddenArtifact, "no-such-family", "cat: .eval/x: No such file or directory", famNoFile},
		"import of a module": {"python3 -c 'import p.core'", rules.UpstreamPackage, WishImport, "ModuleNotFoundError: No module named 'p.core'", WishImport},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Options{Vars: rules.Vars{"hidden_paths": {"/w/.eval"}, "workdir": {"/w"}}})
			ev := eventOf(t, tc.text, "/w", "/w/.eval")
			c := &ev.Commands[0]
			if c.Program == "curl" {
				c.Net.Hosts, c.Paths = []string{"h.test"}, nil
			}
			if c.Program == "pip" {
				ev.Packages = []rules.Package{{Name: "p", Spec: "p==2"}}
			}
			if c.Program == "python3" {
				ev.Scripts = []rules.Script{{Lang: "python", Content: "import p.core", Copies: []string{"/usr/lib/p/core.py"}}}
			}
			req := blocked(ev, tc.class, func(rules.Command) bool { return true })
			req.Hits[0].Decoy = tc.family
			a := m.Answer(context.Background(), req)
			if got := string(a.Result.Output); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("shown %q, want %q", got, tc.want)
			}
			if a.Family != tc.recorded {
				t.Errorf("recorded as %s, want %s", a.Family, tc.recorded)
			}
		})
	}
}

// A trace ends for good only where its end cannot have been left out.
func TestTraceEnds(t *testing.T) {
	for text, traced := range map[string]bool{
		"set -x":                         true,
		"set -x; ls; set +x":             false,
		"set -x\nls\nset +x; echo $?":    false,
		"set -o xtrace; ls; set +x":      false,
		"set -x; if ls; then set +x; fi": true,
		"set -x; false && set +x":        true,
		"set +x; set -x":                 true,
		"(set -x; ls; set +x)":           true,
		"set -v; ls; set +x":             true,
		"set -x; trap ls DEBUG; set +x":  true,
		"alias printf=x; set -x; set +x": true,
		"set -x; set -e; ls; set +x":     true,
		"ls":                             false,
	} {
		m := New(Options{})
		m.Follow(Request{Call: callOf(text)})
		if got := m.watched(""); got != traced {
			t.Errorf("%q: watched %v, want %v", text, got, traced)
		}
	}
}
