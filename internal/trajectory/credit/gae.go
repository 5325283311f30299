package credit

import "math"

// whitenEps is what verl's masked_whiten adds to the variance.
const whitenEps = 1e-8

// GAE gives the generalised advantage of each action token:
//
//	delta[t] = reward[t] + gamma*V[next] - V[t]
//	A[t]     = delta[t] + gamma*lambda*A[next]
//
// where next is the next action token; observations are skipped and have advantage 0. Behind the last
// action token V and A are those given by tail (both 0 at the end of a rollout). A nil act counts every
// token. Rewards on observations are not read: settle puts them on action tokens first.
//
// Preconditions: act (or nil), values and rewards have one length.
func GAE(act []int, values, rewards []float64, gamma, lambda float64, tail Tail) []float64 {
	out := make([]float64, len(values))
	for t := len(values) - 1; t >= 0; t-- {
		if act != nil && act[t] == 0 {
			continue
		}
		delta := rewards[t] + gamma*tail.Value - values[t]
		tail = Tail{Value: values[t], Advantage: delta + gamma*lambda*tail.Advantage}
		out[t] = tail.Advantage
	}
	return out
}

// Tail is what follows the last action token: the value of the state there, and its advantage.
type Tail struct{ Value, Advantage float64 }

// Returns gives advantage + value on action tokens and 0 elsewhere: what a critic regresses to.
func Returns(act []int, advantages, values []float64) []float64 {
	out := make([]float64, len(values))
	for t := range values {
		if act == nil || act[t] == 1 {
			out[t] = advantages[t] + values[t]
		}
	}
	return out
}

// Whiten shifts and scales the masked entries to mean 0 and variance 1 (n-1 in the variance), and puts 0
// elsewhere. Fewer than two masked entries have no variance: they become 0.
func Whiten(mask []int, xs []float64) []float64 {
	var kept []float64
	for t, x := range xs {
		if mask[t] == 1 {
			kept = append(kept, x)
		}
	}
	out := make([]float64, len(xs))
	if len(kept) < 2 {
		return out
	}
	m := mean(kept)
	s := std(kept, m, 1)
	scale := 1 / math.Sqrt(s*s+whitenEps)
	for t, x := range xs {
		if mask[t] == 1 {
			out[t] = (x - m) * scale
		}
	}
	return out
}

// AdaptiveLambda gives 1 - 1/(alpha*length), not below 0 (VAPO): the longer the answer, the nearer to 1,
// so that the outcome still reaches its first tokens. length counts action tokens.
func AdaptiveLambda(alpha float64, length int) float64 {
	if length <= 0 || alpha <= 0 {
		return 0
	}
	return math.Max(0, 1-1/(alpha*float64(length)))
}
