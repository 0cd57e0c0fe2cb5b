package console

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
)

const (
	// measurePeriod is how often a database is measured at most, however often
	// the metrics are read.
	measurePeriod = 15 * time.Second
	// measureTimeout is how long a database may take to be measured.
	measureTimeout = 10 * time.Second
	// measureWait is how long whoever reads the metrics waits for databases that
	// are being measured; then they get what is known.
	measureWait = 3 * time.Second
	// measureAtOnce is how many databases are measured at a time.
	measureAtOnce = 4
)

// databases collects what is known of databases. Measuring goes on beside the
// reading of metrics, which never waits for a database that does not answer.
type databases struct {
	ctx      context.Context // ends with the metrics
	names    func() []string
	unserved func() []string
	service  *flowstate.Service
	logger   *zap.Logger
	slots    chan struct{} // one token for each database that is being measured

	up, took, queued, running, oldest, flows, lag, failed, pending, bytes, rows, connections *prometheus.Desc

	mu    sync.Mutex // guards what follows
	known map[string]*measured
}

// measured is the last measurement of a database.
type measured struct {
	began  time.Time     // of the last measurement, or of the one that is under way
	done   chan struct{} // closed when no measurement is under way
	ended  time.Time     // of the last that succeeded
	took   time.Duration
	up     bool // the last one succeeded
	warned bool // it is logged that it has not
	result flowstate.Measurement
}

// ShowDatabases shows what there is to do in the databases that have flows, by
// their names, until ctx ends. Of those in unserved only that they are not up is
// shown: what is in their schemas may be anybody's. It is called once.
func (m *Metrics) ShowDatabases(
	ctx context.Context, names, unserved func() []string, service *flowstate.Service, logger *zap.Logger,
) {
	m.registry.MustRegister(newDatabases(ctx, names, unserved, service, logger))
}

func newDatabases(ctx context.Context, names, unserved func() []string, service *flowstate.Service, logger *zap.Logger) *databases {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("rwproxy_"+name, help, labels, nil)
	}
	return &databases{
		ctx: ctx, names: names, unserved: unserved, service: service, logger: logger,
		slots: make(chan struct{}, measureAtOnce), known: map[string]*measured{},

		up:      desc("database_up", "Whether the database is served and answered when it was last measured.", "database"),
		took:    desc("database_measure_seconds", "How long measuring the database took.", "database"),
		queued:  desc("refreshes_queued", "Refreshes that wait to run.", "database"),
		running: desc("refreshes_running", "Refreshes that run, through any rwproxy.", "database"),
		oldest:  desc("refreshes_oldest_queued_seconds", "How long ago the first refresh that waits was due, 0 if none does.", "database"),
		flows:   desc("flows", "Flows that there are.", "database"),
		lag: desc("flow_lag_seconds", "Time since the flow's last completed refresh or, before the first, since it was created.",
			"database", "schema", "table"),
		failed: desc("flow_failed", "Whether the last refresh of the flow that ended has failed.", "database", "schema", "table"),
		pending: desc("flow_pending", "Whether a source of the flow holds changes that no refresh has seen. Absent if changes are not recorded.",
			"database", "schema", "table"),
		bytes:       desc("capture_log_bytes", "Size of the log of a table's changes.", "database", "schema", "table"),
		rows:        desc("capture_log_rows", "Rows in the log of a table's changes, estimated.", "database", "schema", "table"),
		connections: desc("service_connections", "Connections of the service to all databases, by state: busy or idle.", "state"),
	}
}

// Describe implements prometheus.Collector.
func (d *databases) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		d.up, d.took, d.queued, d.running, d.oldest, d.flows, d.lag, d.failed, d.pending, d.bytes, d.rows, d.connections,
	} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *databases) Collect(ch chan<- prometheus.Metric) {
	busy, idle := d.service.Connections()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(d.connections, float64(busy), "busy")
	gauge(d.connections, float64(idle), "idle")
	seen := map[string]bool{}
	for name, m := range d.measurements() {
		// Of a database whose encoding is none, or that a user has named so.
		if name = valid(name); !seen[name] {
			seen[name] = true
			d.show(gauge, name, m)
		}
	}
	for _, name := range d.unserved() {
		if name = valid(name); !seen[name] {
			seen[name] = true
			gauge(d.up, 0, name)
		}
	}
}

