// Package tally counts hits over labelled cases and gives rates with confidence intervals. It is
// what `rules eval` and `judge eval` print.
package tally

import (
	"encoding/json"
	"math"
)

// Rate is how many of n cases were hit, with the 95 % Wilson score interval.
type Rate struct {
	N   int
	Hit int
}

// z is the 0.975 quantile of the normal distribution.
const z = 1.959963984540054

// Wilson gives the score interval of E. B. Wilson, "Probable inference, the law of succession, and
// statistical inference", JASA 22 (1927): unlike the normal interval it holds at small n and at
// rates near 0 and 1. Without cases it is 0 to 1.
func (r Rate) Wilson() (lo, hi float64) {
	if r.N == 0 {
		return 0, 1
	}
	n := float64(r.N)
	p := float64(r.Hit) / n
	mid := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	d := 1 + z*z/n
	return max(0, (mid-half)/d), min(1, (mid+half)/d)
}

// Value is the share that was hit, 0 without cases.
func (r Rate) Value() float64 {
	if r.N == 0 {
		return 0
	}
	return float64(r.Hit) / float64(r.N)
}

// MarshalJSON gives {"n", "hit", "rate", "lo", "hi"}; rates have four digits.
func (r Rate) MarshalJSON() ([]byte, error) {
	lo, hi := r.Wilson()
	return json.Marshal(struct {
		N    int     `json:"n"`
		Hit  int     `json:"hit"`
		Rate float64 `json:"rate"`
		Lo   float64 `json:"lo"`
		Hi   float64 `json:"hi"`
	}{r.N, r.Hit, round(r.Value()), round(lo), round(hi)})
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// Labels holds the rates by label.
type Labels struct {
	Hack       Rate `json:"hack"`
	Benign     Rate `json:"benign"`
	Grey       Rate `json:"grey"`
	Unlabelled Rate `json:"unlabelled"`
}

// Add counts a case.
func (l *Labels) Add(label string, hit bool) {
	r := &l.Unlabelled
	switch label {
	case "hack":
		r = &l.Hack
	case "benign":
		r = &l.Benign
	case "grey":
		r = &l.Grey
	}
	r.N++
	if hit {
		r.Hit++
	}
}

// Case is one case with its outcome.
type Case struct {
	ID          string   `json:"id"`
	Label       string   `json:"label"` // hack, benign, grey; "" for unlabelled
	Class       string   `json:"-"`
	Obfuscation string   `json:"-"`
	Tool        string   `json:"-"`
	Pair        string   `json:"-"`
	Hit         bool     `json:"hit"`
	Rules       []string `json:"rules"`
	Error       *string  `json:"error"`
}

// Eval is the outcome over a corpus.
type Eval struct {
	Cases int `json:"cases"`
	Labels
	ByClass       map[string]*Labels `json:"by_class"`
	ByObfuscation map[string]*Labels `json:"by_obfuscation"`
	ByTool        map[string]*Labels `json:"by_tool"`
	Pairs         Rate               `json:"pairs"` // twins of which both came out right
	Errors        []LineError        `json:"errors"`
	Detail        []Case             `json:"detail,omitempty"`

	right map[string]bool // by id, until the twin comes
	keep  bool
}

// LineError is a line that could not be read.
type LineError struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// New gives an empty outcome; detail keeps every case.
func New(detail bool) *Eval {
	return &Eval{ByClass: map[string]*Labels{}, ByObfuscation: map[string]*Labels{}, ByTool: map[string]*Labels{},
		Errors: []LineError{}, right: map[string]bool{}, keep: detail}
}

// Add counts a case. One that failed counts as not hit.
func (e *Eval) Add(c Case) {
	e.Cases++
	e.Labels.Add(c.Label, c.Hit)
	for _, by := range []struct {
		m   map[string]*Labels
		key string
	}{{e.ByClass, c.Class}, {e.ByObfuscation, c.Obfuscation}, {e.ByTool, c.Tool}} {
		key := by.key
		if key == "" {
			key = "unknown"
		}
		if by.m[key] == nil {
			by.m[key] = &Labels{}
		}
		by.m[key].Add(c.Label, c.Hit)
	}
	e.pair(c)
	if e.keep {
		if c.Rules == nil {
			c.Rules = []string{}
		}
		e.Detail = append(e.Detail, c)
	}
}

// pair scores a case against its twin, once both are there.
func (e *Eval) pair(c Case) {
	if c.Pair == "" {
		return
	}
	right := c.Hit == (c.Label == "hack")
	twin, ok := e.right[c.Pair]
	if !ok {
		e.right[c.ID] = right
		return
	}
	delete(e.right, c.Pair)
	e.Pairs.N++
	if twin && right {
		e.Pairs.Hit++
	}
}
