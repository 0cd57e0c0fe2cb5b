package console

import "github.com/prometheus/client_golang/prometheus"

// Metrics are what the process counts. Other packages declare the part they
// use as an interface of their own. Its methods are safe for concurrent use.
type Metrics struct {
	sessionsOpen prometheus.Gauge
	sessions     prometheus.Counter
	statements   *prometheus.CounterVec
	refreshes    *prometheus.CounterVec
}

// NewMetrics registers the metrics. It panics if registry has them already.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		sessionsOpen: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rwproxy_sessions_open",
			Help: "Client sessions that are open now.",
		}),
		sessions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rwproxy_sessions_total",
			Help: "Client sessions that were opened.",
		}),
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rwproxy_statements_total",
			Help: "Statements that rwproxy ran itself, by kind.",
		}, []string{"statement"}),
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rwproxy_refreshes_total",
			Help: "Refreshes that have ended, by technique, the reason for it and the final state.",
		}, []string{"technique", "reason", "state"}),
	}
	registry.MustRegister(m.sessionsOpen, m.sessions, m.statements, m.refreshes)
	return m
}

// SessionOpened counts a client session that has begun.
func (m *Metrics) SessionOpened() {
	m.sessionsOpen.Inc()
	m.sessions.Inc()
}

// SessionClosed counts the end of one.
func (m *Metrics) SessionClosed() { m.sessionsOpen.Dec() }

// Intercepted counts one statement of rwproxy's own. kind is one of a few
// fixed words.
func (m *Metrics) Intercepted(kind string) { m.statements.WithLabelValues(kind).Inc() }

// Refreshed counts one refresh that has ended. All three are codes of a fixed
// list; reason is "" unless technique is a full recompute.
func (m *Metrics) Refreshed(technique, reason, state string) {
	m.refreshes.WithLabelValues(technique, reason, state).Inc()
}
