package credit

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// vectors are the worked examples that lie beside the project.
type vectors map[string]map[string]json.RawMessage

func golden(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("../../../../shared/golden/credit.json")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the worked examples are not beside the project: %v", err)
		}
		t.Skipf("SKIPPED, LOUDLY: the worked examples are not beside the project: %v", err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// at reads one entry into a T; the entry must exist.
func at[T any](t *testing.T, v vectors, section, key string) T {
	t.Helper()
	raw, ok := v[section][key]
	if !ok {
		t.Fatalf("the worked examples have no %s / %s", section, key)
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s / %s: %v", section, key, err)
	}
	return out
}

// equal holds got against worked numbers, which have six decimals.
func equal(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= 1.5e-6) {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

func TestGoldenGroups(t *testing.T) {
	v := golden(t)
	rewards := at[[]float64](t, v, "grpo", "rewards")
	equal(t, "ddof 1", GRPO(rewards, 1), at[[]float64](t, v, "grpo", "ddof1_eps1e-6"))
	equal(t, "ddof 0", GRPO(rewards, 0), at[[]float64](t, v, "grpo", "ddof0_eps1e-6"))
	equal(t, "no std", GRPONoStd(rewards), at[[]float64](t, v, "grpo", "no_std"))
	equal(t, "maxrl", MaxRL(rewards), at[[]float64](t, v, "grpo", "maxrl"))
	equal(t, "all equal", GRPO([]float64{1, 1, 1}, 1), at[[]float64](t, v, "grpo", "all_equal[1,1,1]"))
	equal(t, "singleton", GRPO([]float64{0.7}, 1), at[[]float64](t, v, "grpo", "singleton_verl[0.7]"))
	equal(t, "rloo", RLOO(at[[]float64](t, v, "rloo", "rewards")), at[[]float64](t, v, "rloo", "adv"))
}

func TestGoldenGroupByRollout(t *testing.T) {
	v := golden(t)
	var d Document
	for i, k := range at[[]int](t, v, "group_by_rollout", "K") {
		reward := at[[]float64](t, v, "group_by_rollout", "rollout_rewards")[i]
		r := Rollout{ID: string(rune('a' + i)), Reward: &reward}
		for s := range k {
			r.Segments = append(r.Segments, Segment{Order: s, ActionMask: []int{1, 1}})
		}
		d.Rollouts = append(d.Rollouts, r)
	}
	res := estimate(t, &d, Options{Estimator: "grpo-nostd", Gamma: 1, Lambda: 1})
	var got []float64
	for i, r := range res.Rollouts {
		got = append(got, *r.Advantage)
		for _, s := range r.Segments {
			equal(t, "tokens", s.Advantages, []float64{got[i], got[i]})
		}
	}
	equal(t, "group by rollout", got, at[[]float64](t, v, "group_by_rollout", "correct_adv_per_rollout"))
}

func TestGoldenGAE(t *testing.T) {
	v := golden(t)
	act, val, rew := at[[]int](t, v, "gae_skip_obs", "act"), at[[]float64](t, v, "gae_skip_obs", "val"), at[[]float64](t, v, "gae_skip_obs", "rew")
	want := func(key string) []float64 { return at[[]float64](t, v, "gae_skip_obs", key) }
	gae := func(gamma, lambda float64) []float64 { return GAE(act, val, rew, gamma, lambda, Tail{}) }
	equal(t, "0.95", gae(1, 0.95), want("lam0.95"))
	equal(t, "1", gae(1, 1), want("lam1"))
	equal(t, "discounted", gae(0.99, 0.95), want("gamma0.99_lam0.95"))
	equal(t, "whitened", Whiten(act, gae(1, 0.95)), want("lam0.95_whitened"))
	equal(t, "returns", Returns(act, gae(1, 1), val), want("returns_lam1"))
	equal(t, "no skip", GAE(nil, val, rew, 1, 0.95, Tail{}), want("lam0.95_noskip(slime vanilla_gae)"))

	one := 1.0
	d := &Document{Rollouts: []Rollout{{ID: "a", Reward: &one, Segments: []Segment{{ActionMask: act, Values: val, Rewards: rew}}}}}
	for _, tc := range []struct {
		o              Options
		section        string
		advs, returned string
	}{
		{Options{Estimator: "gae", Gamma: 1, Lambda: 1}, "gae_skip_obs", "lam1", "returns_lam1"},
		{Options{Estimator: "gae", Gamma: 1, Lambda: 0.95}, "gae_skip_obs", "lam0.95", ""},
		{Options{Estimator: "gae", Gamma: 1, Lambda: 0.95, Whiten: true}, "gae_skip_obs", "lam0.95_whitened", ""},
		{Options{Estimator: "gae", Gamma: 1, Lambda: 0.95}, "vcppo", "actor_adv_lam0.95", "coupled_target_lam0.95(wrong for VC-PPO)"},
		{Options{Estimator: "vcppo", Gamma: 1, Lambda: 0.95}, "vcppo", "actor_adv_lam0.95", "critic_target_lam1"},
		{Options{Estimator: "vcppo", Gamma: 1, LambdaAlpha: 1.5}, "vcppo", "adv_len_adaptive", "critic_target_lam1"},
	} {
		s := estimate(t, d, tc.o).Rollouts[0].Segments[0]
		equal(t, tc.advs, s.Advantages, at[[]float64](t, v, tc.section, tc.advs))
		if tc.returned != "" {
			equal(t, tc.returned, s.Returns, at[[]float64](t, v, tc.section, tc.returned))
		}
	}
	lambdas := []float64{AdaptiveLambda(1.5, 5), AdaptiveLambda(0.05, 5), AdaptiveLambda(0.05, 1000)}
	equal(t, "adaptive lambda", lambdas, []float64{at[float64](t, v, "vcppo", "lam_len_adaptive_alpha1.5"),
		at[float64](t, v, "vcppo", "lam_vapo_alpha0.05_L5_clamped"), at[float64](t, v, "vcppo", "lam_vapo_alpha0.05_L1000")})
}

func TestGoldenCompaction(t *testing.T) {
	v := golden(t)
	type seg struct {
		Act []int
		Val []float64
	}
	segs := at[map[string]seg](t, v, "compaction", "segments")
	names := []string{"exec0", "summary0", "exec1"}
	reward := at[float64](t, v, "compaction", "terminal_reward")
	r := Rollout{ID: "a", Reward: &reward}
	for i, n := range names {
		r.Segments = append(r.Segments, Segment{ID: n, Order: i, ActionMask: segs[n].Act, Values: segs[n].Val})
	}
	d := &Document{Rollouts: []Rollout{r}}
	for key, o := range map[string]Options{
		"local_full_reward_lam0.95":      {Estimator: "gae", Lambda: 0.95},
		"local_full_reward_lam1":         {Estimator: "gae", Lambda: 1},
		"local_reward_over_K_lam1":       {Estimator: "gae", Lambda: 1, ShareReward: true},
		"crosstraj_CompactionRL_lam0.95": {Estimator: "compaction", Lambda: 0.95},
		"crosstraj_lam1":                 {Estimator: "compaction", Lambda: 1},
		"chained_bootstrap_lam0.95":      {Estimator: "chained", Lambda: 0.95},
		"chained_lam1":                   {Estimator: "chained", Lambda: 1},
	} {
		o.Gamma = 1
		want := at[map[string][]float64](t, v, "compaction", key)
		after := at[map[string]int](t, v, "compaction", "N_after")
		for _, s := range estimate(t, d, o).Rollouts[0].Segments {
			equal(t, key+" "+s.ID, s.Advantages, want[s.ID])
			if s.NAfter != after[s.ID] {
				t.Errorf("%s: n_after %d, want %d", s.ID, s.NAfter, after[s.ID])
			}
		}
	}
}

func TestGoldenSteps(t *testing.T) {
	v := golden(t)
	values := at[[]float64](t, v, "step_level", "V_turn")
	one := 1.0
	s := Segment{ActionMask: []int{1, 1, 0, 1, 0, 1, 1}, Turns: []int{0, 0, -1, 1, -1, 2, 2},
		Values: []float64{values[0], 9, 9, values[1], 9, values[2], 9}}
	d := &Document{Rollouts: []Rollout{{ID: "a", Reward: &one, Segments: []Segment{s}}}}
	for key, lambda := range map[string]float64{"lam0.95": 0.95, "lam1": 1} {
		want := at[[]float64](t, v, "step_level", key)
		equal(t, key, Steps(values, at[[]float64](t, v, "step_level", "r_turn"), 1, lambda), want)
		got := estimate(t, d, Options{Estimator: "step", Gamma: 1, Lambda: lambda}).Rollouts[0].Segments[0].Advantages
		equal(t, "tokens "+key, got, []float64{want[0], want[0], 0, want[1], 0, want[2], want[2]})
	}
}

func TestGoldenBlocked(t *testing.T) {
	v := golden(t)
	act, turns := at[[]int](t, v, "blocked", "act"), at[[]int](t, v, "blocked", "turn")
	val, rew := at[[]float64](t, v, "blocked", "val"), at[[]float64](t, v, "blocked", "reward")
	one := 1.0
	d := &Document{Rollouts: []Rollout{{ID: "a", Reward: &one, Segments: []Segment{
		{ActionMask: act, Turns: turns, Values: val, Rewards: rew, LossMask: append([]int{}, act...), BlockedTurns: []int{1}}}}}}
	run := func(policy string) SegmentResult {
		o := Options{Estimator: "gae", Gamma: 1, Lambda: 0.95, Blocked: blockedPolicy(t, policy)}
		return estimate(t, d, o).Rollouts[0].Segments[0]
	}
	equal(t, "keep", run("keep").Advantages, at[[]float64](t, v, "blocked", "keep_adv"))
	equal(t, "penalty", run("penalty:-0.5").Advantages, at[[]float64](t, v, "blocked", "penalty-0.5_on_last_token_of_blocked_turn_adv"))
	two := at[[][]float64](t, v, "blocked", "mask_two_masks(adv unchanged, loss_mask)")
	masked := run("mask")
	equal(t, "mask", masked.Advantages, two[0])
	for i, m := range masked.LossMask {
		if float64(m) != two[1][i] {
			t.Errorf("loss mask %v, want %v", masked.LossMask, two[1])
		}
	}
	single := append([]int{}, act...)
	single[3], single[4] = 0, 0
	equal(t, "one mask", GAE(single, val, rew, 1, 0.95, Tail{}), at[[]float64](t, v, "blocked", "mask_one_mask(verl response_mask reuse: turn becomes an observation)"))

	group := at[map[string][]float64](t, v, "blocked", "grpo_keep_vs_reward_penalty")
	many := &Document{}
	for i, r := range group["rewards"] {
		s := Segment{ActionMask: []int{1}, Turns: []int{0}, LossMask: []int{1}}
		if i == 0 {
			s.BlockedTurns = []int{0}
		}
		many.Rollouts = append(many.Rollouts, Rollout{ID: string(rune('a' + i)), Reward: &r, Segments: []Segment{s}})
	}
	for policy, want := range map[string][]float64{"keep": group["adv"], "mask": group["adv"], "penalty:-0.5": group["with_-0.5_on_first"],
		"reject": at[[]float64](t, v, "blocked", "zero_outcome(reject)")} {
		var got []float64
		for _, r := range estimate(t, many, Options{Estimator: "grpo", DDoF: 1, Gamma: 1, Lambda: 1, Blocked: blockedPolicy(t, policy)}).Rollouts {
			got = append(got, *r.Advantage)
		}
		equal(t, "grpo "+policy, got, want)
	}
}

func TestGoldenOffPolicy(t *testing.T) {
	v := golden(t)
	rho := at[[]float64](t, v, "off_policy", "icepop_and_tis_rho")
	equal(t, "icepop", IcePop(rho, 2), at[[]float64](t, v, "off_policy", "icepop_beta2"))
	equal(t, "tis", TIS(rho, 2), at[[]float64](t, v, "off_policy", "tis_clip_[0,2]"))
	for key, eps := range map[string][2]float64{"dis_coding_0.8_3.0": {0.8, 3}, "dis_reasoning_0.3_5.0": {0.3, 5}} {
		w := at[map[string][]float64](t, v, "off_policy", key)
		equal(t, key, DIS(w["rho"], eps[0], eps[1]), w["weight"])
	}
	type drop struct {
		Tau, WNow int
		W0        []int
		Drop      []bool
	}
	var s drop
	raw := at[map[string]json.RawMessage](t, v, "off_policy", "stale_drop")
	for key, to := range map[string]any{"tau": &s.Tau, "w_now": &s.WNow, "w0": &s.W0, "drop": &s.Drop} {
		if err := json.Unmarshal(raw[key], to); err != nil {
			t.Fatal(key, err)
		}
	}
	for i, got := range Stale(s.WNow, s.W0, s.Tau) {
		if got != s.Drop[i] {
			t.Errorf("stale %d: %v", i, got)
		}
	}
}

func TestGoldenGroupRepair(t *testing.T) {
	v := golden(t)
	size := at[int](t, v, "group_repair", "G")
	got := RepairGroup([]string{"v0", "v1", "v2", "v3", "v4"}, size)
	if want := at[[]string](t, v, "group_repair", "valid5"); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := RepairGroup([]string{"v0", "v1", "v2", "v3"}, size); got != nil || string(v["group_repair"]["valid4"]) != "null" {
		t.Errorf("half a group is dropped, got %v", got)
	}
}

func TestGoldenReducers(t *testing.T) {
	v := golden(t)
	tokens := at[map[string][]int](t, v, "loss_reducers", "trainable_tokens")
	counts := [][]int{tokens["r1"], tokens["r2"]}
	weights := func(by Reducer) [][]float64 {
		w, err := Weights(counts, by)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for r, segs := range w {
			for s, x := range segs {
				sum += x * float64(counts[r][s])
			}
		}
		equal(t, "sum of "+string(by), []float64{sum}, []float64{1})
		return w
	}
	each := at[map[string]float64](t, v, "loss_reducers", "token_mean(GLM-5.2,CompactionRL)")["each"]
	w := weights(TokenMean)
	equal(t, "token", append(append([]float64{}, w[0]...), w[1]...), []float64{each, each, each, each})
	per := at[map[string]float64](t, v, "loss_reducers", "per_rollout_mean(slime default)")
	w = weights(RolloutMean)
	equal(t, "rollout", []float64{w[0][0], w[0][2], w[1][0]}, []float64{per["r1"], per["r1"], per["r2"]})
	seg := at[map[string][]float64](t, v, "loss_reducers", "per_segment_mean(wrong)")
	w = weights(SegmentMean)
	equal(t, "segment r1", w[0], seg["r1"])
	equal(t, "segment r2", w[1], seg["r2"])
	if _, err := Weights(counts, "turn"); err == nil {
		t.Error("an unknown reducer is an error")
	}
}

func estimate(t *testing.T, d *Document, o Options) *Result {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Read(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := Estimate(read, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func blockedPolicy(t *testing.T, s string) Blocked {
	t.Helper()
	b, err := ParseBlocked(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
