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

// ParsePolicy reads a policy's word.
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(s); p {
	case PolicyExecute, PolicyDecoy, PolicyHold:
		return p, nil
	}
	return "", fmt.Errorf("judge policy %q: want execute, decoy or hold", s)
}
