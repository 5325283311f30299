package scan

import (
	"cmp"
	"slices"

	"proctor/internal/tally"
	"proctor/internal/traces"
)

// Report is what a scan found. The keys are stable.
type Report struct {
	Files        int                   `json:"files"`
	Trajectories int                   `json:"trajectories"`
	Calls        int                   `json:"calls"` // the agents'
	Suspected    []Suspect             `json:"suspected"`
	ByClass      map[string]*ClassRate `json:"by_class"`
	Unknown      []traces.Unknown      `json:"unknown"`

	Rates    Rates          `json:"rates"`
	Formats  map[string]int `json:"formats"`  // trajectories
	Unmapped map[string]int `json:"unmapped"` // calls of tools that no rule can read, by tool
	Invalid  int            `json:"invalid"`  // calls that do not fit their tool
	Skipped  int            `json:"skipped"`  // files in folders that are not JSON by their name
	Packs    string         `json:"packs"`
	Judge    string         `json:"judge"` // "none": rules alone
	Asked    int            `json:"asked"` // calls that the judge was asked about
	Failed   int            `json:"failed"`
	Cost     float64        `json:"cost"`
}

// Rates are shares with 95 % Wilson intervals.
type Rates struct {
	Suspected tally.Rate `json:"suspected"` // trajectories with a suspected call
	Hack      tally.Rate `json:"hack"`      // trajectories with a confirmed one
	Calls     tally.Rate `json:"calls"`     // calls that are suspected
}

// ClassRate is the share of trajectories with a suspected call of a class.
type ClassRate struct {
	tally.Rate
	Calls int
}

// MarshalJSON gives the rate's keys with calls among them.
func (c ClassRate) MarshalJSON() ([]byte, error) {
	body, err := c.Rate.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return append(body[:len(body)-1], []byte(`,"calls":`+itoa(c.Calls)+"}")...), nil
}

// Suspect is a trajectory with suspected calls.
type Suspect struct {
	Trajectory string          `json:"trajectory"`
	Task       string          `json:"task"`
	File       string          `json:"file"`
	Line       int             `json:"line"` // from 1; 0 for a whole file
	Format     string          `json:"format"`
	Total      int             `json:"total"` // calls of the trajectory
	Calls      []SuspectedCall `json:"calls"`

	document, place int // where it stood, for the order
}

// SuspectedCall is a call that would not have been allowed.
type SuspectedCall struct {
	Ordinal    int     `json:"ordinal"` // among the trajectory's calls, from 1
	Class      string  `json:"class"`
	Rule       string  `json:"rule"`
	Title      string  `json:"title"`
	Severity   string  `json:"severity"`
	Decision   string  `json:"decision"` // flag, block: what policy would conclude
	Hack       bool    `json:"hack"`     // confirmed by the judge or by resolved facts
	Evidence   string  `json:"evidence"`
	Reason     string  `json:"reason"`
	Confidence float64 `json:"confidence"`
	By         string  `json:"by"`
	Tool       string  `json:"tool"`
	Text       string  `json:"text"`  // the command, or the tool's path and text; at most maxText bytes
	Shown      string  `json:"shown"` // what the agent saw; at most maxText bytes
	Blind      bool    `json:"blind"` // the record does not say what the agent saw
}

// maxText bounds what a report keeps of a call and of its output.
const maxText = 2000

// merge adds what one worker found.
func (r *Report) merge(o *Report) {
	r.Trajectories += o.Trajectories
	r.Calls += o.Calls
	r.Invalid += o.Invalid
	r.Asked += o.Asked
	r.Failed += o.Failed
	r.Cost += o.Cost
	r.Suspected = append(r.Suspected, o.Suspected...)
	r.Unknown = append(r.Unknown, o.Unknown...)
	for name, n := range o.Formats {
		r.Formats[name] += n
	}
	for name, n := range o.Unmapped {
		r.Unmapped[name] += n
	}
}

// finish orders the suspects and computes the rates.
func (r *Report) finish() {
	slices.SortFunc(r.Suspected, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(a.document, b.document), cmp.Compare(a.place, b.place))
	})
	slices.SortStableFunc(r.Unknown, func(a, b traces.Unknown) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	r.Rates = Rates{Suspected: tally.Rate{N: r.Trajectories, Hit: len(r.Suspected)}, Hack: tally.Rate{N: r.Trajectories}, Calls: tally.Rate{N: r.Calls}}
	for _, s := range r.Suspected {
		hack := false
		seen := map[string]bool{}
		for _, c := range s.Calls {
			hack = hack || c.Hack
			k := r.ByClass[c.Class]
			if k == nil {
				k = &ClassRate{Rate: tally.Rate{N: r.Trajectories}}
				r.ByClass[c.Class] = k
			}
			k.Calls++
			if !seen[c.Class] {
				seen[c.Class] = true
				k.Hit++
			}
		}
		r.Rates.Calls.Hit += len(s.Calls)
		if hack {
			r.Rates.Hack.Hit++
		}
	}
}

func newReport() *Report {
	return &Report{Suspected: []Suspect{}, ByClass: map[string]*ClassRate{}, Unknown: []traces.Unknown{}, Formats: map[string]int{}, Unmapped: map[string]int{}}
}
