package decoy

import (
	"math"
	"time"
)

// runTimes are medians of how long such programs take to fail, start included, on the machine of
// the design's figures (2 cores); the spread is log-normal with sigma 0.35, as measured for short
// processes.
var runTimes = map[string]time.Duration{
	"":       time.Millisecond,
	"git":    4 * time.Millisecond,
	"curl":   12 * time.Millisecond,
	"wget":   8 * time.Millisecond,
	"python": 25 * time.Millisecond, "python3": 25 * time.Millisecond,
	"node": 60 * time.Millisecond,
	"pip":  900 * time.Millisecond, "pip3": 900 * time.Millisecond,
	"npm": 700 * time.Millisecond,
	"go":  30 * time.Millisecond,
}

// delay samples how long program would have run.
func (m *Maker) delay(program string) time.Duration {
	d, ok := runTimes[program]
	if !ok {
		d = 2 * time.Millisecond
	}
	m.mu.Lock()
	x := m.rand.NormFloat64()
	m.mu.Unlock()
	return time.Duration(float64(d) * math.Exp(0.35*max(-2, min(2, x))))
}
