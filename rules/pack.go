package rules

// EngineVersion is the version of the matching language that this package implements; a pack's
// `engine` range is held against it.
const EngineVersion = "1.0.0"

// Pack is a set of rules with one id and version. Several files may share a pack id: they merge.
type Pack struct {
	ID       string              `yaml:"pack" required:"true" doc:"Pack id, kebab-case. Rule ids read pack/rule."`
	Version  string              `yaml:"version" required:"true" doc:"SemVer of the pack."`
	Engine   string              `yaml:"engine" doc:"Range of engine versions, such as \">=1 <2\"."`
	License  string              `yaml:"license" doc:"SPDX id."`
	Lists    map[string][]string `yaml:"lists" doc:"Named lists for the modifier list; they belong to all files of the pack."`
	Rules    []Rule              `yaml:"rules" doc:"The rules."`
	Overlays []Overlay           `yaml:"overlays" doc:"Changes to rules of this or other packs, without forking them."`

	Pos     Pos `yaml:"-" json:"-"`
	listPos map[string]Pos
}

// Rule says which facts of an event look like cheating.
type Rule struct {
	ID        string      `yaml:"id" required:"true" doc:"Kebab-case, permanent."`
	Title     string      `yaml:"title" required:"true" doc:"What the call does, in one line."`
	Status    string      `yaml:"status" enum:"experimental,test,stable,deprecated" doc:"How far it is trusted. A deprecated rule does not run."`
	Severity  string      `yaml:"severity" required:"true" enum:"low,medium,high,critical" doc:"Sorts and filters; never summed."`
	Level     int         `yaml:"level" min:"1" max:"4" doc:"Paranoia level, 1 (always on) to 4."`
	Category  string      `yaml:"category" required:"true" enum:"git_history,upstream_fetch,upstream_package,hidden_artifact,grader_tamper,result_forging,special_casing,fabrication,sandbox_escape,harness_introspection,judge_injection" doc:"Class of cheating."`
	Tags      []string    `yaml:"tags" doc:"Free words; overlays may target them."`
	Owner     string      `yaml:"owner" doc:"Who answers for it."`
	Why       string      `yaml:"why" doc:"Why it is cheating; the judge reads it."`
	FalsePos  []string    `yaml:"false_positives" doc:"Honest calls that it is known to hit; the judge reads them."`
	Refs      []string    `yaml:"references" doc:"Public sources."`
	Match     Match       `yaml:"match" required:"true" doc:"What hits."`
	Unless    []Exception `yaml:"unless" doc:"Named exceptions, tested only against the entity that hit."`
	Judge     JudgeHint   `yaml:"judge" doc:"What the judge is asked."`
	Decoy     string      `yaml:"decoy" doc:"Decoy family; empty: the class's own."`
	Set       *SetTag     `yaml:"set" doc:"A tag that a hit puts on the rollout."`
	After     string      `yaml:"after" doc:"A tag that must be on the rollout for the rule to hit."`
	Suspicion int         `yaml:"suspicion" min:"1" max:"99" doc:"Percent of hacks, at least, among labelled calls that read like the call, for the rule to hit. Where no classifier was asked it hits whatever the call reads like."`
	Tests     Tests       `yaml:"tests" doc:"Inline tests."`
	Pos       Pos         `yaml:"-" json:"-"`
	pack      *Pack
	overlaid  []string // reasons of the overlays that touched it
	disabled  bool
	severityN int
}

// FullID is "<pack>/<rule id>".
func (r *Rule) FullID() string { return r.pack.ID + "/" + r.ID }

// Pack is the pack that the rule belongs to.
func (r *Rule) Pack() *Pack { return r.pack }

// Match is what hits: one of the blocks of Any, and every block of All.
type Match struct {
	Any []Block `yaml:"any" doc:"Alternatives: one is enough."`
	All []Block `yaml:"all" doc:"Every block has to hit an entity, each its own."`
}

// Block is a set of conditions that one entity has to meet together.
type Block struct {
	Entity string `yaml:"-"`
	Conds  []Cond `yaml:"-"`
	Pos    Pos    `yaml:"-" json:"-"`
}

// Cond is one key of a block: field, modifiers and the values to compare with.
type Cond struct {
	Key    string // as written: "line|contains"
	Field  string
	Mods   []string
	Values []string
	Pos    Pos `json:"-"` // of the key
	valPos []Pos
}

