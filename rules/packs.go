package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
	"sync"
)

// Packs are loaded packs, merged by id and with overlays applied. Immutable; safe for concurrent
// use.
type Packs struct {
	packs []*Pack // by id
	src   sources

	once   sync.Once
	shared *shared // see prefilter.go; made at the first Compile
	broken error

	pin    sync.Once
	digest string // made when first asked for: it takes as long as judging a call
}

// Packs lists the packs, by id.
func (p *Packs) Packs() []*Pack { return p.packs }

// Files lists the files that the packs were read from, sorted.
func (p *Packs) Files() []string { return keys(p.src) }

// Rules lists the rules of every pack, by pack and then in the order of the files; disabled and
// deprecated ones too.
func (p *Packs) Rules() []*Rule {
	var out []*Rule
	for _, pk := range p.packs {
		for i := range pk.Rules {
			out = append(out, &pk.Rules[i])
		}
	}
	return out
}

// Rule finds a rule by its full id.
func (p *Packs) Rule(id string) (*Rule, bool) {
	for _, r := range p.Rules() {
		if r.FullID() == id {
			return r, true
		}
	}
	return nil, false
}

// Active says whether the rule runs: it is neither disabled by an overlay nor deprecated.
func (r *Rule) Active() bool { return !r.disabled && r.Status != "deprecated" }

// Overlays gives the reasons of the overlays that changed the rule.
func (r *Rule) Overlays() []string { return r.overlaid }

// Digest pins what decides: the rules as they stand after overlays, and the engine's version.
// Places, file names and tests do not count. "sha256:<hex>".
func (p *Packs) Digest() string {
	p.pin.Do(func() { p.digest = p.digested() })
	return p.digest
}

func (p *Packs) digested() string {
	type pinned struct {
		Pack, Version string
		Lists         map[string][]string
		Rules         []Rule
		Active        []bool
	}
	var all []pinned
	for _, pk := range p.packs {
		one := pinned{Pack: pk.ID, Version: pk.Version, Lists: pk.Lists}
		for _, r := range pk.Rules {
			one.Active = append(one.Active, r.Active())
			r.Tests = Tests{}
			one.Rules = append(one.Rules, r)
		}
		sort.SliceStable(one.Rules, func(i, j int) bool { return one.Rules[i].ID < one.Rules[j].ID })
		all = append(all, one)
	}
	text, err := json.Marshal(all)
	if err != nil {
		// Plain strings and numbers always marshal.
		panic(fmt.Sprintf("rules: digest: %v", err))
	}
	sum := sha256.Sum256(append([]byte("engine "+EngineVersion+"\n"), text...))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Merge joins packs that were loaded apart, such as the core packs and a user's. Overlays of either
// reach the rules of both.
func Merge(sets ...*Packs) (*Packs, []Problem) {
	var files []*Pack
	src := sources{}
	for _, s := range sets {
		if s == nil {
			continue
		}
		files = append(files, s.packs...)
		for f, lines := range s.src {
			src[f] = lines
		}
	}
	return assemble(files, src)
}
