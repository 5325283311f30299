package pool

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How a claim was served.
const (
	Warm  = "warm"  // by a spare
	Cold  = "cold"  // by a make
	Apart = "apart" // by the engine, since the spec is no kind's
)

// State is how the pool stands.
type State struct {
	Spares   int // that wait
	Stocking int // that are being made for stock
	Waiting  int // callers that wait for a make
	Bound    int // on Stocking
}

// Observer is told what a pool does, for metrics. Nil functions are skipped. Changed is called with the
// pool's lock held; all must be quick.
type Observer struct {
	Claimed   func(how string, took time.Duration, err error)
	Discarded func(why string) // dead, idle, surplus, drained
	Changed   func(State)
}

func (o Observer) claimed(how string, took time.Duration, err error) {
	if o.Claimed != nil {
		o.Claimed(how, took, err)
	}
}

func (o Observer) discarded(why string) {
	if o.Discarded != nil {
		o.Discarded(why)
	}
}

// tellLocked tells the observer how the pool stands. Preconditions: mu is held.
func (e *Engine) tellLocked() {
	if e.opt.Observer.Changed != nil {
		e.opt.Observer.Changed(State{Spares: e.sparesLocked(), Stocking: e.stocking, Waiting: e.waiting, Bound: e.bound})
	}
}

// Metrics gives an Observer that counts in reg.
func Metrics(reg prometheus.Registerer) (Observer, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "proctor", Subsystem: "pool", Name: name, Help: help})
	}
	claims := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "proctor", Subsystem: "pool", Name: "claims_total",
		Help: "Sandboxes asked for, by how they were had: warm, cold, apart; and whether they were."}, []string{"how", "result"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "proctor", Subsystem: "pool", Name: "claim_seconds",
		Help: "Time to a sandbox.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}, []string{"how"})
	gone := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "proctor", Subsystem: "pool", Name: "discarded_total",
		Help: "Spares that were removed unclaimed, by reason: dead, idle, surplus, drained."}, []string{"why"})
	spares, stocking := gauge("spares", "Sandboxes that wait to be claimed."), gauge("stocking", "Spares that are being made.")
	waiting, bound := gauge("waiting", "Callers that wait for a sandbox to be made."), gauge("bound", "Most spares that are made at once just now.")
	for _, c := range []prometheus.Collector{claims, took, gone, spares, stocking, waiting, bound} {
		if err := reg.Register(c); err != nil {
			return Observer{}, err
		}
	}
	return Observer{
		Claimed: func(how string, d time.Duration, err error) {
			result := "ok"
			if err != nil {
				result = "failed"
			}
			claims.WithLabelValues(how, result).Inc()
			if err == nil {
				took.WithLabelValues(how).Observe(d.Seconds())
			}
		},
		Discarded: func(why string) { gone.WithLabelValues(why).Inc() },
		Changed: func(s State) {
			spares.Set(float64(s.Spares))
			stocking.Set(float64(s.Stocking))
			waiting.Set(float64(s.Waiting))
			bound.Set(float64(s.Bound))
		},
	}, nil
}
