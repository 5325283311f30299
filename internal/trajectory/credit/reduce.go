package credit

import "fmt"

// Reducer says what one trainable token weighs in the loss.
type Reducer string

// The reducers. TokenMean is what GLM-5.2 and CompactionRL use, RolloutMean what slime does by default.
// SegmentMean is here to be seen: it pays a rollout by how often it was compacted.
const (
	TokenMean   Reducer = "token"
	RolloutMean Reducer = "rollout"
	SegmentMean Reducer = "segment"
)

// Weights gives the weight of each trainable token, by rollout and segment; the weights of all tokens sum
// to 1. tokens[r][s] counts the trainable tokens (loss_mask 1) of segment s of rollout r. Where a rollout
// or segment has none it has no say, and the others share its part.
func Weights(tokens [][]int, by Reducer) ([][]float64, error) {
	total, rollouts, segments := 0, 0, 0
	for _, segs := range tokens {
		sum := 0
		for _, n := range segs {
			sum += n
			if n > 0 {
				segments++
			}
		}
		total += sum
		if sum > 0 {
			rollouts++
		}
	}
	out := make([][]float64, len(tokens))
	for r, segs := range tokens {
		out[r] = make([]float64, len(segs))
		own := 0
		for _, n := range segs {
			own += n
		}
		for s, n := range segs {
			if n == 0 {
				continue
			}
			switch by {
			case TokenMean:
				out[r][s] = 1 / float64(total)
			case RolloutMean:
				out[r][s] = 1 / float64(rollouts*own)
			case SegmentMean:
				out[r][s] = 1 / float64(segments*n)
			default:
				return nil, fmt.Errorf("credit: unknown reducer %q: token, rollout or segment", by)
			}
		}
	}
	return out, nil
}
