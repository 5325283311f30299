package rollouts

import (
	"context"
	"sync"

	"proctor/judge"
	"proctor/monitor"
	"proctor/monitor/normalize"
	"proctor/rules"
	"proctor/sandbox"
	"proctor/tasks"
)

// newGate builds the Gate of a rollout. In mode off it neither normalises nor judges, and needs
// only the sandbox and the record.
func (m *Manager) newGate(d *document, sess sandbox.Session, watch monitor.Witness, box monitor.Executor, rec monitor.Recorder) (*monitor.Gate, error) {
	g := &monitor.Gate{
		Mode: d.View.Mode, Policy: m.opt.Policy, Task: judgeTask(d.Task), Box: box, Record: rec,
		RolloutID: d.View.ID, Log: m.opt.Log, Seen: m.opt.Observer.Stage, PacksID: d.View.Digests.Packs,
	}
	g.Policy.Preset, g.Policy.Answers = d.View.Preset, d.View.Answers
	for to, word := range map[*string]string{&g.Policy.OnUnsure: d.View.OnUnsure, &g.Policy.OnFailure: d.View.OnFailure, &g.Policy.OnOutage: d.View.OnOutage} {
		if word != "" {
			*to = word
		}
	}
	if d.View.Mode == monitor.Off {
		return g, nil
	}
	g.Normalizer = m.opt.Normalizer(normalizeTask(d.Task), m.opt.Lab.Facts(d.Task, d.Image, sess))
	g.Judge, g.Rules = m.opt.Judge, noRules{}
	if m.opt.Rules != nil {
		set := m.opt.Rules()
		if kept, ok := set.(PinnedRules); ok { // packs may have been reloaded since the digest was taken
			if pinned, ok := kept.At(d.View.Digests.Packs); ok {
				set = pinned
			}
		}
		matcher, err := set.Session(rules.Vars(d.Task.RuleVars()))
		if err != nil {
			return nil, asError(CodePackInvalid, "the rule packs do not compile for task "+d.Task.ID, err)
		}
		g.Rules = serialMatcher(matcher)
	}
	g.Decoys = m.opt.Decoys(DecoyEnv{Task: d.Task, Session: sess, Hardened: d.View.Hardening, Offline: d.Offline})
	g.Witness, g.Canaries, g.Honeypots = watch, m.canaries(d), d.honeypotPaths()
	return g, nil
}

// lockedMatcher lets control calls match beside the call that they control: a matcher keeps what
// sequences need and takes one call at a time.
type lockedMatcher struct {
	mu sync.Mutex
	m  monitor.Matcher
}

// Match gives the hits of ev.
func (l *lockedMatcher) Match(ev *rules.Event) []rules.Hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m.Match(ev)
}

// lockedResultMatcher is a lockedMatcher of a matcher that has the second phase.
type lockedResultMatcher struct {
	*lockedMatcher
	second monitor.ResultMatcher
}

// MatchResult gives the second phase's hits of ev.
func (l lockedResultMatcher) MatchResult(ev *rules.Event) []rules.Hit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.second.MatchResult(ev)
}

// serialMatcher gives m one call at a time; it has the second phase exactly where m has.
func serialMatcher(m monitor.Matcher) monitor.Matcher {
	locked := &lockedMatcher{m: m}
	if second, ok := m.(monitor.ResultMatcher); ok {
		return lockedResultMatcher{locked, second}
	}
	return locked
}

// noRules is the rule set of a server that was given none.
type noRules struct{}

func (noRules) Match(*rules.Event) []rules.Hit { return nil }

func judgeTask(t *tasks.Task) judge.Task {
	return judge.Task{ID: t.ID, Instruction: t.Instruction, Workdir: t.Workdir, Vars: t.RuleVars()}
}

func normalizeTask(t *tasks.Task) normalize.Task {
	return normalize.Task{Workdir: t.Workdir, Vars: rules.Vars(t.RuleVars())}
}

// dry is a Gate that concludes and never acts: for explaining a call, and for reading a patch.
func (m *Manager) dry(t *tasks.Task, n monitor.Normalizer, j judge.Judge) (*monitor.Dry, error) {
	if m.opt.Rules == nil {
		return monitor.NewDry(judgeTask(t), n, noRules{}, "", j, m.opt.Policy, m.opt.Log), nil
	}
	set := m.opt.Rules()
	matcher, err := set.Session(rules.Vars(t.RuleVars()))
	if err != nil {
		return nil, asError(CodePackInvalid, "the rule packs do not compile for task "+t.ID, err)
	}
	return monitor.NewDry(judgeTask(t), n, matcher, set.Digest(), j, m.opt.Policy, m.opt.Log), nil
}

// Check explains what the Gate would make of a call on a task, without running anything. The judge
// that it asks is the built-in one.
func (m *Manager) Check(ctx context.Context, taskID string, call monitor.Call) (Explanation, error) {
	t, err := m.Task(ctx, taskID)
	if err != nil {
		return Explanation{}, err
	}
	dry, err := m.dry(t, m.opt.Normalizer(normalizeTask(t), nil), judge.NewHeuristic())
	if err != nil {
		return Explanation{}, err
	}
	rec, err := dry.Do(ctx, call)
	if err != nil {
		return Explanation{}, asError(CodeInternal, "the call could not be explained", err)
	}
	e := Explanation{Hits: rec.Verdict.Hits, Decision: rec.Verdict.Decision}
	if rec.Event != nil {
		e.Event = *rec.Event
	}
	return e, nil
}
