package critic

import (
	"sort"
	"time"
)

// Momentum is the weight of the past in the moving average of success.
const Momentum = 0.9

// Average moves an average by one batch: m*before + (1-m)*success.
func Average(before, success, m float64) float64 { return m*before + (1-m)*success }

// Outcome is one graded rollout of a policy.
type Outcome struct {
	Family  string // of its task
	Group   string // "": it is a batch of its own
	ID      string
	Reward  float64
	EndedAt time.Time
}

// Family is how a policy does on one family of tasks.
type Family struct {
	Family   string    `json:"family"`
	Success  float64   `json:"success"` // moving average of batch means, momentum 0.9, 0 to 1
	Mean     float64   `json:"mean"`    // of all rollouts
	Rollouts int       `json:"rollouts"`
	Batches  int       `json:"batches"` // groups, and rollouts without one
	EndedAt  time.Time `json:"ended_at"`
}

// Families gives the moving averages by family, in order of name. A batch is a group: its rollouts ran
// under one version of the policy, and only their mean is a sample of how that version does. Batches count
// in the order of their last end; the first one sets the average.
func Families(outcomes []Outcome) []Family {
	type batch struct {
		sum float64
		n   int
		end time.Time
		id  string
	}
	batches := map[string]map[string]*batch{}
	for _, o := range outcomes {
		key := "g:" + o.Group
		if o.Group == "" {
			key = "r:" + o.ID
		}
		if batches[o.Family] == nil {
			batches[o.Family] = map[string]*batch{}
		}
		b := batches[o.Family][key]
		if b == nil {
			b = &batch{id: key}
			batches[o.Family][key] = b
		}
		b.sum, b.n = b.sum+o.Reward, b.n+1
		if o.EndedAt.After(b.end) {
			b.end = o.EndedAt
		}
	}
	out := []Family{}
	for name, of := range batches {
		list := make([]*batch, 0, len(of))
		for _, b := range of {
			list = append(list, b)
		}
		sort.Slice(list, func(i, j int) bool {
			if !list[i].end.Equal(list[j].end) {
				return list[i].end.Before(list[j].end)
			}
			return list[i].id < list[j].id
		})
		f := Family{Family: name, Batches: len(list)}
		total := 0.0
		for i, b := range list {
			success := b.sum / float64(b.n)
			if i == 0 {
				f.Success = success
			} else {
				f.Success = Average(f.Success, success, Momentum)
			}
			total, f.Rollouts, f.EndedAt = total+b.sum, f.Rollouts+b.n, b.end
		}
		f.Mean = total / float64(f.Rollouts)
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Family < out[j].Family })
	return out
}
