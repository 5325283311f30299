package main

import (
	"encoding/json"
	"sync"

	"proctor/monitor"
	"proctor/rules"
)

// packSet is a rollouts.RuleSet over packs: it compiles them once per task's variables.
type packSet struct {
	packs  *rules.Packs
	source *packSource // that it is or was the current set of; nil for one alone

	mu   sync.Mutex
	sets map[string]*rules.Set // by the variables as JSON, which has sorted keys
}

func newPackSet(packs *rules.Packs) *packSet {
	return &packSet{packs: packs, sets: map[string]*rules.Set{}}
}

// Digest pins the packs.
func (p *packSet) Digest() string { return p.packs.Digest() }

// Session gives a matcher for one rollout.
func (p *packSet) Session(vars rules.Vars) (monitor.Matcher, error) {
	vars = p.packs.Relevant(vars) // tasks that differ in nothing that a rule reads share a set
	key, err := json.Marshal(vars)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	set, ok := p.sets[string(key)]
	if !ok {
		if set, err = rules.Compile(p.packs, vars); err != nil {
			return nil, err
		}
		p.sets[string(key)] = set
		go set.Prepare() // while the rollout's sandbox starts; matching that comes first waits for what it needs alone
	}
	return twoPhases{set.Session()}, nil
}

// twoPhases is a session with its second phase apart: an event with a result is matched by the rules
// on results alone.
type twoPhases struct{ *rules.Session }

// MatchResult implements monitor.ResultMatcher.
func (t twoPhases) MatchResult(ev *rules.Event) []rules.Hit { return t.Match(ev) }
