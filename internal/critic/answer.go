package critic

import (
	"math"
	"regexp"
	"strconv"
)

// answerRE is the form in which a critic is told to end. The last match counts, so that a critic which
// quotes the form while it reasons is not taken at its first word.
var answerRE = regexp.MustCompile(`<answer>\s*(\d{1,2})\s*</answer>`)

// ParseAnswer reads the value out of a critic's text: a tenth of the integer 0 to 10 in the last
// <answer>...</answer>. ok is false for anything else: prose, no answer, 11, 7.5.
func ParseAnswer(text string) (value float64, ok bool) {
	all := answerRE.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(all[len(all)-1][1])
	if err != nil || n > 10 {
		return 0, false
	}
	return float64(n) / 10, true
}

// ExpectedValue gives the mean value under the probabilities of the eleven labels "0" to "10", from their
// log-probabilities; labels that were not listed count as impossible, other keys are left out. ok is false
// where no label has a probability.
func ExpectedValue(logprobs map[string]float64) (value float64, ok bool) {
	total := 0.0
	for n := range 11 {
		lp, has := logprobs[strconv.Itoa(n)]
		if !has || math.IsNaN(lp) || lp > 0 {
			continue
		}
		p := math.Exp(lp)
		total += p
		value += p * float64(n) / 10
	}
	if total == 0 {
		return 0, false
	}
	return value / total, true
}

// Reward is what a critic earns for the value v of a state whose rollout returned y: 1 - (y-v)^2, and 0
// where its answer did not parse.
func Reward(y, v float64, parsed bool) float64 {
	if !parsed {
		return 0
	}
	return 1 - (y-v)*(y-v)
}