// show shows the measurement of one database. Of one that does not answer only
// that is known.
func (d *databases) show(gauge func(*prometheus.Desc, float64, ...string), name string, m measured) {
	gauge(d.up, float(m.up), name)
	if !m.up {
		return
	}
	since := time.Since(m.ended).Seconds()
	gauge(d.took, m.took.Seconds(), name)
	gauge(d.queued, float64(m.result.Queued), name)
	gauge(d.running, float64(m.result.Running), name)
	oldest := m.result.OldestQueued
	if m.result.Queued > 0 {
		oldest += since
	}
	gauge(d.oldest, oldest, name)
	gauge(d.flows, float64(m.result.FlowCount), name)
	type table struct{ schema, name string }
	seen := map[table]bool{}
	for _, f := range m.result.Flows {
		t := table{valid(f.Schema), valid(f.Table)}
		if seen[t] {
			continue
		}
		seen[t] = true
		gauge(d.lag, max(0, f.Lag)+since, name, t.schema, t.name)
		gauge(d.failed, float(f.Failed), name, t.schema, t.name)
		if f.Pending != nil {
			gauge(d.pending, float(*f.Pending), name, t.schema, t.name)
		}
	}
	clear(seen)
	for _, l := range m.result.Logs {
		t := table{valid(l.Schema), valid(l.Table)}
		if seen[t] {
			continue
		}
		seen[t] = true
		gauge(d.bytes, float64(l.Bytes), name, t.schema, t.name)
		gauge(d.rows, float64(l.Rows), name, t.schema, t.name)
	}
}

// measurements returns what is known of each database by now, and has those
// measured that were not for a while.
func (d *databases) measurements() map[string]measured {
	names := d.names()
	d.mu.Lock()
	current := make(map[string]*measured, len(names))
	for _, name := range names {
		m := d.known[name]
		if m == nil {
			m = &measured{done: make(chan struct{})}
			close(m.done)
		}
		current[name] = m
		if isClosed(m.done) && time.Since(m.began) >= measurePeriod && d.ctx.Err() == nil {
			m.began, m.done = time.Now(), make(chan struct{})
			go d.measure(name, m)
		}
	}
	d.known = current // without those that are gone
	waits := make([]chan struct{}, 0, len(current))
	for _, m := range current {
		waits = append(waits, m.done)
	}
	d.mu.Unlock()

	late := time.After(measureWait)
	for _, done := range waits {
		select {
		case <-done:
		case <-late:
			late = closedChannel // for the rest, too
		}
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	result := make(map[string]measured, len(current))
	for name, m := range current {
		copied := *m
		// One that keeps everybody waiting is not up, whatever it was.
		if !isClosed(m.done) && time.Since(m.began) >= measureWait {
			copied.up = false
		}
		result[name] = copied
	}
	return result
}

// measure measures one database.
func (d *databases) measure(name string, m *measured) {
	ctx, cancel := context.WithTimeout(d.ctx, measureTimeout)
	defer cancel()
	var result flowstate.Measurement
	var began time.Time
	var err error
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
		began = time.Now()
		result, err = d.service.Measure(ctx, name)
	case <-ctx.Done():
		err = ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(m.done)
	if err != nil {
		if !m.warned && d.ctx.Err() == nil {
			d.logger.Warn("database not measured", zap.String("database", name), zap.Error(err))
		}
		m.up, m.warned = false, true
		return
	}
	m.up, m.warned, m.ended, m.took, m.result = true, false, time.Now(), time.Since(began), result
}

var closedChannel = func() chan time.Time { c := make(chan time.Time); close(c); return c }()

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func float(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// valid is a name as a label can hold it.
func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
