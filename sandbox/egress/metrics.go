package egress

import "github.com/prometheus/client_golang/prometheus"

// Metrics gives an observer that counts in reg.
func Metrics(reg prometheus.Registerer) (func(Event), error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "proctor", Name: name, Help: help}, labels)
	}
	events := counter("egress_events_total", "What sandboxes with an allowlist did on the network, by kind and outcome.", "kind", "outcome")
	bytes := counter("egress_bytes_total", "Bytes of those connections and requests, as the sandboxes see the direction.", "direction")
	for _, c := range []prometheus.Collector{events, bytes} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return func(e Event) {
		events.WithLabelValues(e.Kind, e.Outcome).Inc()
		bytes.WithLabelValues("sent").Add(float64(e.Sent))
		bytes.WithLabelValues("received").Add(float64(e.Got))
	}, nil
}
