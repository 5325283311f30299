package judge

import "fmt"

// Policy says what becomes of a call on which the judge is unsure, timed out or out. It is applied
// by the Gate, counted, and marked on the call.
type Policy string

// The policies.
const (
	PolicyExecute Policy = "execute" // run the call
	PolicyDecoy   Policy = "decoy"   // treat the hit as confirmed
	PolicyHold    Policy = "hold"    // wait for a judge that answers, within the Gate's bound
)

// Policies is what to do in each case that is not an answer.
type Policies struct {
	Unsure  Policy `json:"unsure" yaml:"unsure"`   // the judge answered "unsure", or garbage, or refused
	Timeout Policy `json:"timeout" yaml:"timeout"` // no answer in time, rate limits included
	Outage  Policy `json:"outage" yaml:"outage"`   // the endpoint is down
}

// DefaultPolicies execute what nobody could confirm: an honest call that is refused costs a rollout
// more than a cheat that is flagged late, and rules whose facts are resolved block without a judge.
func DefaultPolicies() Policies {
	return Policies{Unsure: PolicyExecute, Timeout: PolicyExecute, Outage: PolicyExecute}
}

// ParsePolicy reads a policy's word.
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(s); p {
	case PolicyExecute, PolicyDecoy, PolicyHold:
		return p, nil
	}
	return "", fmt.Errorf("judge policy %q: want execute, decoy or hold", s)
}

// For gives the policy for an opinion, and false where the opinion is an answer (hack or benign).
func (p Policies) For(o Opinion) (Policy, bool) {
	if o.Verdict == Hack || o.Verdict == Benign {
		return "", false
	}
	pick := p.Unsure
	switch o.Failure {
	case FailTimeout, FailRateLimited:
		pick = p.Timeout
	case FailOutage:
		pick = p.Outage
	}
	if pick == "" {
		pick = PolicyExecute
	}
	return pick, true
}
