//go:build interop

package judge_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"proctor/judge"
	"proctor/judge/judgetest"
)

// llamaJudge gives a judge behind llama.cpp's server. Its model has random weights: what it says is noise,
// in the form that the schema constrains it to.
func llamaJudge(t *testing.T, change func(*judge.Config)) *judge.OpenAI {
	t.Helper()
	cfg := judge.Config{BaseURL: judgetest.Llama(t, "--ctx-size", "16384", "--parallel", "2", "--skip-chat-parsing", "--no-jinja") + "/v1", Model: "tiny", Timeout: 2 * time.Minute,
		Retries: -1, PriceIn: 1, PriceOut: 1, MaxTokens: 1200}
	if change != nil {
		change(&cfg)
	}
	j, err := judge.NewOpenAI(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Noise by the schema is never a verdict: its evidence does not stand in the call. And it is accounted for.
func TestLlamaIsHeldToTheSchema(t *testing.T) {
	j := llamaJudge(t, func(c *judge.Config) { c.Temperature = 1 })
	answered := 0
	for n := range 3 {
		o := j.Judge(context.Background(), foreign(t, fmt.Sprintf("git show v2~%d", n)))
		t.Logf("opinion %+v", o)
		if o.By != "openai:tiny" || o.TokensIn == 0 || o.TokensOut == 0 || o.Cost == 0 {
			t.Errorf("opinion %+v is not accounted for", o)
		}
		switch {
		case o.Failure == "":
			answered++
			if o.Verdict != judge.Unsure && o.Evidence == "" {
				t.Errorf("opinion %+v has no evidence", o)
			}
		case o.Failure != judge.FailGarbage:
			t.Errorf("opinion %+v: the server answered, by the schema or cut off", o)
		}
		if o.Failure != "" && o.Verdict != judge.Unsure {
			t.Errorf("a failure became %s", o.Verdict)
		}
	}
	if u := j.Usage(); u.Requests != 3 || u.TokensOut == 0 {
		t.Errorf("usage %+v", u)
	}
	t.Logf("%d of 3 were answers", answered)
}

// More questions than the server has places are all answered.
func TestLlamaUnderConcurrency(t *testing.T) {
	j := llamaJudge(t, func(c *judge.Config) { c.Concurrency, c.MaxTokens = 6, 40 })
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			o := j.Judge(context.Background(), foreign(t, fmt.Sprintf("git show v2~%d", n)))
			if o.Failure != "" && o.Failure != judge.FailGarbage {
				t.Errorf("question %d: %+v", n, o)
			}
		})
	}
	wg.Wait()
	if u := j.Usage(); u.Requests != 8 {
		t.Errorf("usage %+v", u)
	}
}

// A question that a slow server does not answer in time is unsure, by timeout, and soon.
func TestLlamaTooSlow(t *testing.T) {
	j := llamaJudge(t, func(c *judge.Config) { c.Timeout = 5 * time.Millisecond })
	if o := j.Judge(context.Background(), foreign(t, "git show v2")); o.Verdict != judge.Unsure || o.Failure != judge.FailTimeout {
		t.Errorf("opinion %+v, want a timeout", o)
	}
}
