package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func none(string) string { return "" }

func TestPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	body := "listen: 127.0.0.1:1\npreset: strict\nlease: 1m\njudge:\n  url: http://127.0.0.1:9/v1\n  model: m\n"
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PROCTOR_LISTEN": "127.0.0.1:2", "PROCTOR_TASKS": "a:b", "PROCTOR_JUDGE_TIMEOUT": "5s", "PROCTOR_MAX_ROLLOUTS": "7"}
	c, err := Load(file, func(k string) string { return env[k] })
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:2" || c.Preset != "strict" || c.Lease != time.Minute || c.Judge.Model != "m" ||
		c.Judge.Timeout != 5*time.Second || len(c.Tasks) != 2 || c.MaxRollouts != 7 || c.Engine != "docker" {
		t.Errorf("variables over file over defaults: got %+v", c)
	}
	if err := c.Check(); err != nil {
		t.Errorf("Check: %v", err)
	}
}

func TestErrorsNameWhatAndWhere(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		env  map[string]string
		want []string
	}{
		"unknown key":   {"listen: a\nlisen: b\n", nil, []string{"c.yaml", "line 2", `unknown key "lisen"`, "config show"}},
		"wrong type":    {"max_rollouts: many\n", nil, []string{"c.yaml", "line 1"}},
		"bad number":    {"", map[string]string{"PROCTOR_MAX_ROLLOUTS": "x"}, []string{"PROCTOR_MAX_ROLLOUTS", "whole number"}},
		"bad duration":  {"", map[string]string{"PROCTOR_LEASE": "soon"}, []string{"PROCTOR_LEASE", "15m"}},
		"unclosed yaml": {"listen: [a\n", nil, []string{"c.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(file, []byte(tc.body), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(file, func(k string) string { return tc.env[k] })
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not name %q", err, w)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"engine":    func(c *Config) { c.Engine = "podman" },
		"preset":    func(c *Config) { c.Preset = "lax" },
		"on_outage": func(c *Config) { c.Judge.OnOutage = "panic" },
		"model":     func(c *Config) { c.Judge.URL = "http://x" },
		"pool_max":  func(c *Config) { c.PoolMax = -1 },
		"lease":     func(c *Config) { c.Lease = 0 },
		"private":   func(c *Config) { c.Egress.Private = "10.0.0.0/8, lan" },
		"max_mb":    func(c *Config) { c.Egress.MaxMB = -1 },

		"package_index": func(c *Config) { c.PackageIndex = "ftp://index.example.test" },
		"npm_index":     func(c *Config) { c.NPMIndex = "registry.example.test" },
	} {
		c := Default()
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := Load("", none); err != nil {
		t.Errorf("defaults alone: %v", err)
	}
}

// What is printed of an index's address has no user in it; ranges are read as they stand.
func TestEgressSettings(t *testing.T) {
	c := Default()
	c.PackageIndex, c.Egress.Private = "https://me:secret@index.example.test/simple/", "10.1.2.3/8, fd00::/8,"
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if got := c.Shown().PackageIndex; got != "https://index.example.test/simple/" {
		t.Errorf("shown as %q", got)
	}
	c.NPMIndex = "https://secret@registry.example.test/npm"
	if err := c.Check(); err != nil || c.Shown().NPMIndex != "https://registry.example.test/npm" {
		t.Errorf("%v, shown as %q", err, c.Shown().NPMIndex)
	}
	ranges, err := c.Egress.Ranges()
	if err != nil || len(ranges) != 2 || ranges[0].String() != "10.0.0.0/8" {
		t.Errorf("%v %v", ranges, err)
	}
	c.PackageIndex = "http://me:secret@[broken/"
	if err := c.Check(); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
