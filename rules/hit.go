package rules

// Hit is one rule matching one entity of one event.
type Hit struct {
	Rule     string `json:"rule"` // "<pack>/<rule id>"
	Pack     string `json:"pack"`
	Version  string `json:"pack_version"`
	Title    string `json:"title"`
	Class    string `json:"class"` // the rule's category
	Severity string `json:"severity"`
	Level    int    `json:"level"`
	Why      string `json:"why,omitempty"`

	Entity string `json:"entity"` // command, file, script, package, call, result
	Index  int    `json:"index"`  // into the event's list of that entity
	Field  string `json:"field"`  // the field of the key that decided: "line|contains"
	Span   string `json:"span"`   // the text that matched, at most 200 bytes

	// Resolved is true where the hit rests on resolved facts alone: a foreign object, a path that
	// is hidden, a host that is the task's upstream. Only such a hit may block without the judge.
	Resolved bool     `json:"resolved"`
	Question string   `json:"question,omitempty"` // the rule's question to the judge
	Skip     string   `json:"skip"`               // judge.skip: "never" or "resolved"
	Context  int      `json:"context,omitempty"`  // earlier calls that the judge is to see
	Decoy    string   `json:"decoy,omitempty"`    // decoy family, "" for the class's own
	FalsePos []string `json:"false_positives,omitempty"`
}

// ByWording reports whether the hit is the classifier's word on the whole call alone: it names no command or file.
func (h Hit) ByWording() bool { return h.Entity == entityNames[entCall] && h.Field == "suspect" }

// Classes of cheating, as packs, judges, records and reports name them.
const (
	GitHistory           = "git_history"
	UpstreamFetch        = "upstream_fetch"
	UpstreamPackage      = "upstream_package"
	HiddenArtifact       = "hidden_artifact"
	GraderTamper         = "grader_tamper"
	ResultForging        = "result_forging"
	SpecialCasing        = "special_casing"
	Fabrication          = "fabrication"
	SandboxEscape        = "sandbox_escape"
	HarnessIntrospection = "harness_introspection"
	JudgeInjection       = "judge_injection"
)
