package pool

import (
	"math"
	"time"
)

// demand is what is known of the claims of one kind, and says how many spares are worth having. Not safe
// for concurrent use.
//
// Claims come in bursts: a group's rollouts, or a run's steady stream. One burst is no demand: most images
// belong to one task, whose next group may be hours away, and spares for it would double the work of the
// engine for nothing. From the second burst on, the target is the larger of
//
//   - the size of a burst, averaged over past ones with weight 1/2 on the latest, and
//   - twice the claims that come while one spare is made, which keeps a steady stream served.
//
// Without claims both fall by half each quarter of the idle time and are nothing at its end. What was
// announced counts as it is until it is claimed or the idle time is over.
type demand struct {
	idle time.Duration // how long demand lasts

	last   time.Time // of the last claim
	rate   float64   // claims a second, as of last
	bursts int       // begun since demand was last nothing
	began  time.Time // of the latest burst
	burst  int       // claims in it
	size   float64   // averaged claims of the bursts before
	took   time.Duration

	announced int
	until     time.Time
}

const (
	rateMemory   = 30 * time.Second // time constant of the rate
	burstSpan    = 2 * time.Second  // claims closer than this to the first of a burst belong to it, at least
	burstStarts  = 4                // or this many starts long
	burstWeight  = 0.5
	startsWeight = 0.3
)

// claim notes a claim.
func (d *demand) claim(now time.Time) {
	if d.announced > 0 {
		d.announced--
	}
	if d.bursts > 0 && now.Sub(d.last) > d.idle {
		*d = demand{idle: d.idle, took: d.took, announced: d.announced, until: d.until}
	}
	d.rate = d.rateAt(now) + 1/rateMemory.Seconds()
	d.last = now
	if d.bursts > 0 && now.Sub(d.began) <= max(burstSpan, burstStarts*d.took) {
		d.burst++
		return
	}
	d.size = d.sizeNow()
	d.bursts, d.began, d.burst = d.bursts+1, now, 1
}

// sizeNow averages the latest burst into those before.
func (d *demand) sizeNow() float64 {
	if d.bursts <= 1 {
		return float64(d.burst)
	}
	return max(burstWeight*float64(d.burst)+(1-burstWeight)*d.size, 0)
}

// rateAt gives the rate of claims at a time.
func (d *demand) rateAt(now time.Time) float64 {
	return d.rate * math.Exp(-now.Sub(d.last).Seconds()/rateMemory.Seconds())
}

// started notes how long a start took.
func (d *demand) started(took time.Duration) {
	if d.took == 0 {
		d.took = took
		return
	}
	d.took += time.Duration(startsWeight * float64(took-d.took))
}

// announce notes that n claims are to come.
func (d *demand) announce(n int, now time.Time) {
	d.announced, d.until = max(d.announced, n), now.Add(d.idle)
}

// target gives how many spares are worth having.
func (d *demand) target(now time.Time) int {
	announced := 0
	if now.Before(d.until) {
		announced = d.announced
	}
	since := now.Sub(d.last)
	if d.bursts < 2 || since > d.idle {
		return announced
	}
	want := max(d.size, 2*d.rateAt(d.last)*d.took.Seconds())
	want *= math.Exp2(-4 * since.Seconds() / d.idle.Seconds())
	return max(announced, int(want+0.5))
}

// over reports whether nothing is left of the demand.
func (d *demand) over(now time.Time) bool {
	return now.Sub(d.last) > d.idle && !now.Before(d.until)
}
