package console

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what the process counts. Other packages declare the part they
// use as an interface of their own. Its methods are safe for concurrent use.
type Metrics struct {
	sessionsOpen prometheus.Gauge
	sessions     prometheus.Counter
	statements   *prometheus.HistogramVec
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
		statements: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rwproxy_statement_duration_seconds",
			Help:    "How long the statements took that rwproxy ran itself, by command tag and SQLSTATE.",
			Buckets: prometheus.ExponentialBuckets(0.005, 4, 10), // 5 ms to 22 min
		}, []string{"tag", "sqlstate"}),
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rwproxy_refreshes_total",
			Help: "Refreshes that have ended, by technique, the reason for it and the final state.",
		}, []string{"technique", "reason", "state"}),
	}
	registry.MustRegister(m.sessionsOpen, m.sessions, m.statements, m.refreshes)
	return m
}

// SessionStarted counts a client session that has begun.
func (m *Metrics) SessionStarted() {
	m.sessionsOpen.Inc()
	m.sessions.Inc()
}

// SessionEnded counts the end of one.
func (m *Metrics) SessionEnded() { m.sessionsOpen.Dec() }

// StatementRun counts one statement of rwproxy's own by its command tag;
// sqlState is "" when it succeeded.
func (m *Metrics) StatementRun(tag string, duration time.Duration, sqlState string) {
	m.statements.WithLabelValues(tag, sqlState).Observe(duration.Seconds())
}

// Refreshed counts one refresh that has ended. All three are codes of a fixed
// list; reason is "" unless technique is a full recompute.
func (m *Metrics) Refreshed(technique, reason, state string) {
	m.refreshes.WithLabelValues(technique, reason, state).Inc()
}
