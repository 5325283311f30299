package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"golang.org/x/mod/semver"

	"proctor/sandbox/egress/index"
)

// packument is a package of the upstream.
type packument struct {
	Created  time.Time // zero where it is not known
	Tags     map[string]string
	Versions []version // in order, the lowest first
}

// rawPackument is what is read of a package's document. Values are read one by one: a package that was
// taken back has an object among its times.
type rawPackument struct {
	Tags     map[string]json.RawMessage `json:"dist-tags"`
	Times    map[string]json.RawMessage `json:"time"`
	Versions map[string]json.RawMessage `json:"versions"`
}

// versionSize is what a version takes beside its manifests, in bytes, about.
const versionSize = 256

// parsePackument reads an upstream's document of a package, which lay at base, and says how many bytes it
// takes from then on. origin is the Mirror's address. A version whose manifest cannot be read, or names no
// tarball, is left out.
func parsePackument(body []byte, name, origin string, base *url.URL) (*packument, int, error) {
	var raw rawPackument
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, 0, fmt.Errorf("its document is not JSON as npm registries have it: %w", err)
	}
	if raw.Versions == nil && raw.Times == nil {
		return nil, 0, errors.New("its document has neither versions nor times; it is no npm registry's")
	}
	p := &packument{Created: timeOf(raw.Times["created"]), Tags: map[string]string{}}
	for tag, number := range raw.Tags {
		if text := textOf(number); text != "" {
			p.Tags[tag] = text
		}
	}
	size := 0
	for number, manifest := range raw.Versions {
		v := version{Number: number, order: orderOf(number), Published: timeOf(raw.Times[number])}
		if v.read(manifest, tarballAt(origin, name, number), base) {
			p.Versions = append(p.Versions, v)
			size += len(v.whole) + len(v.part) + versionSize
		}
	}
	slices.SortFunc(p.Versions, compare)
	return p, size, nil
}

// textOf reads a string; "" for anything else.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// timeOf reads a time; zero for anything else.
func timeOf(raw json.RawMessage) time.Time {
	t, err := time.Parse(time.RFC3339Nano, textOf(raw))
	if err != nil {
		return time.Time{}
	}
	return t
}

// dated reports whether any version tells its time.
func (p *packument) dated() bool {
	return len(p.Versions) == 0 || slices.ContainsFunc(p.Versions, func(v version) bool { return !v.Published.IsZero() })
}

// under gives what of a package exists under a rule; nil where nothing does. Of the task's own package no
// version is deprecated: installers pass over one that is, and the fix may be why it became so.
func (p *packument) under(name string, rule index.Rule) *packument {
	kept := &packument{Created: p.Created, Tags: map[string]string{}}
	for _, v := range p.Versions {
		if has(rule, name, v) {
			v.Deprecated = v.Deprecated && !owns(rule, name)
			kept.Versions = append(kept.Versions, v)
		}
	}
	if len(kept.Versions) == 0 {
		return nil
	}
	for tag, number := range p.Tags {
		if _, ok := kept.find(number); ok {
			kept.Tags[tag] = number
		}
	}
	kept.Tags[latest] = kept.newest(p.Tags[latest]).Number
	if first, _ := kept.span(); kept.Created.IsZero() || kept.Created.After(first) {
		kept.Created = first
	}
	return kept
}

// latest is the tag that is installed where none is named.
const latest = "latest"

// newest gives the version that latest stands for, where the upstream's stands for was: that one if it
// exists, else the highest release below it, as npm's own --before has it, else the highest release, else
// the highest. Preconditions: there is a version.
func (p *packument) newest(was string) version {
	if v, ok := p.find(was); ok {
		return v
	}
	limit := orderOf(was)
	below := func(v version) bool { return v.released() && semver.Compare(v.order, limit) < 0 }
	for _, fits := range []func(version) bool{below, version.released} {
		for _, v := range slices.Backward(p.Versions) {
			if fits(v) {
				return v
			}
		}
	}
	return p.Versions[len(p.Versions)-1]
}

// find gives a version by its number.
func (p *packument) find(number string) (version, bool) {
	i := slices.IndexFunc(p.Versions, func(v version) bool { return v.Number == number })
	if i < 0 {
		return version{}, false
	}
	return p.Versions[i], true
}

// pick gives a version by its number or a tag.
func (p *packument) pick(selector string) (version, bool) {
	if v, ok := p.find(selector); ok {
		return v, true
	}
	return p.find(p.Tags[selector])
}

// span gives when the first and the last version were published.
func (p *packument) span() (first, last time.Time) {
	for _, v := range p.Versions {
		if first.IsZero() || v.Published.Before(first) {
			first = v.Published
		}
		if v.Published.After(last) {
			last = v.Published
		}
	}
	return first, last
}
