package rollouts

import (
	"strconv"
	"time"

	"proctor/monitor"
	"proctor/monitor/witness"
	"proctor/tasks"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Observer is told what a Manager does, for metrics. Nil functions are skipped. They are called in
// the path of what they tell of, and must be quick.
type Observer struct {
	Created func(v View, took time.Duration)
	Called  func(rec *monitor.Record, interrupted bool)
	Ended   func(v View)
	Graded  func(g *tasks.Grade, err error, took time.Duration)
	Queued  func(waiting int)                       // creations wait for a place; called with a lock held
	Waited  func(took time.Duration, admitted bool) // one did
	Stage   func(stage string, took time.Duration)  // each step of a Gate
}

func (o Observer) created(d *document, took time.Duration) {
	if o.Created != nil {
		o.Created(d.View, took)
	}
}

func (o Observer) queued(waiting int) {
	if o.Queued != nil {
		o.Queued(waiting)
	}
}

func (o Observer) waited(took time.Duration, admitted bool) {
	if o.Waited != nil {
		o.Waited(took, admitted)
	}
}

func (o Observer) called(rec *monitor.Record, interrupted bool) {
	if o.Called != nil {
		o.Called(rec, interrupted)
	}
}

func (o Observer) ended(v View) {
	if o.Ended != nil {
		o.Ended(v)
	}
}

func (o Observer) graded(g tasks.Grade, err error, took time.Duration) {
	if o.Graded != nil {
		o.Graded(&g, err, took)
	}
}

// openingHow is the label of an opening.
func openingHow(o witness.Opening) string {
	switch {
	case o.Denied:
		return "denied"
	case o.Walk:
		return "passed by"
	}
	return "opened"
}

func noTracer() trace.Tracer { return noop.NewTracerProvider().Tracer("rollouts") }

// Metrics gives an Observer that counts in reg.
func Metrics(reg prometheus.Registerer) (Observer, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "proctor", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "proctor", Name: name, Help: help, Buckets: buckets}, labels)
	}
	made := counter("rollouts_created_total", "Rollouts made.", "mode")
	ended := counter("rollouts_ended_total", "Rollouts that ended, by status and failure class.", "status", "class")
	live := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "proctor", Name: "rollouts_live", Help: "Rollouts made and not ended since the start."})
	queued := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "proctor", Name: "rollouts_queued", Help: "Creations that wait for a place."})
	waits := histogram("rollout_queue_seconds", "Time that creations waited for a place.", prometheus.ExponentialBuckets(0.01, 3, 12), "admitted")
	calls := counter("calls_total", "Calls recorded.", "principal", "tool", "decision", "action")
	cut := counter("calls_interrupted_total", "Calls that ended without an observation.", "principal")
	hits := counter("rule_hits_total", "Hits by rule.", "rule")
	opinions := counter("judge_opinions_total", "Opinions of the judge.", "verdict", "failure")
	tokens := counter("judge_tokens_total", "Tokens of questions to the judge and of its answers.", "direction")
	cost := counter("judge_cost_total", "Cost of the judge's opinions, in the currency of the prices set.")
	policies := counter("judge_policy_total", "Calls on which the judge was unsure, failed or was out, by what policy did.", "policy", "failure")
	openings := counter("witness_openings_total", "Protected files that the witness saw opened.", "how")
	grades := counter("grades_total", "Gradings by outcome.", "outcome")
	start := histogram("rollout_create_seconds", "Time to make a rollout.", prometheus.ExponentialBuckets(0.01, 2, 14))
	stage := histogram("gate_step_seconds", "Time of each step of the Gate.", prometheus.ExponentialBuckets(1e-6, 4, 14), "step")
	grading := histogram("grade_seconds", "Time to grade a rollout.", prometheus.ExponentialBuckets(0.1, 2, 14))
	for _, c := range []prometheus.Collector{made, ended, live, queued, waits, calls, cut, hits, opinions, tokens, cost, policies, openings, grades, start, stage, grading} {
		if err := reg.Register(c); err != nil {
			return Observer{}, err
		}
	}
	return Observer{
		Created: func(v View, took time.Duration) {
			made.WithLabelValues(v.Mode).Inc()
			live.Inc()
			start.WithLabelValues().Observe(took.Seconds())
		},
		Called: func(rec *monitor.Record, interrupted bool) {
			if interrupted {
				cut.WithLabelValues(rec.Principal).Inc()
			}
			v := &rec.Verdict
			calls.WithLabelValues(rec.Principal, rec.Name, v.Decision, v.Action).Inc()
			for _, o := range v.Openings {
				openings.WithLabelValues(openingHow(o)).Inc()
			}
			for _, h := range v.Hits {
				hits.WithLabelValues(h.Rule).Inc()
			}
			if v.Opinion != nil {
				opinions.WithLabelValues(v.Opinion.Verdict, v.Opinion.Failure).Inc()
				tokens.WithLabelValues("in").Add(float64(v.Opinion.TokensIn))
				tokens.WithLabelValues("out").Add(float64(v.Opinion.TokensOut))
				cost.WithLabelValues().Add(v.Opinion.Cost)
				if v.Policy != "" {
					policies.WithLabelValues(v.Policy, v.Opinion.Failure).Inc()
				}
			}
		},
		Ended: func(v View) {
			ended.WithLabelValues(v.Status, v.FailureClass).Inc()
			live.Dec()
		},
		Graded: func(g *tasks.Grade, err error, took time.Duration) {
			outcome := g.Outcome
			if err != nil {
				outcome = "error"
			}
			grades.WithLabelValues(outcome).Inc()
			grading.WithLabelValues().Observe(took.Seconds())
		},
		Queued: func(n int) { queued.Set(float64(n)) },
		Waited: func(took time.Duration, admitted bool) {
			waits.WithLabelValues(strconv.FormatBool(admitted)).Observe(took.Seconds())
		},
		Stage: func(step string, took time.Duration) { stage.WithLabelValues(step).Observe(took.Seconds()) },
	}, nil
}
