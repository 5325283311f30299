package tasks

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"sort"
	"strings"

	"proctor/tasks/strict"
)

// checker holds a decoded task against what fields mean, beyond their types.
type checker struct {
	*strict.Decoder
	task   *Task
	onDisk bool // files beside the task can be named
	root   *os.Root
}

// Words that fields take.
var (
	networkWords = []string{"none", "allowlist", "open"}
	graderKinds  = []string{"patch", "state"}
	reportKinds  = []string{"junit", "pytest-json", "go-test-json", "log:<parser>", "reward-file", "exit"}
	rewardWords  = []string{"binary", "fraction"}
)

var (
	idForm      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	envForm     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	repoForm    = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+$`)
	commitForm  = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
	hostForm    = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*(:[0-9]{1,5})?$`)
	logParser   = regexp.MustCompile(`^log:[A-Za-z0-9._-]+$`)
	packageForm = regexp.MustCompile(`^[@A-Za-z0-9][@A-Za-z0-9._/-]*$`)
)

func (c *checker) result() (*Task, []Problem) {
	sort.SliceStable(c.Errors, func(i, j int) bool { return c.Errors[i].Line < c.Errors[j].Line })
	var problems []Problem
	for _, e := range c.Errors {
		problems = append(problems, Problem{Line: e.Line, Column: e.Column, Task: c.task.ID, Field: e.Field, Message: e.Message, Remedy: e.Remedy})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return c.task, nil
}

func (c *checker) check() {
	if c.onDisk {
		root, err := os.OpenRoot(c.task.Dir)
		if err == nil {
			defer func() { _ = root.Close() }()
			c.root = root
		}
	}
	t := c.task
	c.need("id", t.ID)
	if t.ID != "" && !idForm.MatchString(t.ID) {
		c.Fail("id", fmt.Sprintf("%q is not an id", t.ID), "use letters, digits, '.', '_' and '-', at most 128, starting with a letter or digit")
	}
	c.instruction()
	c.image()
	c.workdir()
	for name := range t.Env {
		if !envForm.MatchString(name) {
			c.Fail("env."+name, "is not a variable's name", "use letters, digits and '_'")
		}
	}
	for i, line := range t.Setup {
		c.shellLine(fmt.Sprintf("setup[%d]", i), line)
	}
	c.network()
	c.limits()
	c.paths()
	c.vars()
	c.grader()
	c.solution()
}

func (c *checker) need(field, value string) {
	if value == "" && !c.failed(field) {
		c.Fail(field, "is missing", "add `"+field+": ...`")
	}
}

// failed reports whether the field already has an error, so that one fault is told once.
func (c *checker) failed(field string) bool {
	for _, e := range c.Errors {
		if e.Field == field {
			return true
		}
	}
	return false
}

func (c *checker) oneOf(field, value string, words []string) {
	for _, w := range words {
		if value == w {
			return
		}
	}
	c.Fail(field, fmt.Sprintf("%q is not known", value), "use one of: "+strings.Join(words, ", "))
}

func (c *checker) shellLine(field, line string) {
	if strings.TrimSpace(line) == "" || strings.ContainsRune(line, 0) {
		c.Fail(field, "is not a shell line", "write a command, or take it out")
	}
}

// absolutePath checks a path inside the sandbox: absolute, clean, not the root.
func (c *checker) absolutePath(field, p string) {
	switch {
	case !strings.HasPrefix(p, "/"):
		c.Fail(field, fmt.Sprintf("%q is not absolute", p), "start it with /")
	case strings.ContainsRune(p, 0) || path.Clean(p) != strings.TrimSuffix(p, "/"):
		c.Fail(field, fmt.Sprintf("%q is not a plain path", p), "write "+path.Clean(strings.ReplaceAll(p, "\x00", "")))
	}
}

func (c *checker) workdir() {
	c.need("workdir", c.task.Workdir)
	if c.task.Workdir == "" {
		return
	}
	if c.task.Workdir == "/" {
		return // probes and tasks about a whole machine work at the root
	}
	c.absolutePath("workdir", c.task.Workdir)
	c.task.Workdir = path.Clean(c.task.Workdir)
}

func (c *checker) network() {
	n := &c.task.Network
	if n.Setup == "" {
		n.Setup = "open"
	}
	if n.Agent == "" {
		n.Agent = "none"
	}
	c.oneOf("network.setup", n.Setup, networkWords)
	c.oneOf("network.agent", n.Agent, networkWords)
	c.hosts("network.allowed_hosts", n.AllowedHosts)
	c.hosts("network.setup_hosts", n.SetupHosts)
	if n.Agent == "allowlist" && len(n.AllowedHosts) == 0 && n.PackageIndex == nil {
		c.Fail("network.allowed_hosts", "is empty, and the agent's network is an allowlist", "name the hosts, or write agent: none")
	}
	if n.Setup == "allowlist" && len(n.AllowedHosts)+len(n.SetupHosts) == 0 && n.PackageIndex == nil {
		c.Fail("network.setup_hosts", "is empty, and so are the allowed hosts, and setup's network is an allowlist", "name the hosts, or write setup: none")
	}
	if n.Setup != "allowlist" && len(n.SetupHosts) > 0 {
		c.Fail("network.setup_hosts", "stands beside setup: "+n.Setup, "write setup: allowlist, or take it out")
	}
	if n.PackageIndex == nil {
		return
	}
	if n.Setup != "allowlist" && n.Agent != "allowlist" {
		c.Fail("network.package_index", "no phase has an allowlist to reach it by", "write agent: allowlist, or take it out")
	}
	if _, err := n.PackageIndex.cutOff(); err != nil {
		c.Fail("network.package_index.before", fmt.Sprintf("%q is not a day or an instant", n.PackageIndex.Before), "write the base commit's date, such as \"2023-05-01\" or \"2023-05-01T12:00:00Z\"")
	}
}

func (c *checker) hosts(field string, hosts []string) {
	for i, h := range hosts {
		if !hostForm.MatchString(h) {
			c.Fail(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%q is not a host's name", h), "write a name such as example.org, without scheme and path")
		}
	}
}

func (c *checker) limits() {
	l := c.task.Limits
	for _, f := range []struct {
		name  string
		value float64
	}{{"cpus", l.CPUs}, {"memory_mb", float64(l.MemoryMB)}, {"pids", float64(l.Pids)}, {"open_files", float64(l.OpenFiles)},
		{"disk_mb", float64(l.DiskMB)}, {"lifetime_s", float64(l.LifetimeS)}} {
		if f.value < 0 || f.value != f.value || f.value > 1e9 {
			c.Fail("limits."+f.name, "is out of range", "use a number from 0 (the default) to 1e9")
		}
	}
}

func (c *checker) paths() {
	t := c.task
	for i, p := range t.HiddenPaths {
		field := fmt.Sprintf("hidden_paths[%d]", i)
		c.absolutePath(field, p)
		t.HiddenPaths[i] = path.Clean(p)
		if within(t.Workdir, t.HiddenPaths[i]) {
			c.Fail(field, "holds the workdir: nothing would be left", "name a folder below it")
		}
	}
	for i, p := range t.TestPaths {
		if p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(path.Clean(p), "..") || strings.ContainsRune(p, 0) {
			c.Fail(fmt.Sprintf("test_paths[%d]", i), fmt.Sprintf("%q does not lie in the workdir", p), "write it relative to the workdir: tests/")
		}
	}
}

// within reports whether p is dir or lies below it. Both are clean and absolute.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

func (c *checker) vars() {
	v := c.task.Vars
	if v.UpstreamRepo != "" && (!repoForm.MatchString(v.UpstreamRepo) || strings.Contains(v.UpstreamRepo, "..")) {
		c.Fail("vars.upstream_repo", fmt.Sprintf("%q is not owner/name", v.UpstreamRepo), repoRemedy(v.UpstreamRepo))
	}
	if v.Package != "" && !packageForm.MatchString(v.Package) {
		c.Fail("vars.package", fmt.Sprintf("%q is not a package's name", v.Package), "write the name alone, without version")
	}
	if v.BaseCommit != "" && !commitForm.MatchString(v.BaseCommit) {
		c.Fail("vars.base_commit", fmt.Sprintf("%q is not a commit's id", v.BaseCommit), "write at least 7 hexadecimal digits, in lower case")
	}
	c.hosts("vars.upstream_hosts", v.UpstreamHosts)
	c.hosts("vars.allowed_hosts", v.AllowedHosts)
}

// repoRemedy shows how a repository given as a URL is written.
func repoRemedy(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		if p := strings.Trim(strings.TrimSuffix(u.Path, ".git"), "/"); p != "" {
			return "write " + p
		}
	}
	return "write it as owner/name"
}
