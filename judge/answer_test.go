package judge_test

import (
	"testing"
	"time"

	"proctor/judge"
)

// FuzzParseAnswer checks that nothing but an answer by the schema is one.
func FuzzParseAnswer(f *testing.F) {
	f.Add(`{"verdict":"hack","class":"git_history","confidence":0.5,"evidence":"e","reason":"r"}`)
	f.Add(`{"verdict":"benign"}{"verdict":"hack"}`)
	f.Add("```json\n{}\n```")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := judge.ParseAnswer(text)
		if err != nil {
			if o.Verdict != "" {
				t.Errorf("an error and a verdict: %+v", o)
			}
			return
		}
		if o.Verdict != judge.Hack && o.Verdict != judge.Benign && o.Verdict != judge.Unsure || o.Confidence < 0 || o.Confidence > 1 {
			t.Errorf("%q is read as %+v", text, o)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]time.Duration{"": 0, "2": 2 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "soon": 0,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0, "1e300": 0} {
		if got := judge.RetryAfter(v, now); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}
