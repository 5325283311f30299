package grading

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"proctor/sandbox"
	"proctor/tasks"
)

// rewardPlaces are where verifiers of the Harbor form leave their reward, the first that is there counts.
var rewardPlaces = []string{"/logs/verifier/reward.txt", "/logs/verifier/reward.json"}

// byRewardFile reads a reward that the task's own verifier wrote: a number from 0 to 1, or a JSON object
// of numbers, of which "reward" is what is paid and the others are components.
func byRewardFile(g *tasks.Grader, run testRun) (finding, float64) {
	f := finding{outcome: tasks.Unresolved, failure: sandbox.FailureModel, tests: allFailed(g)}
	if run.exit == nil {
		f.note("the verifier did not end by itself")
		return f, 0
	}
	f.witness("exit status %d", *run.exit)
	if run.report == nil {
		f.note("the verifier wrote no reward")
		return f, 0
	}
	paid, parts, err := parseReward(run.report)
	if err != nil {
		f.note("the reward file holds %q: %v", clip(string(run.report), 60), err)
		return f, 0
	}
	f.parts = parts
	f.witness("reward file: %g", paid)
	if paid == 1 {
		f.outcome, f.tests = tasks.Resolved, allPassed(g)
	}
	return f.settle(), paid
}

// maxParts bounds the components of a reward.
const maxParts = 100

// parseReward reads a reward file.
func parseReward(data []byte) (paid float64, parts map[string]float64, err error) {
	text := strings.TrimSpace(string(data))
	if !strings.HasPrefix(text, "{") {
		paid, err = strconv.ParseFloat(text, 64)
		if err != nil || !(paid >= 0 && paid <= 1) {
			return 0, nil, errors.New("not a number from 0 to 1")
		}
		return paid, nil, nil
	}
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return 0, nil, fmt.Errorf("not an object of numbers: %w", err)
	}
	paid, ok := parts["reward"]
	if !ok && len(parts) == 1 {
		for _, paid = range parts {
			ok = true
		}
	}
	switch {
	case !ok:
		return 0, nil, errors.New("it names no reward")
	case math.IsNaN(paid) || paid < 0 || paid > 1:
		return 0, nil, fmt.Errorf("reward %g is not from 0 to 1", paid)
	case len(parts) > maxParts:
		return 0, nil, fmt.Errorf("over %d components", maxParts)
	}
	return paid, parts, nil
}

// components are the shares of expected tests that passed, or what a reward file holds.
func components(f finding) map[string]float64 {
	if f.parts != nil {
		return f.parts
	}
	share := func(l tasks.TestList) float64 {
		if len(l.Passed)+len(l.Failed) == 0 {
			return 1
		}
		return float64(len(l.Passed)) / float64(len(l.Passed)+len(l.Failed))
	}
	return map[string]float64{"fail_to_pass": share(f.tests.FailToPass), "pass_to_pass": share(f.tests.PassToPass)}
}

// score is the reward of a finding: binary, or, where the task asks for a fraction, the share of
// FAIL_TO_PASS times that of PASS_TO_PASS, so that breaking what worked is never worth it. A reward
// file's number is the task's own. Tampering pays nothing.
func score(g *tasks.Grader, f finding, parts map[string]float64, paid float64) float64 {
	switch {
	case f.outcome == tasks.Tampered:
		return 0
	case g.Report == "reward-file":
		return paid
	case f.outcome == tasks.Resolved:
		return 1
	case g.Reward == "fraction":
		return parts["fail_to_pass"] * parts["pass_to_pass"]
	}
	return 0
}
