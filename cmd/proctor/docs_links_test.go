package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/internal/rollouts"
)

// pages gives the project's documents by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range append(names, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}

var (
	docLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	docMake    = regexp.MustCompile("(?m)(?:^|`)make ([a-z]+(?:-[a-z]+)*)")
	docProctor = regexp.MustCompile("(?m)(?:^\\$ |^|`)(?:bin/)?proctor ([a-z]+)(?: ([a-z]+))?")
	docSource  = regexp.MustCompile("`((?:cmd|internal|monitor|sandbox|tasks|rules|judge|docker|clients|testdata)/[\\w./-]+)`")
	makeTarget = regexp.MustCompile(`(?m)^([a-z]+(?:-[a-z]+)*):`)
)

// Every relative link resolves, headings included.
func TestDocsLinks(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", name, m[1], err)
			}
			if anchor != "" && !slices.Contains(anchors(all[target]), anchor) {
				t.Errorf("%s: %s has no heading for %s", name, target, m[1])
			}
		}
	}
}

// anchors gives the names under which headings can be linked to.
func anchors(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " "); ok && strings.HasPrefix(line, "#") {
			word := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(heading), "")
			out = append(out, strings.ReplaceAll(word, " ", "-"))
		}
	}
	return out
}

// Every make target, subcommand and source file that a document names is there.
func TestDocsNames(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, m[1])
	}
	for name, text := range pages(t) {
		for _, m := range docMake.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(targets, m[1]) {
				t.Errorf("%s: there is no target for %q", name, m[0])
			}
		}
		for _, m := range docProctor.FindAllStringSubmatch(text, -1) {
			if !hasCommand(newRoot(), m[1], m[2]) {
				t.Errorf("%s: there is no command for %q", name, m[0])
			}
		}
		for _, m := range docSource.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s: %s is not there", name, m[1])
			}
		}
	}
}

// hasCommand reports whether the tree holds a command, and below it sub where it has commands.
func hasCommand(root *cobra.Command, name, sub string) bool {
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	if i < 0 {
		return name == "help" || name == "completion"
	}
	below := root.Commands()[i]
	return sub == "" || !below.HasSubCommands() || hasCommand(below, sub, "")
}

var apiCode = regexp.MustCompile(`(?m)^\t"(\w+)": +\{http\.Status`)

// The operations page knows every error code, every variable and key of the settings, and every metric.
func TestOperationsPageIsWhole(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	problems, err := os.ReadFile("../../internal/api/problem.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range apiCode.FindAllStringSubmatch(string(problems), -1) {
		names = append(names, "| `"+m[1]+"` |")
	}
	if len(names) < 20 {
		t.Fatalf("found %d codes in problem.go", len(names))
	}
	names = append(names, variables(reflect.TypeFor[config.Config]())...)
	registry := prometheus.NewRegistry()
	if _, err := rollouts.Metrics(registry); err != nil {
		t.Fatal(err)
	}
	families := make(chan *prometheus.Desc, 100)
	registry.Describe(families)
	close(families)
	for d := range families {
		names = append(names, "`"+regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]+"`")
	}
	for _, name := range names {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/operations.md does not hold %s", name)
		}
	}
}

// variables gives the env tags of a struct.
func variables(of reflect.Type) []string {
	var out []string
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, variables(f.Type)...)
			continue
		}
		if name := f.Tag.Get("env"); name != "" {
			out = append(out, "`"+name+"`")
		}
	}
	return out
}
