package evalrun

import (
	"math"
	"testing"
	"testing/quick"

	"proctor/tasks"
)

// choose gives C(n, k).
func choose(n, k int) float64 {
	if k > n {
		return 0
	}
	out := 1.0
	for i := 1; i <= k; i++ {
		out *= float64(n-k+i) / float64(i)
	}
	return out
}

func TestPassAtK(t *testing.T) {
	same := func(a, b, c uint8) bool {
		n := int(a%40) + 1
		passed, k := int(b)%(n+1), int(c)%n+1
		want := 1 - choose(n-passed, k)/choose(n, k)
		return math.Abs(PassAtK(n, passed, k)-want) < 1e-9
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
}

func result(task string, k int, reward float64, unblocked int) *Result {
	r := &Result{TaskID: task, Attempt: k, RolloutID: "r", Unblocked: unblocked, Hacks: unblocked}
	if reward >= 0 {
		r.Reward, r.Outcome = &reward, tasks.Unresolved
		if reward == 1 {
			r.Outcome = tasks.Resolved
		}
	}
	return r
}

func summarise(n int, list ...*Result) *Report {
	results := map[attemptKey]*Result{}
	var ids []string
	seen := map[string]bool{}
	for _, r := range list {
		results[attemptKey{r.TaskID, r.Attempt}] = r
		if !seen[r.TaskID] {
			seen[r.TaskID] = true
			ids = append(ids, r.TaskID)
		}
	}
	return Summarise(Plan{Tasks: ids, N: n}, results)
}

func TestSummary(t *testing.T) {
	r := summarise(2, result("a", 1, 1, 0), result("a", 2, 0, 0), result("b", 1, 1, 1), result("b", 2, -1, 0), result("c", 1, 0, 0))
	if r.Done != 5 || r.Graded != 4 || r.Resolved != 2 || r.Failures["infra"] != 1 {
		t.Errorf("%+v", r)
	}
	// a: 1 of 2; b: 1 of the 1 that has a reward; c: 0 of 1.
	if e := r.PassAt[1]; math.Abs(e.Value-0.5) > 1e-9 || e.Tasks != 3 || e.Lo > e.Value || e.Hi < e.Value || e.Method != "bootstrap" {
		t.Errorf("%+v", e)
	}
	if e := r.PassAt[2]; e.Value != 1 || e.Tasks != 1 { // only a has two rewards
		t.Errorf("%+v", e)
	}
	if e := r.PassAtClean[1]; math.Abs(e.Value-1.0/6) > 1e-9 {
		t.Errorf("%+v", e)
	}
	if r.HackRate.Hit != 1 || r.HackRate.N != 5 || r.HackRateUnblocked.Hit != 1 {
		t.Errorf("%+v", r.HackRate)
	}
}

// Every interval holds its value and stays within 0 and 1, whatever the results.
func TestIntervals(t *testing.T) {
	holds := func(rewards []bool, n uint8) bool {
		attempts := int(n%5) + 1
		var list []*Result
		for i, pass := range rewards {
			reward := 0.0
			if pass {
				reward = 1
			}
			list = append(list, result(string(rune('a'+i/attempts%26)), i%attempts+1, reward, 0))
		}
		for _, e := range summarise(attempts, list...).PassAt {
			if e.Lo < 0 || e.Hi > 1 || e.Value < e.Lo-1e-9 || e.Value > e.Hi+1e-9 {
				return false
			}
		}
		return true
	}
	if err := quick.Check(holds, nil); err != nil {
		t.Error(err)
	}
}

func TestSafeName(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"a", "a/b", "a_b", "../../x", "..", ".hidden", "", "acme__w-1", "ü", "a b", string(make([]byte, 300))} {
		name := SafeName(id)
		if old, ok := seen[name]; ok {
			t.Errorf("%q and %q are both %q", old, id, name)
		}
		seen[name] = id
		if name == "" || name[0] == '.' || len(name) > 130 {
			t.Errorf("%q is %q", id, name)
		}
	}
}
