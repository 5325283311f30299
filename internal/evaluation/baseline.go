// Package evaluation holds what detection reaches on corpora against a committed baseline: it groups
// the outcomes of calls, tells which figures fell, and writes the page that shows them. It reads no
// corpus and runs no rule; a command does that and adds the outcomes.
package evaluation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"proctor/internal/tally"
)

// Report is the outcome over some corpora: what was measured now, or a baseline.
type Report struct {
	Packs string              `json:"packs"` // digest of the rule packs
	Judge string              `json:"judge"`
	Sets  map[string]*Set     `json:"sets"`  // by file name
	Rules map[string]RuleText `json:"rules"` // of every rule that hit an honest call

	Untuned []Untuned `json:"untuned,omitempty"` // first figures on sets that packs and judge had not been tuned on
}

// Untuned are the figures of a set on the day it was written, before anybody had looked at what rules
// and judge make of it. An update keeps them: they cannot be measured again.
type Untuned struct {
	Set    string `json:"set"` // file name
	Commit string `json:"commit"`
	Stage1 Counts `json:"stage1"`
	Final  Counts `json:"final"`
}

// Set is the outcome over one corpus.
type Set struct {
	Digest string            `json:"digest"`           // SHA-256 of the file, in hexadecimal
	Beside bool              `json:"beside,omitempty"` // the corpus is no part of the repository
	Rows   int               `json:"rows"`
	Bad    int               `json:"bad,omitempty"` // lines that could not be used
	Groups map[string]*Group `json:"groups"`        // "all", "class git_history", "obfuscation none", "tool bash", "kind documented"
	False  []FalsePositive   `json:"false_positives,omitempty"`
	Missed []string          `json:"missed,omitempty"` // ids of hacks that no rule hit
	Passed []string          `json:"passed,omitempty"` // ids of hacks that were hit, and not judged hacks
}

// Group is a part of a corpus, at both stages.
type Group struct {
	Stage1 Counts `json:"stage1"` // a rule hit
	Final  Counts `json:"final"`  // judged a hack in the end
}

// Counts are hits by label.
type Counts struct {
	Hack       Count `json:"hack,omitzero"`
	Benign     Count `json:"benign,omitzero"`
	Grey       Count `json:"grey,omitzero"`
	Unlabelled Count `json:"unlabelled,omitzero"`
}

// Count is how many of n calls were hit.
type Count struct {
	N   int `json:"n"`
	Hit int `json:"hit"`
}

// Rate gives c with its interval.
func (c Count) Rate() tally.Rate { return tally.Rate{N: c.N, Hit: c.Hit} }

// FalsePositive is an honest call that a rule hit.
type FalsePositive struct {
	ID    string   `json:"id"`
	Rules []string `json:"rules"`
	Hack  bool     `json:"hack,omitempty"` // judged a hack in the end
	Why   string   `json:"why,omitempty"`  // what the judge went by, for such a one
}

// RuleText is what a page says of a rule.
type RuleText struct {
	Title string   `json:"title"`
	Known []string `json:"known,omitempty"` // honest calls that it is known to hit
}

// Case is the outcome of one call.
type Case struct {
	ID, Label, Class, Obfuscation, Tool, Kind string
	Rules                                     []string // that hit; none: stage one let it pass
	Hack                                      bool
	Why                                       string
}

// NewSet gives an empty set.
func NewSet() *Set { return &Set{Groups: map[string]*Group{}} }

// Add counts one call.
func (s *Set) Add(c Case) {
	s.Rows++
	names := []string{"all"}
	for _, part := range [][2]string{{"class", c.Class}, {"obfuscation", c.Obfuscation}, {"tool", c.Tool}, {"kind", c.Kind}} {
		if part[1] != "" {
			names = append(names, part[0]+" "+part[1])
		}
	}
	for _, name := range names {
		g := s.Groups[name]
		if g == nil {
			g = &Group{}
			s.Groups[name] = g
		}
		g.Stage1.add(c.Label, len(c.Rules) > 0)
		g.Final.add(c.Label, c.Hack)
	}
	switch {
	case c.Label == "hack" && len(c.Rules) == 0:
		s.Missed = append(s.Missed, c.ID)
	case c.Label == "hack" && !c.Hack:
		s.Passed = append(s.Passed, c.ID)
	case c.Label == "benign" && len(c.Rules) > 0:
		f := FalsePositive{ID: c.ID, Rules: c.Rules, Hack: c.Hack}
		if c.Hack {
			f.Why = c.Why
		}
		s.False = append(s.False, f)
	}
}

func (c *Counts) add(label string, hit bool) {
	at := c.of(label)
	at.N++
	if hit {
		at.Hit++
	}
}

func (c *Counts) of(label string) *Count {
	switch label {
	case "hack":
		return &c.Hack
	case "benign":
		return &c.Benign
	case "grey":
		return &c.Grey
	}
	return &c.Unlabelled
}

// Load reads a baseline.
func Load(file string) (*Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var r Report
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("%s: %w; make it anew with an update", file, err)
	}
	for name, s := range r.Sets {
		if s == nil {
			return nil, fmt.Errorf("%s: sets.%s: it is null; make the baseline anew with an update", file, name)
		}
		for group, g := range s.Groups {
			if g == nil || !g.Stage1.sound() || !g.Final.sound() {
				return nil, fmt.Errorf("%s: sets.%s.groups.%s: more hits than calls, or none of both; make the baseline anew with an update", file, name, group)
			}
		}
	}
	return &r, nil
}

func (c Counts) sound() bool {
	for _, x := range []Count{c.Hack, c.Benign, c.Grey, c.Unlabelled} {
		if x.Hit < 0 || x.Hit > x.N {
			return false
		}
	}
	return true
}

// Save writes a baseline, whole or not at all.
func (r *Report) Save(file string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	return WriteWhole(file, b.Bytes())
}

// WriteWhole writes a file beside its place and moves it there; folders are made where missing.
func WriteWhole(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp := file + ".new"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}
