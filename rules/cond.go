package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// condition is a compiled key of a block: it holds where, in every group, some text of the field
// meets some atom. Without the modifier all there is one group.
type condition struct {
	key      string
	op       string
	ent      entity
	slot     int // of the field among the packs' fields of the entity
	groups   []group
	exists   *bool // exists: wanted presence; groups is empty then
	resolved bool  // rests on a fact that was resolved, not on text; see resolvedKeys
	cost     int   // conditions of a block are tried from the cheapest
}

// group is atoms of which one has to hold.
type group struct {
	equals   map[string]struct{} // for many equal values
	atoms    []atom
	needs    []*need    // per atom: what a matching text holds; nil: not known
	any      *need      // needs as one formula, packed; nil where a value needs nothing
	numbered bool       // the needs' literals have ids of the field's automaton
	ids      []int      // of literals of which every text that meets the group holds one; see index.go
	some     []wordMask // ids, packed
	worth    int        // of ids as a key; 0 for none
	dirs     []string   // of under, where every value is a plain folder
	values   []string   // expanded, for explain
}

// condError is a problem of one key of a pack.
type condError struct {
	code string
	at   int // index of the value; -1 for the key
	err  error
}

// Error gives the problem without its place.
func (e *condError) Error() string { return e.err.Error() }

// comparison splits modifiers into the comparison and the two that go with any.
func comparison(mods []string) (op string, list, all bool, err *condError) {
	for _, m := range mods {
		switch {
		case !slices.Contains(modifiers, m):
			return "", false, false, &condError{"unknown-modifier", -1, fmt.Errorf("there is no modifier %q%s", m, suggest(m, modifiers))}
		case m == "list":
			list = true
		case m == "all":
			all = true
		case op != "":
			return "", false, false, &condError{"bad-modifier", -1, fmt.Errorf("%s and %s are both comparisons", op, m)}
		default:
			op = m
		}
	}
	if op == "" {
		op = "equals"
	}
	if op == "exists" && (list || all) {
		return "", false, false, &condError{"bad-modifier", -1, fmt.Errorf("exists goes with no other modifier")}
	}
	return op, list, all, nil
}

// compileCond compiles c under vars. missing names task variables that are undefined or empty; the
// condition is nil then. open are the needs of the values whatever the variables are, with their
// literals numbered; nil where derive is called later, or never.
func compileCond(c *Cond, lists map[string][]string, vars Vars, open []*need) (*condition, []string, *condError) {
	op, list, all, cerr := comparison(c.Mods)
	if cerr != nil {
		return nil, nil, cerr
	}
	out := &condition{key: c.Key, op: op, cost: costs[op]}
	if op == "exists" {
		return existsCond(out, c)
	}
	values, at := c.Values, indices(len(c.Values))
	if list {
		values, at, cerr = fromLists(c, lists)
		if cerr != nil {
			return nil, nil, cerr
		}
	}
	quote := func(s string) string { return s }
	if op == "re" {
		quote = regexp.QuoteMeta
	}
	var g group
	var missing []string
	for i, v := range values {
		if v == "" && op != "equals" {
			return nil, nil, &condError{"empty-value", at[i], fmt.Errorf("an empty value of %s matches every text", c.Key)}
		}
		if all {
			g = group{}
		}
		expanded, miss := vars.expand(v, quote)
		missing = append(missing, miss...)
		for _, x := range expanded {
			if err := g.add(op, x, vars.One("workdir")); err != nil {
				return nil, nil, &condError{valueCodes[op], at[i], err}
			}
			if open != nil && op != "equals" {
				g.needs = append(g.needs, open[i])
				if op == "re" {
					g.atoms[len(g.atoms)-1].guard(x)
				}
			}
		}
		if all {
			out.groups = append(out.groups, g)
		}
	}
	if !all {
		out.groups = []group{g}
	}
	for i := range out.groups {
		out.groups[i].folders(op, vars.One("workdir"))
		if open != nil && op != "equals" {
			out.groups[i].seal()
			out.groups[i].file()
		}
	}
	if missing != nil {
		return nil, missing, nil
	}
	return out, nil, nil
}

// costs orders comparisons: cheap and selective first.
var costs = map[string]int{"exists": 0, "equals": 1, "startswith": 2, "endswith": 2, "domain": 3, "under": 4, "cidr": 4, "semver": 4, "contains": 5, "glob": 6, "re": 7}

// searching is the cost from which a comparison reads the text to its end.
const searching = 5

// valueCodes are the lint codes of values that do not parse.
var valueCodes = map[string]string{"re": "bad-regex", "glob": "bad-glob", "under": "bad-glob", "cidr": "bad-cidr", "semver": "bad-semver"}

// add appends the comparison with one expanded value; what it needs is the caller's to add.
func (g *group) add(op, value, workdir string) error {
	g.values = append(g.values, value)
	if op == "equals" {
		if g.equals == nil {
			g.equals = map[string]struct{}{}
		}
		g.equals[value] = struct{}{}
		return nil
	}
	a, err := newAtom(op, value, workdir)
	if err != nil {
		return err
	}
	g.atoms = append(g.atoms, a)
	return nil
}

