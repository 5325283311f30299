package rules

import (
	"strings"
	"time"
)

// overlays applies the overlays of every pack, in order of pack and file: later ones win.
func (a *assembler) overlays(p *Packs) {
	for _, pk := range p.packs {
		for i := range pk.Overlays {
			a.overlay(p, &pk.Overlays[i])
		}
	}
}

// overlay applies one overlay to every rule that it targets.
func (a *assembler) overlay(p *Packs, o *Overlay) {
	if strings.TrimSpace(o.Reason) == "" {
		a.problem(o.Pos, "no-reason", "the overlay on %s needs a reason", o.Target)
		return
	}
	if o.Expires != "" {
		day, err := time.Parse(time.DateOnly, o.Expires)
		if err != nil {
			a.problem(o.Pos, "bad-value", "expires is %q; it must be a date, YYYY-MM-DD", o.Expires)
			return
		}
		if time.Now().After(day.AddDate(0, 0, 1)) {
			a.problem(o.Pos, "overlay-expired", "the overlay on %s expired on %s", o.Target, o.Expires)
			return
		}
	}
	found := false
	for _, r := range p.Rules() {
		if r.targeted(o.Target) {
			found = true
			r.apply(o)
		}
	}
	if !found {
		a.problem(o.Pos, "overlay-target", "no rule is meant by %q", o.Target)
	}
}

// targeted says whether an overlay's target means the rule.
func (r *Rule) targeted(target string) bool {
	if tag, ok := strings.CutPrefix(target, "tag:"); ok {
		for _, t := range r.Tags {
			if t == tag {
				return true
			}
		}
		return false
	}
	if pack, ok := strings.CutPrefix(target, "pack:"); ok {
		return r.pack.ID == pack
	}
	return r.FullID() == target
}

// apply changes the rule. It is idempotent: packs that were merged once may be merged again.
func (r *Rule) apply(o *Overlay) {
	note := o.Pos.String() + ": " + o.Reason
	for _, done := range r.overlaid {
		if done == note {
			return
		}
	}
	r.overlaid = append(r.overlaid, note)
	r.disabled = r.disabled || o.Disable
	if s := o.Set; s != nil {
		setIf(&r.Status, s.Status)
		setIf(&r.Severity, s.Severity)
		setIf(&r.Level, s.Level)
		setIf(&r.Owner, s.Owner)
		setIf(&r.Decoy, s.Decoy)
		if s.Judge != nil {
			r.Judge = *s.Judge
			if r.Judge.Skip == "" {
				r.Judge.Skip = "never"
			}
		}
		r.severityN = severities[r.Severity]
	}
	if add := o.Append; add != nil {
		r.Tags = appended(r.Tags, add.Tags)
		r.FalsePos = appended(r.FalsePos, add.FalsePos)
		r.Match.Any = appended(r.Match.Any, add.Any)
		r.Unless = appended(r.Unless, add.Unless)
	}
}

// setIf sets dst where v is not its zero value.
func setIf[T comparable](dst *T, v T) {
	var zero T
	if v != zero {
		*dst = v
	}
}

// appended copies, so that packs that share a rule's slices stay as they are.
func appended[T any](a, b []T) []T {
	return append(append(make([]T, 0, len(a)+len(b)), a...), b...)
}
