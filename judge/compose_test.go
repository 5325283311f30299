package judge_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"proctor/judge"
	"proctor/judge/judgetest"
)

func TestCache(t *testing.T) {
	s := judgetest.Start(judgetest.Slow(30*time.Millisecond, judgetest.Honest))
	defer s.Close()
	j := judge.NewCache(client(t, s, nil), 2)
	c := foreign(t, "git show v2")
	var wg sync.WaitGroup
	var cached atomic.Int32
	for range 8 {
		wg.Go(func() {
			if o := j.Judge(context.Background(), c); o.Verdict == judge.Hack && o.Cached && o.Cost == 0 {
				cached.Add(1)
			}
		})
	}
	wg.Wait()
	if n := len(s.Requests()); n != 1 || cached.Load() != 7 {
		t.Errorf("8 equal questions: %d requests, %d cached", n, cached.Load())
	}
	for i, change := range []func(*judge.Case){
		func(c *judge.Case) { c.Packs = "other" },
		func(c *judge.Case) { c.Task.Instruction = "other" },
		func(c *judge.Case) { c.History = []string{"ls"} },
		func(c *judge.Case) {
			c.Event = encode(t, map[string]any{"call": map[string]string{"text": "git show v2"}, "x": 1})
		},
	} {
		d := foreign(t, "git show v2")
		change(&d)
		if o := j.Judge(context.Background(), d); o.Cached {
			t.Errorf("change %d is not in the key", i)
		}
	}
	if o := j.Judge(context.Background(), c); o.Cached {
		t.Error("an opinion outlived the limit of 2")
	}
}

func TestCacheForgetsFailures(t *testing.T) {
	s := judgetest.Start(judgetest.Refuse, judgetest.Honest)
	defer s.Close()
	j := judge.NewCache(client(t, s, nil), 0)
	if o := j.Judge(context.Background(), foreign(t, "git show v2")); o.Failure != judge.FailRefused {
		t.Fatalf("first %+v", o)
	}
	if o := j.Judge(context.Background(), foreign(t, "git show v2")); o.Verdict != judge.Hack {
		t.Errorf("second %+v", o)
	}
}

func TestQuorum(t *testing.T) {
	hack := judgetest.Answer("hack", "git_history", 0.9, "git")
	benign := judgetest.Answer("benign", "none", 0.9, "git")
	unsure := judgetest.Answer("unsure", "none", 0.5, "")
	cases := []struct {
		name     string
		plan     []judgetest.Behaviour
		want     string
		requests int
	}{
		{"sure at once", []judgetest.Behaviour{benign}, judge.Benign, 1},
		{"majority", []judgetest.Behaviour{unsure, hack, hack, hack}, judge.Hack, 4},
		{"split", []judgetest.Behaviour{unsure, hack, benign, hack, benign}, judge.Unsure, 5},
		{"never sure", []judgetest.Behaviour{unsure}, judge.Unsure, 5},
		{"failures are no votes", []judgetest.Behaviour{unsure, judgetest.Refuse, judgetest.Refuse, benign, benign}, judge.Unsure, 5},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := judgetest.Start(tc.plan...)
			defer s.Close()
			o := judge.NewQuorum(client(t, s, nil), client(t, s, nil), 5).Judge(context.Background(), foreign(t, "git show v2"))
			if o.Verdict != tc.want || len(s.Requests()) != tc.requests {
				t.Errorf("%+v after %d requests, want %s after %d", o, len(s.Requests()), tc.want, tc.requests)
			}
			if tc.requests > 1 && (len(o.Votes) != tc.requests || o.TokensOut != 20*tc.requests) {
				t.Errorf("%d votes, %d tokens", len(o.Votes), o.TokensOut)
			}
		})
	}
}

func TestBreaker(t *testing.T) {
	s := judgetest.Start(judgetest.Status(500, ""), judgetest.Status(500, ""), judgetest.Status(500, ""), judgetest.Honest)
	defer s.Close()
	clock := time.Unix(1000, 0)
	j := judge.NewBreakerAt(client(t, s, func(c *judge.Config) { c.Retries = -1 }), 2, time.Minute, func() time.Time { return clock })
	ask := func() judge.Opinion { return j.Judge(context.Background(), foreign(t, "git show v2")) }
	ask()
	ask()
	if o := ask(); o.Failure != judge.FailOutage || len(s.Requests()) != 2 {
		t.Fatalf("not open after two failures: %+v, %d requests", o, len(s.Requests()))
	}
	clock = clock.Add(2 * time.Minute)
	if ask(); len(s.Requests()) != 3 {
		t.Fatal("no probe after the cooldown")
	}
	if ask(); len(s.Requests()) != 3 {
		t.Fatal("a failed probe did not open it again")
	}
	clock = clock.Add(2 * time.Minute)
	if o := ask(); o.Verdict != judge.Hack {
		t.Fatalf("probe %+v", o)
	}
	if o := ask(); o.Verdict != judge.Hack || len(s.Requests()) != 5 {
		t.Errorf("not closed after a good probe: %+v", o)
	}
}

func TestDigestsPin(t *testing.T) {
	h := judge.NewHeuristic()
	seen := map[string]string{}
	for name, j := range map[string]judge.Judge{"heuristic": h, "quorum 3": judge.NewQuorum(h, h, 3), "quorum 5": judge.NewQuorum(h, h, 5),
		"second": judge.NewSecondOpinion(h, h), "no second": judge.NewSecondOpinion(h, nil)} {
		if other, ok := seen[j.Digest()]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[j.Digest()] = name
	}
	if judge.NewCache(h, 0).Digest() != h.Digest() || judge.NewBreaker(h, 0, 0).Digest() != h.Digest() {
		t.Error("a wrapper that decides nothing changes the digest")
	}
}

func TestParsePolicy(t *testing.T) {
	for _, s := range []string{"execute", "decoy", "hold"} {
		if p, err := judge.ParsePolicy(s); err != nil || string(p) != s {
			t.Errorf("%s: %v, %v", s, p, err)
		}
	}
	if _, err := judge.ParsePolicy("allow"); err == nil {
		t.Error("allow is taken")
	}
}
