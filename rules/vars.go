package rules

import (
	"regexp"
	"sort"
	"strings"
)

// taskVars are the variables that rules may name as ${task.NAME}, with their meaning.
var taskVars = map[string]string{
	"hidden_paths":   "absolute paths that the agent must not see",
	"test_paths":     "the task's visible tests: folders, files or patterns, relative to workdir",
	"upstream_repo":  "owner/name of the project's public repository",
	"upstream_hosts": "hosts that serve the project's source or releases",
	"package":        "name under which registries publish the project",
	"upstream_owner": "owner of the project's public repository, where the name differs; worked out",
	"upstream_name":  "name of the project's public repository, where the owner's differs; worked out",
	"package_leaf":   "last part of the package's name, as languages spell it; worked out",
	"base_version":   "version at the start commit",
	"fix_version":    "first version that holds the fix",
	"base_commit":    "the start commit",
	"allowed_hosts":  "hosts that the agent may reach",
	"network":        "none, allowlist or open",
	"workdir":        "the project's folder",
	"instruction":    "the text of the task",
}

// TaskVars lists the task variables with their meaning.
func TaskVars() map[string]string {
	out := make(map[string]string, len(taskVars))
	for k, v := range taskVars {
		out[k] = v
	}
	return out
}

func knownVar(name string) bool { return taskVars[name] != "" }

// varNames lists the names of the task variables, sorted.
func varNames() []string {
	out := make([]string, 0, len(taskVars))
	for k := range taskVars {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// TestTask gives the task variables that inline tests run under where they override nothing.
func TestTask() Vars {
	return Vars{
		"workdir":       {"/testbed"},
		"hidden_paths":  {"/testbed/.eval", "/hidden", "/eval.sh"},
		"test_paths":    {"tests"},
		"upstream_repo": {"acme/widgets"},
		"upstream_hosts": {"github.com", "raw.githubusercontent.com", "codeload.github.com", "api.github.com", "acme.github.io",
			"widgets.example.org"},
		"package":      {"widgets"},
		"base_version": {"1.3.0"},
		"fix_version":  {"1.4.0"},
		"base_commit":  {"4b825dc642cb6eb9a060e54bf8d69288fbee4904"},
		"network":      {"none"},
		"instruction":  {"Widgets that touch are not merged; merge them."},
	}
}

// varRef finds ${task.NAME}.
var varRef = regexp.MustCompile(`\$\{task\.([A-Za-z0-9_]*)\}`)

// namedVars lists the task variables that a value names, in order.
func namedVars(value string) []string {
	var out []string
	for _, m := range varRef.FindAllStringSubmatch(value, -1) {
		out = append(out, m[1])
	}
	return out
}

// values gives the values of a variable, those that are worked out from others included.
func (v Vars) values(name string) []string {
	from := ""
	switch name {
	case "upstream_owner", "upstream_name":
		from = "upstream_repo"
	case "package_leaf":
		from = "package"
	}
	if from == "" || len(v[name]) > 0 {
		return v[name]
	}
	var out []string
	for _, x := range v[from] {
		parts := strings.FieldsFunc(x, func(r rune) bool { return r == '/' || r == ':' })
		n := len(parts)
		switch {
		case n > 0 && name == "package_leaf":
			out = append(out, parts[n-1])
			if strings.Contains(parts[n-1], "-") {
				out = append(out, strings.ReplaceAll(parts[n-1], "-", "_"), strings.ReplaceAll(parts[n-1], "-", "::"))
			}
		case n < 2 || strings.EqualFold(parts[n-2], parts[n-1]): // one word twice names nothing in particular
		case name == "upstream_owner":
			out = append(out, parts[n-2])
		case name == "upstream_name":
			out = append(out, parts[n-1])
		}
	}
	return out
}

// maxExpansions bounds what the variables of one value may expand to.
const maxExpansions = 1000

// expand puts the variables of a value in, through quote; a list gives one text for each member.
// missing names the variables that are undefined or empty, and then out is empty.
func (v Vars) expand(value string, quote func(string) string) (out, missing []string) {
	out = []string{value}
	for _, name := range namedVars(value) {
		var with []string
		for _, x := range v.values(name) {
			if x != "" {
				with = append(with, quote(x))
			}
		}
		if len(with) == 0 {
			missing = append(missing, name)
			continue
		}
		var next []string
		for _, o := range out {
			for _, w := range with {
				if len(next) < maxExpansions {
					next = append(next, strings.Replace(o, "${task."+name+"}", w, 1))
				}
			}
		}
		out = next
	}
	if missing != nil {
		return nil, missing
	}
	return out, nil
}
