package main

import (
	"log/slog"
	"time"

	"proctor/internal/config"
	"proctor/judge"
)

// After breakerFailures timeouts or outages in a row a judge is left alone for breakerRest: short
// enough that a restarted endpoint is found again soon, long enough that calls do not each wait for
// the timeout of a dead one.
const (
	breakerFailures = 5
	breakerRest     = 15 * time.Second
)

// newJudge gives the judge of the settings: an endpoint, or the built-in heuristic where none is
// set. Behind an endpoint stand a cache, a breaker, and the heuristic as the second opinion on calls
// that hold text for a judge: it reads no prose, and so cannot be talked to.
func newJudge(c config.Judge, log *slog.Logger) (judge.Judge, error) {
	if c.URL == "" {
		return judge.NewHeuristic(), nil
	}
	model, err := judge.NewOpenAI(judge.Config{BaseURL: c.URL, Model: c.Model, APIKey: c.APIKey,
		Timeout: c.Timeout, Concurrency: c.Concurrency, Logger: log})
	if err != nil {
		return nil, err
	}
	guarded := judge.NewSecondOpinion(judge.NewBreaker(model, breakerFailures, breakerRest), judge.NewHeuristic())
	return judge.NewCache(guarded, 0), nil
}
