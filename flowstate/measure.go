package flowstate

import (
	"context"
	_ "embed" // measure.sql
	"encoding/json"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

//go:embed measure.sql
var measureSQL string

// MeasureLimit is how many flows, those refreshed longest ago, and how many
// logs, the largest, [Service.Measure] tells apart in one database.
const MeasureLimit = 1000

// measureTimeout is how long Postgres works on one measurement.
const measureTimeout = "5s"

// Ended is a refresh that has ended, as it is counted.
type Ended struct {
	Technique    string // a constant; "" if it failed before it was planned
	Reason       string // "" unless Technique is a full recompute
	State        string // a constant
	Cause        Cause
	Duration     time.Duration
	RowsDeleted  int64
	RowsInserted int64
}

// Measurement is what a database has to do, and how far behind it is. Times are
// seconds by the database's clock.
type Measurement struct {
	Queued       int64          `json:"queued"` // refreshes that wait
	Running      int64          `json:"running"`
	OldestQueued float64        `json:"oldest_queued"` // how long ago the first of them was due, 0 without any
	FlowCount    int64          `json:"flow_count"`
	Flows        []MeasuredFlow `json:"flows"`
	Logs         []MeasuredLog  `json:"logs"`
}

// MeasuredFlow is one flow.
type MeasuredFlow struct {
	Schema string  `json:"schema"` // of the table
	Table  string  `json:"table"`
	Lag    float64 `json:"lag"`    // since its last completed refresh or, before the first, since it was created
	Failed bool    `json:"failed"` // the last refresh that ended has failed
	// Pending says that a source holds changes that no refresh has seen; nil
	// when the sources' changes are not recorded.
	Pending *bool `json:"pending"`
}

// MeasuredLog is the log of the changes of one table.
type MeasuredLog struct {
	Schema string `json:"schema"` // of the table
	Table  string `json:"table"`
	Bytes  int64  `json:"bytes"`
	Rows   int64  `json:"rows"` // an estimate
}

// Measure measures a database that has the schemas.
func (s *Service) Measure(ctx context.Context, database string) (Measurement, error) {
	var m Measurement
	err := s.Do(ctx, database, func(session pgsession.Session) error {
		if _, err := session.Exec(ctx, "begin read only"); err != nil {
			return err
		}
		// Compiling costs more than the query does.
		_, err := session.Exec(ctx, "select pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('jit', 'off', true)", measureTimeout)
		if err != nil {
			return err
		}
		rows, err := session.Query(ctx, measureSQL, MeasureLimit)
		if err != nil {
			return err // which ends the connection
		}
		if err := json.Unmarshal([]byte(rows[0][0].Text), &m); err != nil {
			return err
		}
		_, err = session.Exec(ctx, "commit")
		return err
	})
	return m, err
}

// Connections returns how many connections of the service's pools there are, to
// all databases together.
func (s *Service) Connections() (busy, idle int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pools {
		b, i := p.connections()
		busy, idle = busy+b, idle+i
	}
	return busy, idle
}
