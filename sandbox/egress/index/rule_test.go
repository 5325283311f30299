package index

import (
	"testing"
	"time"
)

func TestRule(t *testing.T) {
	at := time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name             string
		before, uploaded time.Time
		want             bool
	}{
		{"in time", at, at.Add(-time.Nanosecond), true},
		{"the very moment", at, at, false},
		{"no time known", at, time.Time{}, false},
		{"no cut-off", time.Time{}, at, false},
		{"no cut-off, and the year 0", time.Time{}, time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), false},
	} {
		if got := (Rule{Before: tc.before}).InTime(tc.uploaded); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	for _, tc := range []struct {
		rule Rule
		want bool
	}{{Rule{}, false}, {Rule{Package: "p"}, false}, {Rule{Fix: "1"}, false}, {Rule{Package: "p", Fix: "1"}, true}, {Rule{Package: "p", Base: "1"}, true}} {
		if tc.rule.Bounded() != tc.want {
			t.Errorf("%+v", tc.rule)
		}
	}
}
