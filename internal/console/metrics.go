package console

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rwproxy/rwproxy/flowstate"
)

// maxCodes is how many SQLSTATEs are told apart: a function of a user's may
// raise any.
const maxCodes = 100

// otherCode is the label of the rest.
const otherCode = "other"

// Metrics are what the process counts. Other packages declare the part they
// use as an interface of their own. Its methods are safe for concurrent use.
type Metrics struct {
	registry     prometheus.Registerer
	sessionsOpen prometheus.Gauge
	sessions     prometheus.Counter
	statements   *prometheus.CounterVec
	durations    *prometheus.HistogramVec
	refreshes    *prometheus.CounterVec
	refreshTimes *prometheus.HistogramVec
	rows         *prometheus.CounterVec

	mu    sync.Mutex // guards what follows
	codes map[string]bool
}

// NewMetrics registers the metrics. It panics if registry has them already.
func NewMetrics(registry prometheus.Registerer, version string) *Metrics {
	// 5 ms to 6 h.
	buckets := []float64{0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 1200, 3600, 21600}
	m := &Metrics{
		registry: registry,
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
			Help: "Statements that rwproxy ran itself, by command tag and SQLSTATE, which is empty for success.",
		}, []string{"tag", "sqlstate"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rwproxy_statement_duration_seconds",
			Help:    "How long the statements took that rwproxy ran itself, by command tag.",
			Buckets: buckets,
		}, []string{"tag"}),
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rwproxy_refreshes_total",
			Help: "Refreshes that have ended here, by technique, the reason for it, the final state and the cause.",
		}, []string{"technique", "reason", "state", "cause"}),
		refreshTimes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rwproxy_refresh_duration_seconds",
			Help:    "How long refreshes took, by technique and final state.",
			Buckets: buckets,
		}, []string{"technique", "state"}),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rwproxy_refresh_rows_total",
			Help: "Rows that completed refreshes wrote, by technique and whether they were deleted or inserted.",
		}, []string{"technique", "operation"}),
		codes: map[string]bool{},
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "rwproxy_build_info",
		Help:        "1, with the version as a label.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	registry.MustRegister(m.sessionsOpen, m.sessions, m.statements, m.durations, m.refreshes, m.refreshTimes, m.rows, build)
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
	m.statements.WithLabelValues(tag, m.code(sqlState)).Inc()
	m.durations.WithLabelValues(tag).Observe(duration.Seconds())
}

// code is the label of a SQLSTATE.
func (m *Metrics) code(sqlState string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case sqlState == "" || m.codes[sqlState]:
		return sqlState
	case len(m.codes) == maxCodes:
		return otherCode
	}
	m.codes[sqlState] = true
	return sqlState
}

// Refreshed counts one refresh that has ended.
func (m *Metrics) Refreshed(e flowstate.Ended) {
	m.refreshes.WithLabelValues(e.Technique, e.Reason, e.State, string(e.Cause)).Inc()
	m.refreshTimes.WithLabelValues(e.Technique, e.State).Observe(e.Duration.Seconds())
	if e.State == flowstate.StateCompleted {
		m.rows.WithLabelValues(e.Technique, "deleted").Add(float64(e.RowsDeleted))
		m.rows.WithLabelValues(e.Technique, "inserted").Add(float64(e.RowsInserted))
	}
}

// ShowTraffic shows how many bytes sessions have read from clients and from
// Postgres. It is called once.
func (m *Metrics) ShowTraffic(read func() (clients, backends int64)) {
	m.registry.MustRegister(&traffic{read: read, desc: prometheus.NewDesc(
		"rwproxy_session_bytes_total",
		"Bytes that sessions have received, by whom they are from: client or postgres.",
		[]string{"from"}, nil)})
}

// traffic collects both directions at one time.
type traffic struct {
	read func() (clients, backends int64)
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (t *traffic) Describe(ch chan<- *prometheus.Desc) { ch <- t.desc }

// Collect implements prometheus.Collector.
func (t *traffic) Collect(ch chan<- prometheus.Metric) {
	clients, backends := t.read()
	ch <- prometheus.MustNewConstMetric(t.desc, prometheus.CounterValue, float64(clients), "client")
	ch <- prometheus.MustNewConstMetric(t.desc, prometheus.CounterValue, float64(backends), "postgres")
}
