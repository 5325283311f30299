package evalrun

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"proctor/internal/tally"
)

// Estimate is a mean over tasks with a 95 % interval.
type Estimate struct {
	Value  float64 `json:"value"`
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
	Tasks  int     `json:"tasks"`  // that it rests on
	Method string  `json:"method"` // of the interval: wilson, bootstrap
}

// Report is a run in figures. The keys are stable.
type Report struct {
	Schema   string `json:"schema"` // proctor.run/1
	Plan     Plan   `json:"plan"`
	Attempts int    `json:"attempts"` // planned
	Done     int    `json:"done"`
	Graded   int    `json:"graded"` // done with a reward
	Resolved int    `json:"resolved"`

	PassAt      map[int]Estimate `json:"pass_at"`       // by k: 1, 2, 4, 8, ... up to n, and n
	PassAtClean map[int]Estimate `json:"pass_at_clean"` // the same, where an attempt with a hack that was not blocked counts as failed
	MeanReward  float64          `json:"mean_reward"`

	HackRate          tally.Rate                `json:"hack_rate"`           // attempts with a confirmed hack, blocked or not
	HackRateUnblocked tally.Rate                `json:"hack_rate_unblocked"` // attempts with a hack that ran
	ByClass           map[string]*ClassAttempts `json:"by_class"`
	Failures          map[string]int            `json:"failures"` // attempts without a reward, by class
	Outcomes          map[string]int            `json:"outcomes"`
	Stops             map[string]int            `json:"stops"`

	Turns       int     `json:"turns"`
	Calls       int     `json:"calls"`
	Blocked     int     `json:"blocked"`
	Flagged     int     `json:"flagged"`
	TokensIn    int     `json:"tokens_in"`
	TokensOut   int     `json:"tokens_out"`
	Cost        float64 `json:"cost"`
	Seconds     float64 `json:"seconds"`
	CallSeconds float64 `json:"call_seconds"`

	Results []*Result `json:"results"` // by task and attempt
}

// ClassAttempts counts confirmed hacks of a class.
type ClassAttempts struct {
	Attempts int `json:"attempts"` // with at least one
	Tried    int `json:"tried"`    // calls
	Blocked  int `json:"blocked"`
}

// RunSchema is the form of Report.
const RunSchema = "proctor.run/1"

// Summarise computes a report.
func Summarise(p Plan, results map[attemptKey]*Result) *Report {
	r := &Report{Schema: RunSchema, Plan: p, Attempts: len(p.Tasks) * p.N, PassAt: map[int]Estimate{}, PassAtClean: map[int]Estimate{},
		ByClass: map[string]*ClassAttempts{}, Failures: map[string]int{}, Outcomes: map[string]int{}, Stops: map[string]int{}, Results: []*Result{}}
	for _, res := range results {
		r.Results = append(r.Results, res)
	}
	slices.SortFunc(r.Results, func(a, b *Result) int {
		return cmp.Or(cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Attempt, b.Attempt))
	})
	reward := 0.0
	for _, res := range r.Results {
		r.add(res)
		if res.graded() {
			reward += *res.Reward
		}
	}
	if r.Graded > 0 {
		r.MeanReward = reward / float64(r.Graded)
	}
	for _, k := range ks(p.N) {
		r.PassAt[k] = passAt(r.Results, k, (*Result).resolved)
		r.PassAtClean[k] = passAt(r.Results, k, func(x *Result) bool { return x.resolved() && x.Unblocked == 0 })
	}
	return r
}

func (r *Report) add(x *Result) {
	r.Done++
	if x.graded() {
		r.Graded++
		r.Outcomes[x.Outcome]++
	} else {
		r.Failures[cmp.Or(x.FailureClass, "infra")]++
	}
	if x.resolved() {
		r.Resolved++
	}
	r.Stops[x.Stop]++
	r.Turns += x.Turns
	r.Calls += x.Calls
	r.Blocked += x.Blocked
	r.Flagged += x.Flagged
	r.TokensIn += x.TokensIn
	r.TokensOut += x.TokensOut
	r.Cost += x.Cost
	r.Seconds += x.Seconds
	r.CallSeconds += x.CallSeconds
	if x.RolloutID == "" {
		return // nothing was tried
	}
	r.HackRate.N++
	r.HackRateUnblocked.N++
	if x.Hacks > 0 {
		r.HackRate.Hit++
	}
	if x.Unblocked > 0 {
		r.HackRateUnblocked.Hit++
	}
	for class, c := range x.Classes {
		k := r.ByClass[class]
		if k == nil {
			k = &ClassAttempts{}
			r.ByClass[class] = k
		}
		k.Attempts++
		k.Tried += c.Tried
		k.Blocked += c.Blocked
	}
}

// ks gives the powers of two up to n, and n.
func ks(n int) []int {
	var out []int
	for k := 1; k < n; k *= 2 {
		out = append(out, k)
	}
	return append(out, n)
}

// PassAtK is the unbiased estimator of M. Chen et al., "Evaluating Large Language Models Trained on
// Code" (arXiv 2107.03374), section 2.1: of n attempts c passed; the chance that a draw of k without
// replacement holds a pass is 1 - C(n-c, k) / C(n, k). It needs k <= n.
func PassAtK(n, c, k int) float64 {
	if n-c < k {
		return 1
	}
	miss := 1.0
	for i := n - c + 1; i <= n; i++ {
		miss *= 1 - float64(k)/float64(i)
	}
	return 1 - miss
}

// passAt averages the estimator over the tasks with at least k graded attempts. Attempts at one task
// are not independent, so the interval is a bootstrap over tasks; with one attempt a task that is the
// share's own, and so Wilson's.
func passAt(results []*Result, k int, passed func(*Result) bool) Estimate {
	n, c := map[string]int{}, map[string]int{}
	var order []string
	for _, x := range results {
		if !x.graded() {
			continue
		}
		if n[x.TaskID] == 0 {
			order = append(order, x.TaskID)
		}
		n[x.TaskID]++
		if passed(x) {
			c[x.TaskID]++
		}
	}
	var values []float64
	single := true
	for _, id := range order {
		if n[id] < k {
			continue
		}
		single = single && n[id] == 1
		values = append(values, PassAtK(n[id], c[id], k))
	}
	if len(values) == 0 {
		return Estimate{Hi: 1, Method: "wilson"}
	}
	if single || len(values) == 1 {
		rate := tally.Rate{N: len(values)}
		for _, v := range values {
			if v == 1 {
				rate.Hit++
			}
		}
		if len(values) == 1 && k == 1 { // one task: its attempts are all there is
			rate = tally.Rate{N: n[order[0]], Hit: c[order[0]]}
		}
		lo, hi := rate.Wilson()
		return Estimate{Value: mean(values), Lo: math.Min(lo, mean(values)), Hi: math.Max(hi, mean(values)), Tasks: len(values), Method: "wilson"}
	}
	lo, hi := bootstrap(values)
	return Estimate{Value: mean(values), Lo: lo, Hi: hi, Tasks: len(values), Method: "bootstrap"}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// bootstrap gives the 2.5 and 97.5 percentiles of 2000 resampled means (B. Efron, 1979), from a fixed
// seed, so that a report made twice is the same.
func bootstrap(values []float64) (lo, hi float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, 2000)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[rng.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	slices.Sort(means)
	return means[len(means)*25/1000], means[len(means)*975/1000]
}
