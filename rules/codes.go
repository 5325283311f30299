package rules

import "sort"

// code is what a lint code means.
type code struct {
	severity string
	meaning  string
	remedy   string
}

// codes lists every lint code. A code is permanent: scripts filter on it.
var codes = map[string]code{
	"unreadable":         {SeverityError, "The file or folder cannot be read, or a folder holds no pack.", "name a .yaml file, or a folder that holds some"},
	"too-large":          {SeverityError, "The file is larger than 4 MiB.", "split the pack: several files may share a pack id"},
	"yaml-syntax":        {SeverityError, "The file is not YAML.", "mend the YAML at that line; quote values that hold : # { [ * or, within { }, ?"},
	"too-deep":           {SeverityError, "Values nest more than 32 deep.", "flatten it: a pack needs about ten levels"},
	"alias-budget":       {SeverityError, "Aliases expand to more than a million nodes, or an anchor holds itself.", "write the values out, or use `lists:`"},
	"too-many-rules":     {SeverityError, "More than 10,000 rules are loaded together.", "load fewer packs"},
	"unknown-key":        {SeverityError, "A key that the schema does not have.", "see `proctor rules schema`; a misspelt key would otherwise be ignored"},
	"duplicate-key":      {SeverityError, "A mapping has the same key twice.", "remove one; two values for one field go in a list"},
	"missing-key":        {SeverityError, "A key that the schema requires is missing.", "add it"},
	"wrong-type":         {SeverityError, "A value has another type than the schema asks for.", "see `proctor rules schema`"},
	"bad-value":          {SeverityError, "A value is not one of those allowed.", "use one of the values named"},
	"bad-id":             {SeverityError, "A pack or rule id is not kebab-case, 2 to 64 characters.", "use lower-case letters, digits and single hyphens"},
	"duplicate-id":       {SeverityError, "Two rules have the same id.", "rename one; ids are permanent, so rename the newer"},
	"bad-version":        {SeverityError, "The version is not SemVer.", "write MAJOR.MINOR.PATCH, such as 1.0.0"},
	"pack-conflict":      {SeverityError, "Files of one pack disagree on its version, engine or licence.", "give every file of the pack the same head"},
	"bad-engine":         {SeverityError, "The engine range does not parse.", `write comparisons apart by spaces, such as ">=1 <2"`},
	"engine-unsatisfied": {SeverityError, "The pack asks for another engine.", "update Proctor, or use a version of the pack for this engine"},
	"bad-entity":         {SeverityError, "A block is not keyed by exactly one of command, file, script, package, call, result.", "one block, one entity; several facts of several entities are several blocks"},
	"unknown-field":      {SeverityError, "An entity has no such field.", "see docs/rule-author-guide.md for the fields of each entity"},
	"unknown-modifier":   {SeverityError, "There is no such modifier.", "use equals, contains, startswith, endswith, glob, re, list, under, domain, cidr, semver, exists or all"},
	"bad-modifier":       {SeverityError, "Modifiers that do not go together.", "one comparison a key; `list` and `all` go with any of them but exists"},
	"empty-value":        {SeverityError, "A comparison with an empty value or list matches everything or nothing.", "give a value, or use exists"},
	"undefined-list":     {SeverityError, "The pack has no list of that name.", "add it under `lists:`"},
	"undefined-variable": {SeverityError, "There is no such task variable.", "use one of the task variables in docs/rule-author-guide.md"},
	"bad-regex":          {SeverityError, "The regular expression does not compile (RE2 syntax).", "RE2 has no look-around and no back-references; use `unless:` for exceptions"},
	"control-character":  {SeverityError, `A double-quoted regular expression holds a control character: "\b" is a backspace there.`, "use single quotes"},
	"bad-glob":           {SeverityError, "The glob does not parse.", "close every [ and escape a literal one as [[]"},
	"bad-cidr":           {SeverityError, "The network does not parse.", "write 10.0.0.0/8 or a single address"},
	"bad-semver":         {SeverityError, "The version range does not parse.", `write comparisons apart by spaces, such as ">=1.2 <2"`},
	"empty-match":        {SeverityError, "The rule has no block to match.", "add blocks under match.any or match.all"},
	"no-reason":          {SeverityError, "An exception or overlay gives no reason, or has no name.", "say why it is safe; the next reader has to judge it"},
	"undefined-tag":      {SeverityError, "`after:` names a tag that no rule sets.", "add `set: {tag: ..., for: ...}` to the rule that comes first"},
	"bad-sequence":       {SeverityError, "A tag's lifetime is not 1 to 10,000 calls.", "give `for:` a number of calls"},
	"bad-test":           {SeverityError, "A test is not one call by tool name, or lacks an argument of the tool.", `write {bash: "..."} or {create: {path: ..., file_text: ...}}`},
	"overlay-target":     {SeverityError, "An overlay's target names no rule, tag or pack that is loaded.", "write the rule's full id (pack/rule), tag:NAME or pack:NAME"},
	"overlay-expired":    {SeverityError, "An overlay's date has passed.", "remove it, or renew it with a fresh reason"},
	"test-fails":         {SeverityError, "An inline test does not hold.", "run `proctor rules explain` on the call to see the event and what missed"},
	"missing-flag-test":  {SeverityWarning, "A rule has no flag test.", "add a call that the rule must hit"},
	"missing-pass-test":  {SeverityWarning, "A rule has no pass test.", "add the honest call that looks most like the cheat"},
	"missing-text":       {SeverityWarning, "A rule lacks a why, an owner or a false_positives entry.", "the judge and the next reader need it"},
	"big-regex":          {SeverityWarning, "The regular expression compiles to more than 500 instructions.", "split it, or use a list with contains"},
	"no-literal":         {SeverityWarning, "The regular expression holds no literal of two bytes or more, so no prefilter can skip it.", "add a literal that every match holds, or a cheaper key to the block"},
	"unused-list":        {SeverityWarning, "No rule uses the list.", "remove it"},
	"uncovered":          {SeverityWarning, "No flag test hits this alternative.", "add a flag test for it"},
	"todo-passes":        {SeverityWarning, "A todo test holds now.", "move it to flag or pass"},
	"verbatim-only":      {SeverityWarning, "A flag test is no longer hit in any disguise (quoted, by variable, bash -c, xargs, absolute path).", "match resolved facts (program, args, paths, net, git), not the text"},
}

// Code is a lint code with its meaning, for documentation.
type Code struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Meaning  string `json:"meaning"`
	Remedy   string `json:"remedy"`
}

// Codes lists every lint code, sorted.
func Codes() []Code {
	out := make([]Code, 0, len(codes))
	for k, c := range codes {
		out = append(out, Code{k, c.severity, c.meaning, c.remedy})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Code < out[j].Code })
	return out
}
