package critic

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"
)

func golden(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	data, err := os.ReadFile("../../../shared/golden/credit.json")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the worked examples are not beside the project: %v", err)
		}
		t.Skipf("SKIPPED, LOUDLY: the worked examples are not beside the project: %v", err)
	}
	var all struct{ GenAC map[string]json.RawMessage }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all.GenAC
}

func at[T any](t *testing.T, v map[string]json.RawMessage, key string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(v[key], &out); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return out
}

func close6(a, b float64) bool { return math.Abs(a-b) <= 1.5e-6 }

func TestGoldenParse(t *testing.T) {
	for text, want := range at[map[string]*float64](t, golden(t), "parse") {
		got, ok := ParseAnswer(text)
		if ok != (want != nil) || (ok && !close6(got, *want)) {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

func TestGoldenAverage(t *testing.T) {
	v := golden(t)
	average := 0.29
	for i, success := range []float64{0.5, 0.5, 0} {
		average = Average(average, success, Momentum)
		if want := at[[]float64](t, v, "ema_m0.9_from0.29_batch_success[0.5,0.5,0.0]")[i]; !close6(average, want) {
			t.Errorf("batch %d: %v, want %v", i, average, want)
		}
	}
}

func TestGoldenReward(t *testing.T) {
	want := at[map[string]float64](t, golden(t), "critic_reward")
	for key, got := range map[string]float64{"y1_v0.7": Reward(1, 0.7, true), "y0_v0.7": Reward(0, 0.7, true), "unparsed": Reward(1, 0, false)} {
		if !close6(got, want[key]) {
			t.Errorf("%s: %v, want %v", key, got, want[key])
		}
	}
}

func TestGoldenScore(t *testing.T) {
	v := golden(t)
	// four answers in tenths that give the worked figures: returns 1, 1, 1, 0
	s := Measure(pairsOf([]float64{1, 1, 1, 0}, []float64{0.3, 0.9, 1, 0}))
	for key, got := range map[string]*float64{"mse": s.MSE, "mean_baseline_mse": s.BaselineMSE, "explained_variance": s.ExplainedVariance} {
		if got == nil || !close6(*got, at[float64](t, v, key)) {
			t.Errorf("%s: %v, want %v", key, got, at[float64](t, v, key))
		}
	}
	rank := struct{ TrueValues, Pred [][]float64 }{}
	raw := at[map[string]json.RawMessage](t, v, "rank_top1")
	for key, to := range map[string]any{"true_values": &rank.TrueValues, "pred": &rank.Pred} {
		if err := json.Unmarshal(raw[key], to); err != nil {
			t.Fatal(err)
		}
	}
	var pairs []Pair
	for f := range rank.Pred {
		for _, p := range pairsOf(rank.TrueValues[f], rank.Pred[f]) {
			p.Fork = string(rune('a' + f))
			pairs = append(pairs, p)
		}
	}
	var acc float64
	if err := json.Unmarshal(raw["acc"], &acc); err != nil {
		t.Fatal(err)
	}
	if s := Measure(pairs); s.Top1 == nil || *s.Top1 != acc || s.Forks != 2 {
		t.Errorf("top 1: %+v", s)
	}
}

func pairsOf(returns, values []float64) []Pair {
	var out []Pair
	for i := range returns {
		out = append(out, Pair{Schema: PairSchema, Prefix: string(rune('a' + i)), State: string(rune('a' + i)), Return: returns[i], Value: &values[i], N: 1})
	}
	return out
}

func TestFamilies(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	got := Families([]Outcome{
		{Family: "b", ID: "5", Reward: 1, EndedAt: at(9)},
		{Family: "a", Group: "g2", ID: "3", Reward: 0, EndedAt: at(4)},
		{Family: "a", Group: "g1", ID: "1", Reward: 1, EndedAt: at(1)},
		{Family: "a", Group: "g1", ID: "2", Reward: 0, EndedAt: at(3)},
		{Family: "a", ID: "4", Reward: 1, EndedAt: at(5)},
	})
	if len(got) != 2 || got[0].Family != "a" || got[1].Family != "b" {
		t.Fatalf("got %+v", got)
	}
	a := got[0] // batches 0.5, 0, 1
	if want := Average(Average(0.5, 0, 0.9), 1, 0.9); !close6(a.Success, want) || a.Batches != 3 || a.Rollouts != 4 || a.Mean != 0.5 || !a.EndedAt.Equal(at(5)) {
		t.Errorf("got %+v, want success %v", a, want)
	}
	if got := Families(nil); got == nil || len(got) != 0 {
		t.Errorf("no outcomes are an empty list, got %v", got)
	}
}
