package credit

import "math"

// NAfter gives for each segment how many action tokens the segments behind it hold. acts are the action
// masks in order.
func NAfter(acts [][]int) []int {
	out := make([]int, len(acts))
	after := 0
	for s := len(acts) - 1; s >= 0; s-- {
		out[s] = after
		after += count(acts[s])
	}
	return out
}

// CrossSegment weighs a segment's own advantages by (gamma*lambda)^nAfter: the distance, in action
// tokens, to the end of the rollout, where the reward is (CompactionRL).
func CrossSegment(local []float64, gamma, lambda float64, nAfter int) []float64 {
	w := math.Pow(gamma*lambda, float64(nAfter))
	return each(local, func(a float64) float64 { return w * a })
}

// Chained runs GAE through the segments as one sequence: behind the last action token of a segment comes
// the first one of the next. rewards hold the outcome once, in the last segment.
func Chained(acts [][]int, values, rewards [][]float64, gamma, lambda float64) [][]float64 {
	out := make([][]float64, len(acts))
	var tail Tail
	for s := len(acts) - 1; s >= 0; s-- {
		out[s] = GAE(acts[s], values[s], rewards[s], gamma, lambda, tail)
		if first := firstAction(acts[s]); first >= 0 {
			tail = Tail{Value: values[s][first], Advantage: out[s][first]}
		}
	}
	return out
}

// Steps gives the advantage of each turn from the value before it and the reward in it: GAE with a turn
// for a token.
func Steps(values, rewards []float64, gamma, lambda float64) []float64 {
	return GAE(nil, values, rewards, gamma, lambda, Tail{})
}

func count(mask []int) int {
	n := 0
	for _, m := range mask {
		n += m
	}
	return n
}

func firstAction(act []int) int {
	for t, a := range act {
		if a == 1 {
			return t
		}
	}
	return -1
}

func lastAction(act []int) int {
	for t := len(act) - 1; t >= 0; t-- {
		if act[t] == 1 {
			return t
		}
	}
	return -1
}
