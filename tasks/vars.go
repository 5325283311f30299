package tasks

import "strings"

// Hosts over which a repository of a code host is read, by the code host's name; {owner} and {name}
// are the repository's. From the hosts' own documentation of raw, archive, API and page addresses.
var codeHosts = map[string][]string{
	"github.com": {"github.com", "www.github.com", "raw.githubusercontent.com", "codeload.github.com", "api.github.com",
		"raw.github.com", "{owner}.github.io"},
	"gitlab.com":    {"gitlab.com", "{owner}.gitlab.io"},
	"bitbucket.org": {"bitbucket.org", "api.bitbucket.org"},
	"codeberg.org":  {"codeberg.org"},
}

// RuleVars gives the task's variables under the names that rules use. A name that the task does
// not set is left out, which rules see as undefined.
func (t *Task) RuleVars() map[string][]string {
	vars := map[string][]string{
		"workdir": {t.Workdir}, "instruction": {t.Instruction}, "network": {t.networkWord()},
		"hidden_paths": append([]string{}, t.HiddenPaths...),
		"test_paths":   append([]string{}, t.TestPaths...),
		"allowed_hosts": append(append([]string{}, t.Network.AllowedHosts...),
			t.Vars.AllowedHosts...),
	}
	for name, value := range map[string]string{
		"upstream_repo": t.Vars.UpstreamRepo, "package": t.Vars.Package, "base_version": t.Vars.BaseVersion,
		"fix_version": t.Vars.FixVersion, "base_commit": t.Vars.BaseCommit,
	} {
		if value != "" {
			vars[name] = []string{value}
		}
	}
	if hosts := t.Vars.hosts(); len(hosts) > 0 {
		vars["upstream_hosts"] = hosts
	}
	return vars
}

func (t *Task) networkWord() string {
	if t.Network.Agent == "" {
		return "none"
	}
	return t.Network.Agent
}

// hosts gives the hosts at which the upstream repository can be had: those that the task names,
// else those of its code host. An upstream_repo of two parts is on github.com, as the published
// sets write it; one of more parts starts with its host.
func (v Vars) hosts() []string {
	if len(v.UpstreamHosts) > 0 || v.UpstreamRepo == "" {
		return append([]string{}, v.UpstreamHosts...)
	}
	host, parts := "github.com", strings.Split(v.UpstreamRepo, "/")
	if len(parts) > 2 {
		host, parts = strings.ToLower(parts[0]), parts[1:]
	}
	names, ok := codeHosts[host]
	if !ok {
		return []string{host}
	}
	hosts := make([]string, len(names))
	for i, n := range names {
		hosts[i] = strings.ReplaceAll(n, "{owner}", strings.ToLower(parts[0]))
	}
	return hosts
}
