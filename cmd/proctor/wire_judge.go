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

// voteTemperature is what a question is asked at again: at 0 every vote would be the first one.
const voteTemperature = 0.7

// newJudge gives the judge of the settings: an endpoint, or the built-in heuristic where none is
// set. Behind an endpoint stand a cache, a breaker, votes where the first answer is unsure, and the heuristic as the second opinion on calls
// that hold text for a judge: it reads no prose, and so cannot be talked to.
func newJudge(c config.Judge, log *slog.Logger) (judge.Judge, error) {
	if c.URL == "" {
		return judge.NewHeuristic(), nil
	}
	settings := judge.Config{BaseURL: c.URL, Model: c.Model, APIKey: c.APIKey, Timeout: c.Timeout, Concurrency: c.Concurrency,
		RPS: c.RPS, PriceIn: c.PriceIn, PriceOut: c.PriceOut, Logger: log}
	model, err := judge.NewOpenAI(settings)
	if err != nil {
		return nil, err
	}
	asked := judge.NewBreaker(model, breakerFailures, breakerRest)
	if c.Votes > 1 {
		settings.Temperature = voteTemperature
		again, err := judge.NewOpenAI(settings)
		if err != nil {
			return nil, err
		}
		asked = judge.NewQuorum(asked, judge.NewBreaker(again, breakerFailures, breakerRest), c.Votes)
	}
	return judge.NewCache(judge.NewSecondOpinion(asked, judge.NewHeuristic()), 0), nil
}
