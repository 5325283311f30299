package gateway

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what became of requests. A nil *Metrics counts nothing.
type Metrics struct {
	calls *prometheus.CounterVec
}

// NewMetrics registers the counters.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{calls: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proctor_gateway_calls_total",
		Help: "Model calls through the gateway: ok, broke_off, disconnected, upstream_error, unreachable, replayed, refused, text_only (no token ids), unknown_version (no weight version), not_recorded.",
	}, []string{"result"})}
	return m, r.Register(m.calls)
}

func (m *Metrics) count(result string) {
	if m != nil {
		m.calls.WithLabelValues(result).Inc()
	}
}
