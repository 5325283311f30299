package trajectory

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// Building reads messages only where it compares them; what it builds is what reading all of them builds,
// over histories that go on, fork, shrink and repeat, with and without token ids.
func TestBuildReadsOnlyWhatItNeeds(t *testing.T) {
	for seed := range uint64(400) {
		calls := tangle(rand.New(rand.NewPCG(seed, 9)), 14)
		lazy, eager := build(calls, false), build(calls, true)
		if !reflect.DeepEqual(lazy, eager) {
			a, _ := json.Marshal(lazy)
			b, _ := json.Marshal(eager)
			t.Fatalf("seed %d: lazy\n%s\neager\n%s", seed, a, b)
		}
	}
}

// tangle gives calls over few messages and few tokens, so that prompts often repeat or share a beginning.
func tangle(r *rand.Rand, n int) []*ModelCall {
	message := func(role, text string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"role":%q,"content":%q}`, role, text))
	}
	var calls []*ModelCall
	history, ids := []json.RawMessage{message("user", "task")}, []int32{1, 2}
	for i := range n {
		switch r.IntN(7) {
		case 0: // shortened
			history = history[:1+r.IntN(len(history))]
			ids = ids[:1+r.IntN(len(ids))]
		case 1: // rewritten, or another conversation
			history = append([]json.RawMessage{message("user", fmt.Sprint("other ", r.IntN(2)))}, history[1:]...)
		case 2: // other tokens of the same messages
			ids = append([]int32{int32(3 + r.IntN(2))}, ids...)
		}
		out := []int32{int32(10 + r.IntN(3)), 5}
		c := &ModelCall{Ordinal: i + 1, Kind: KindAction, Messages: append([]json.RawMessage{}, history...), PromptIDs: append([]int32{}, ids...),
			OutputIDs: out, Logprobs: []float64{-1, -2}, Output: message("assistant", fmt.Sprintf("a long enough answer, number %d of few", r.IntN(4))),
			FinishReason: "stop", Disconnected: r.IntN(8) == 0}
		if r.IntN(6) == 0 {
			c.PromptIDs, c.OutputIDs, c.Logprobs, c.TextOnly = nil, nil, nil, "no ids"
		}
		if r.IntN(6) == 0 {
			c.Kind, c.Declared = []string{KindSubagent, KindAux, KindSummary}[r.IntN(3)], true
		}
		calls = append(calls, c)
		if r.IntN(4) > 0 {
			history = append(history, c.Output, message("tool", fmt.Sprint(r.IntN(2))))
			ids = append(append(ids, out...), 6)
		}
	}
	return calls
}
