package index

import "time"

// Rule says what of an index exists for a task. Which version comes before which is for each kind of index
// to say.
type Rule struct {
	Before  time.Time // what was uploaded at that time or later does not exist
	Package string    // the task's own; "" for none
	Fix     string    // its first version that holds the fix; that and later ones do not exist
	Base    string    // its version at the start: where Fix is not known, later ones do not exist
}

// InTime reports whether what was uploaded at a time came early enough. The zero time, for one that is not
// known, did not, and under a rule without a time nothing did, not even what claims to be of the year 0.
func (r Rule) InTime(uploaded time.Time) bool {
	return !r.Before.IsZero() && !uploaded.IsZero() && uploaded.Before(r.Before)
}

// Bounded reports whether the versions of the task's own package are bounded at all.
func (r Rule) Bounded() bool { return r.Package != "" && (r.Fix != "" || r.Base != "") }
