package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"proctor/internal/api"
	"proctor/internal/rollouts"
	"proctor/rules"
)

// packSource holds the packs that new rollouts are pinned to, and swaps them on demand. It is an
// api.Packs. Sets that were in use stay, so that a rollout gets the one that its record names.
type packSource struct {
	paths []string
	log   *slog.Logger

	reload sync.Mutex // one reload at a time
	mu     sync.Mutex // guards what follows
	now    *packSet
	past   []*packSet // oldest first, at most maxPastSets
}

// maxPastSets bounds the sets kept for rollouts that started before a reload. Each is a few MiB; a rollout that is
// older than this many reloads and is resumed goes on under the newest, and says so in its record.
const maxPastSets = 8

// maxWarm bounds the tasks that a new set is compiled for before it is used.
const maxWarm = 64

// newPackSource starts with packs that were read from paths.
func newPackSource(packs *rules.Packs, paths []string, log *slog.Logger) *packSource {
	s := &packSource{paths: paths, log: log, now: newPackSet(packs)}
	s.now.source = s
	return s
}

// current gives the set for new rollouts.
func (s *packSource) current() rollouts.RuleSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// at finds the set of a digest among those of this process.
func (s *packSource) at(digest string) (rollouts.RuleSet, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range append(slices.Clone(s.past), s.now) {
		if p.Digest() == digest {
			return p, true
		}
	}
	return nil, false
}

// PackList implements api.Packs.
func (s *packSource) PackList() api.PackList {
	s.mu.Lock()
	packs := s.now.packs
	s.mu.Unlock()
	out := api.PackList{Digest: packs.Digest(), Packs: []api.PackView{}}
	for _, p := range packs.Packs() {
		v := api.PackView{ID: p.ID, Version: p.Version, License: p.License, Rules: len(p.Rules)}
		for i := range p.Rules {
			if p.Rules[i].Active() {
				v.Active++
			}
		}
		for name := range p.Lists {
			v.Lists = append(v.Lists, name)
		}
		slices.Sort(v.Lists)
		out.Packs = append(out.Packs, v)
	}
	return out
}

// ReloadPacks implements api.Packs: read, lint, self-test, compile for the tasks in use, and swap. The
// packs in use are touched by nothing before the last step.
func (s *packSource) ReloadPacks(ctx context.Context) (api.PacksReloaded, error) {
	s.reload.Lock()
	defer s.reload.Unlock()
	s.mu.Lock()
	old := s.now
	s.mu.Unlock()
	fresh, err := s.read(ctx, old)
	if err != nil {
		s.log.WarnContext(ctx, "the packs were not reloaded; those in use stay", "err", err)
		return api.PacksReloaded{}, &rollouts.Error{Code: rollouts.CodePackInvalid, Detail: "Nothing was changed. " + err.Error()}
	}
	changed := fresh.Digest() != old.Digest()
	if changed {
		s.mu.Lock()
		s.past = append(s.past, old)
		s.past = s.past[max(0, len(s.past)-maxPastSets):]
		s.now = fresh
		s.mu.Unlock()
	}
	s.log.InfoContext(ctx, "packs reloaded", "digest", fresh.Digest(), "previous", old.Digest(), "changed", changed)
	return api.PacksReloaded{PackList: s.PackList(), Previous: old.Digest(), Changed: changed}, nil
}

// read makes the set that would come next.
func (s *packSource) read(ctx context.Context, old *packSet) (*packSet, error) {
	packs, err := packsWithCore(s.paths)
	if err != nil {
		return nil, err
	}
	report, err := rules.SelfTest(ctx, packs, normaliseCase)
	if err != nil {
		return nil, err
	}
	if bad := rules.Errors(rules.Lint(packs, report)); len(bad) > 0 {
		return nil, packErrors(bad)
	}
	fresh := newPackSet(packs)
	fresh.source = s
	for _, vars := range append([]rules.Vars{rules.TestTask()}, old.tasks(maxWarm)...) {
		if _, err := fresh.Session(vars); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// tasks gives the variables of at most n tasks that the set was compiled for.
func (p *packSet) tasks(n int) []rules.Vars {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []rules.Vars
	for key := range p.sets {
		var vars rules.Vars
		if len(out) < n && json.Unmarshal([]byte(key), &vars) == nil {
			out = append(out, vars)
		}
	}
	return out
}

// At gives the set that a rollout was pinned to, where this process still has it.
func (p *packSet) At(digest string) (rollouts.RuleSet, bool) {
	if p.source == nil {
		return p, p.Digest() == digest
	}
	return p.source.at(digest)
}

// onHangup reloads at every SIGHUP until ctx ends.
func (s *packSource) onHangup(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				_, _ = s.ReloadPacks(ctx) // the outcome is in the log: there is nobody else to tell
			}
		}
	}()
}
