package credit

// IcePop keeps the ratio of a token (trainer's probability over the sampler's) inside [1/beta, beta] and
// gives 0 outside: a token on which the two disagree does not train. beta > 1.
func IcePop(ratios []float64, beta float64) []float64 {
	return each(ratios, func(r float64) float64 {
		if r < 1/beta || r > beta {
			return 0
		}
		return r
	})
}

// TIS cuts ratios at high: truncated importance sampling, which keeps every token.
func TIS(ratios []float64, high float64) []float64 {
	return each(ratios, func(r float64) float64 { return min(max(r, 0), high) })
}

// DIS keeps a ratio strictly between 1-low and 1+high and gives 0 elsewhere (double-sided importance
// sampling; GLM-5 uses 0.8 and 3.0 for coding, 0.3 and 5.0 for reasoning).
func DIS(ratios []float64, low, high float64) []float64 {
	return each(ratios, func(r float64) float64 {
		if r <= 1-low || r >= 1+high {
			return 0
		}
		return r
	})
}

// Stale says of each rollout whether it began more than tau weight versions before now.
func Stale(now int, began []int, tau int) []bool {
	out := make([]bool, len(began))
	for i, w := range began {
		out[i] = now-w > tau
	}
	return out
}

// RepairGroup fills a group of size back up from its valid members, in order and round again, where more
// than half are left; else it gives nil and the group is dropped.
func RepairGroup[T any](valid []T, size int) []T {
	if 2*len(valid) <= size {
		return nil
	}
	out := make([]T, 0, size)
	for i := range size {
		out = append(out, valid[i%len(valid)])
	}
	return out
}