// Exception keeps a rule from hitting an entity.
type Exception struct {
	Name   string `yaml:"name"`
	Reason string `yaml:"reason"`
	Block  Block  `yaml:"-"`
	Pos    Pos    `yaml:"-" json:"-"`
}

// JudgeHint is what the judge is asked when the rule hits.
type JudgeHint struct {
	Question string `yaml:"question" doc:"What the judge is to answer."`
	Context  int    `yaml:"context" min:"0" max:"50" doc:"Earlier calls that the judge is to see."`
	Skip     string `yaml:"skip" enum:"never,resolved" doc:"resolved: block without the judge where the hit rests on resolved facts."`
}

// SetTag puts a tag on the rollout for a number of calls.
type SetTag struct {
	Tag  string `yaml:"tag" required:"true" doc:"Name of the tag."`
	For  int    `yaml:"for" required:"true" min:"1" max:"10000" doc:"How many later calls it lasts."`
	Only bool   `yaml:"only" doc:"The rule only sets the tag: it reports no hit."`
	Pos  Pos    `yaml:"-" json:"-"`
}

// Tests are a rule's inline tests. Todo tests are expected to fail for now.
type Tests struct {
	Flag     []Test `yaml:"flag" doc:"Calls that the rule has to hit."`
	Pass     []Test `yaml:"pass" doc:"Calls that the rule must not hit."`
	TodoFlag []Test `yaml:"todo_flag" doc:"Calls that it should hit one day."`
	TodoPass []Test `yaml:"todo_pass" doc:"Calls that it hits and should not."`
}

// Test is one call, with what came before and what the sandbox would tell.
type Test struct {
	Name   string
	Call   ToolCall
	Setup  []ToolCall
	Task   Vars // overrides of TestTask
	Facts  TestFacts
	Result *TestResult
	Pos    Pos `json:"-"`
}

// ToolCall is a call as an agent makes it.
type ToolCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// TestFacts is what the sandbox would answer: the corpus format's `facts`.
type TestFacts struct {
	Refs   map[string]string `yaml:"refs" json:"refs,omitempty" doc:"Revision as written: ancestor, own, foreign or unknown."`
	Paths  map[string]string `yaml:"paths" json:"paths,omitempty" doc:"Path: absent, visible or hidden."`
	Before map[string]string `yaml:"before" json:"before,omitempty" doc:"Path: content before the call."`
}

// TestResult is what the call would have put out, for rules on the result.
type TestResult struct {
	Output   string   `yaml:"output" doc:"Combined output."`
	Exit     int      `yaml:"exit" doc:"Exit status."`
	Canaries []string `yaml:"canaries" doc:"Canaries seen."`
	Witness  []string `yaml:"witness" doc:"Protected paths opened."`
}

// Overlay changes rules without forking their pack.
type Overlay struct {
	Target  string      `yaml:"target" required:"true" doc:"A rule's full id, tag:NAME or pack:NAME."`
	Reason  string      `yaml:"reason" doc:"Why; required."`
	Expires string      `yaml:"expires" doc:"Date (YYYY-MM-DD) after which it is an error."`
	Disable bool        `yaml:"disable" doc:"The rules do not run."`
	Set     *OverlaySet `yaml:"set" doc:"Values to put in place of the rule's."`
	Append  *OverlayAdd `yaml:"append" doc:"Values to add to the rule's."`
	Pos     Pos         `yaml:"-" json:"-"`
}

// OverlaySet holds the values that an overlay may replace.
type OverlaySet struct {
	Status   string     `yaml:"status" enum:"experimental,test,stable,deprecated" doc:"New status."`
	Severity string     `yaml:"severity" enum:"low,medium,high,critical" doc:"New severity."`
	Level    int        `yaml:"level" min:"1" max:"4" doc:"New level."`
	Owner    string     `yaml:"owner" doc:"New owner."`
	Decoy    string     `yaml:"decoy" doc:"New decoy family."`
	Judge    *JudgeHint `yaml:"judge" doc:"New judge hints, whole."`
}

// OverlayAdd holds the values that an overlay may add to.
type OverlayAdd struct {
	Tags     []string    `yaml:"tags" doc:"More tags."`
	FalsePos []string    `yaml:"false_positives" doc:"More known false positives."`
	Any      []Block     `yaml:"any" doc:"More alternatives."`
	Unless   []Exception `yaml:"unless" doc:"More exceptions."`
}

// severities orders the severities.
var severities = map[string]int{"low": 2, "medium": 3, "high": 4, "critical": 5}
