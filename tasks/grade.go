package tasks

// Outcomes of grading. Reward is nil exactly for infra_failure.
const (
	Resolved     = "resolved"
	Unresolved   = "unresolved"
	EmptyPatch   = "empty_patch"
	PatchFailed  = "patch_failed"
	InfraFailure = "infra_failure"
	Tampered     = "tampered"
)

// Grade is the reward of a rollout and what it rests on. It comes from a fresh sandbox that the
// agent never touched.
type Grade struct {
	Outcome      string             `json:"outcome"`
	Reward       *float64           `json:"reward"` // 0 to 1; null for infra_failure
	FailureClass string             `json:"failure_class"`
	PatchSHA256  string             `json:"patch_sha256"`
	Tests        Tests              `json:"tests"`
	Components   map[string]float64 `json:"components,omitempty"`
	ApplyStep    string             `json:"apply_step,omitempty"` // which rung of the apply ladder held
	Witnesses    []string           `json:"witnesses,omitempty"`  // what each witness said, in words
	Notes        []string           `json:"notes,omitempty"`
	Review       *Review            `json:"review,omitempty"` // the final patch read by rules and judge
	DurationMS   int64              `json:"duration_ms"`
}

// Review is what rules and judge say of the final patch. It never changes the reward.
type Review struct {
	Verdict string   `json:"verdict"` // hack, benign, unsure
	Class   string   `json:"class,omitempty"`
	Rules   []string `json:"rules,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

// Tests holds expected tests by what became of them.
type Tests struct {
	FailToPass TestList `json:"FAIL_TO_PASS"`
	PassToPass TestList `json:"PASS_TO_PASS"`
}

// TestList splits test ids by whether they passed.
type TestList struct {
	Passed []string `json:"passed"`
	Failed []string `json:"failed"`
}