// derive says what a text that meets each value holds.
func (c *condition) derive() {
	for i := range c.groups {
		g := &c.groups[i]
		for _, v := range g.values {
			if c.op != "equals" {
				g.needs = append(g.needs, needOf(c.op, v))
			}
		}
	}
}

// folders notes the folders that under compares with, for the index, where none is a pattern.
func (g *group) folders(op, workdir string) {
	if op != "under" {
		return
	}
	for _, v := range g.values {
		for _, dir := range underDirs(v, workdir) {
			if strings.ContainsAny(dir, "*?[") {
				g.dirs = nil
				return
			}
			g.dirs = append(g.dirs, dir)
		}
	}
}

// filtered says whether the field's literals can rule the condition out.
func (c *condition) filtered() bool {
	return len(c.groups) > 0 && c.groups[0].numbered && len(c.groups[0].needs) > 0
}

// existsCond reads the one value of exists.
func existsCond(out *condition, c *Cond) (*condition, []string, *condError) {
	if len(c.Values) != 1 || c.Values[0] != "true" && c.Values[0] != "false" {
		return nil, nil, &condError{"bad-modifier", -1, fmt.Errorf("%s must be true or false", c.Key)}
	}
	want := c.Values[0] == "true"
	out.exists = &want
	return out, nil, nil
}

// fromLists replaces names of lists by their members.
func fromLists(c *Cond, lists map[string][]string) (values []string, at []int, _ *condError) {
	for i, name := range c.Values {
		members, ok := lists[name]
		if !ok {
			return nil, nil, &condError{"undefined-list", i, fmt.Errorf("there is no list %q%s", name, suggest(name, keys(lists)))}
		}
		for _, m := range members {
			values, at = append(values, m), append(at, i)
		}
	}
	return values, at, nil
}

// indices gives 0 to n-1.
func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// keys lists the keys of a map, sorted.
func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// found is a text that meets a condition.
type found struct {
	text string
	find func(string) string // the piece of it; nil: all
}

// piece gives what of the text matched, the whole where that is empty.
func (f found) piece() string {
	if f.find == nil {
		return f.text
	}
	if p := f.find(f.text); p != "" {
		return p
	}
	return f.text
}

// match says whether some text meets the group, and which. lits are the literals that the texts
// hold; only a group whose needs are numbered looks at them.
func (g *group) match(texts []string, lits bits, how reading) (found, bool) {
	for _, t := range texts {
		if _, ok := g.equals[t]; ok {
			return found{text: t}, true
		}
		for i := range g.atoms {
			// Of a single value possible has said it already.
			if g.numbered && !how.plain && len(g.atoms) > 1 && !g.needs[i].holds(lits) {
				continue
			}
			if g.atoms[i].holds(t, how) {
				return found{t, g.atoms[i].find}, true
			}
		}
	}
	return found{}, false
}

// match says whether the texts of the field meet the condition, and one that did.
func (c *condition) match(texts []string, lits bits, how reading) (found, bool) {
	if c.exists != nil {
		has := slices.ContainsFunc(texts, func(t string) bool { return t != "" })
		if has {
			return found{text: texts[0]}, *c.exists
		}
		return found{}, !*c.exists
	}
	var first found
	for i := range c.groups {
		f, ok := c.groups[i].match(texts, lits, how)
		if !ok {
			return found{}, false
		}
		if i == 0 {
			first = f
		}
	}
	return first, len(c.groups) > 0
}

// resolvedKeys says which conditions rest on resolved facts: those that the normaliser had from the
// host or the task, so that no reading of the agent's words is involved. A hit of a block with such
// a condition is Resolved, and a rule with `judge: {skip: resolved}` may block on it alone.
//
//	command.git.foreign, any comparison but exists: false     an object that is neither ancestor nor own
//	command|script.hidden, file.hidden: true                  a path that leads to a hidden one
//	any field with ${task.hidden_paths} by under or equals     the same, by the task's list
//	net.upstream                                               a host or URL of the task's own project
//	net.upstream, net.denied                                   hosts and URLs by the task's own variables
//	net.host, net.url with ${task.upstream_hosts} by domain or equals, or ${task.upstream_repo}
//	package.relation: fixed, newer                             a release of the task's package with the fix
//	result.canaries, result.witness                            proof by planted secret or by kernel
func resolvedKey(e entity, c *Cond) bool {
	if slices.Contains(c.Mods, "exists") && slices.Contains(c.Values, "false") {
		return false
	}
	switch entityNames[e] + "." + c.Field {
	case "command.git.foreign", "command.hidden", "script.hidden", "command.net.upstream", "script.net.upstream",
		"result.canaries", "result.witness":
		return true
	case "file.hidden":
		return slices.Contains(c.Values, "true")
	case "package.relation":
		return !slices.ContainsFunc(c.Values, func(v string) bool { return v != "fixed" && v != "newer" })
	}
	vars := strings.Join(c.Values, " ")
	exact := !slices.ContainsFunc(c.Mods, func(m string) bool { return m == "contains" || m == "re" || m == "glob" })
	switch {
	case strings.Contains(vars, "${task.hidden_paths}"):
		return exact && e != entCall
	case strings.HasPrefix(c.Field, "net."):
		return strings.Contains(vars, "${task.upstream_hosts}") && exact || strings.Contains(vars, "${task.upstream_repo}")
	}
	return false
}
