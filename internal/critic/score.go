package critic

// Score is how well a critic's values meet the returns.
type Score struct {
	Pairs             int      `json:"pairs"`
	Parsed            int      `json:"parsed"`
	ParseRate         float64  `json:"parse_rate"`
	MSE               *float64 `json:"mse"`                // null without a parsed value
	BaselineMSE       *float64 `json:"mean_baseline_mse"`  // of always saying the mean return
	ExplainedVariance *float64 `json:"explained_variance"` // 1 - Var(y-v)/Var(y); null where all returns are equal
	Reward            *float64 `json:"reward"`             // mean of 1-(y-v)^2, unparsed 0
	Forks             int      `json:"forks"`              // states with two or more valued continuations whose returns differ
	Top1              *float64 `json:"top1"`               // share of forks whose highest value is on a best continuation
}

// Measure scores the values of pairs. Unparsed values count in parse_rate and reward; squared errors are
// over the parsed. Pairs weigh alike, however many rollouts were pooled in each.
func Measure(pairs []Pair) Score {
	s := Score{Pairs: len(pairs)}
	var ys, diffs []float64
	reward := 0.0
	for _, p := range pairs {
		if p.Value == nil {
			continue
		}
		ys, diffs = append(ys, p.Return), append(diffs, p.Return-*p.Value)
		reward += Reward(p.Return, *p.Value, true)
	}
	s.Parsed = len(ys)
	if s.Pairs > 0 {
		s.ParseRate = float64(s.Parsed) / float64(s.Pairs)
		s.Reward = ptr(reward / float64(s.Pairs))
	}
	if s.Parsed > 0 {
		s.MSE = ptr(meanSquare(diffs, 0))
		s.BaselineMSE = ptr(meanSquare(ys, mean(ys)))
		if *s.BaselineMSE > 0 {
			s.ExplainedVariance = ptr(1 - meanSquare(diffs, mean(diffs)) / *s.BaselineMSE)
		}
	}
	s.rank(pairs)
	return s
}

// rank fills Forks and Top1. A tie among the highest values is right only where all of them are best:
// who ties cannot choose.
func (s *Score) rank(pairs []Pair) {
	right := 0
	for _, f := range forks(pairs) {
		top, best, worst, n := -1.0, -1.0, 2.0, 0
		for _, p := range f {
			if p.Value != nil {
				top, best, worst, n = max(top, *p.Value), max(best, p.Return), min(worst, p.Return), n+1
			}
		}
		if n < 2 || best == worst {
			continue
		}
		s.Forks++
		ok := true
		for _, p := range f {
			if p.Value != nil && *p.Value == top && p.Return != best {
				ok = false
			}
		}
		if ok {
			right++
		}
	}
	if s.Forks > 0 {
		s.Top1 = ptr(float64(right) / float64(s.Forks))
	}
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func meanSquare(xs []float64, about float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += (x - about) * (x - about)
	}
	return sum / float64(len(xs))
}

func ptr(x float64) *float64 { return &x }
