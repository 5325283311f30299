package credit

import "math"

// stdEps is what verl and slime add to a group's standard deviation before they divide by it.
const stdEps = 1e-6

// GRPO gives (r - mean) / (std + 1e-6) for the rewards of one group. ddof is 1 (verl, slime: n-1 in the
// variance) or 0. A group of one with ddof 1 has no spread: its reward is given as it is, as verl does.
func GRPO(rewards []float64, ddof int) []float64 {
	if len(rewards) == 1 && ddof == 1 {
		return []float64{rewards[0] / (1 + stdEps)}
	}
	m := mean(rewards)
	div := std(rewards, m, ddof) + stdEps
	return each(rewards, func(r float64) float64 { return (r - m) / div })
}

// GRPONoStd gives r - mean: the group's baseline without its scale, which favours hard and easy tasks
// alike. A group of one has no baseline: its reward is given as it is.
func GRPONoStd(rewards []float64) []float64 {
	if len(rewards) == 1 {
		return []float64{rewards[0]}
	}
	m := mean(rewards)
	return each(rewards, func(r float64) float64 { return r - m })
}

// MaxRL gives (r - mean) / mean, which weighs a success by how rare it is. A group whose mean is not
// positive teaches nothing: zeros.
func MaxRL(rewards []float64) []float64 {
	m := mean(rewards)
	if m <= 0 {
		return make([]float64, len(rewards))
	}
	return each(rewards, func(r float64) float64 { return (r - m) / m })
}

// RLOO gives r minus the mean of the others, which equals G/(G-1) * (r - mean). A group of one has no
// others: its reward is given as it is.
func RLOO(rewards []float64) []float64 {
	n := float64(len(rewards))
	if len(rewards) == 1 {
		return []float64{rewards[0]}
	}
	m := mean(rewards)
	return each(rewards, func(r float64) float64 { return n / (n - 1) * (r - m) })
}

func each(in []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}

func mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// std is the standard deviation about m with n-ddof in the denominator; 0 where that is not positive.
func std(xs []float64, m float64, ddof int) float64 {
	n := len(xs) - ddof
	if n <= 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(n))
}
