package judge

import "time"

// NewBreakerAt is NewBreaker with a clock.
func NewBreakerAt(inner Judge, n int, cooldown time.Duration, now func() time.Time) Judge {
	return newBreaker(inner, n, cooldown, now)
}

// ParseAnswer is the reader of answers, for fuzzing.
var ParseAnswer = parseAnswer

// RetryAfter is the reader of the header.
var RetryAfter = retryAfter
