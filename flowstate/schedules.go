package flowstate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Schedules is what is to be decided about the schedules of a database. Its
// times are those of the database's clock.
type Schedules struct {
	Now time.Time
	Due []DueSchedule
	// Next is the first time to come of the other schedules; zero if there is
	// none.
	Next time.Time
	// Triggers says that tables have triggers, for [RunTriggers].
	Triggers bool
}

// DueSchedule is a schedule whose next time is to be computed.
type DueSchedule struct {
	ID    string    `json:"id"` // of the streaming table, a UUID
	Text  string    `json:"text"`
	SetAt time.Time `json:"set_at"`
	// Seen is the time that is stored, as it is, and Run says that it has come.
	Seen json.RawMessage `json:"seen"`
	Run  bool            `json:"run"`
}

// ScheduledRun is the next time of a schedule, and with Run a refresh now.
type ScheduledRun struct {
	DueSchedule
	Next Moment `json:"next"`
}

// Moment is a time for Postgres, where the zero time is infinity.
type Moment time.Time

// MarshalJSON writes microseconds, which is what Postgres stores.
func (m Moment) MarshalJSON() ([]byte, error) {
	if time.Time(m).IsZero() {
		return []byte(`"infinity"`), nil
	}
	return json.Marshal(time.Time(m).UTC().Format("2006-01-02T15:04:05.999999Z07:00"))
}

// ReadSchedules returns at most limit schedules that are due, for the service
// connection. at is the time to decide about, that of the database if it is
// zero.
func ReadSchedules(ctx context.Context, s pgsession.Session, at time.Time, limit int) (Schedules, error) {
	row, err := schedulesAt("read_schedules", at).number("limit", int64(limit)).
		send(ctx, s, "now", "due", "next", "triggers")
	if err != nil {
		return Schedules{}, err
	}
	read := Schedules{Triggers: row["triggers"].Text == "true"}
	if err := json.Unmarshal([]byte(row["due"].Text), &read.Due); err != nil {
		return Schedules{}, fmt.Errorf("schedules: %w", err)
	}
	if read.Now, err = optionalTime(row["now"]); err != nil {
		return Schedules{}, err
	}
	read.Next, err = optionalTime(row["next"])
	return read, err
}

// RunSchedules stores next times and enqueues refreshes, in one transaction: of
// each time of a schedule one, whoever is first.
func RunSchedules(ctx context.Context, s pgsession.Session, at time.Time, runs []ScheduledRun) error {
	encoded, err := json.Marshal(runs)
	if err != nil {
		return err
	}
	_, err = schedulesAt("run_schedules", at).json("runs", encoded).send(ctx, s)
	return err
}

// RunTriggers enqueues the refreshes of the flows whose sources have changed,
// and returns when to look again if nobody notifies, zero for never.
func RunTriggers(ctx context.Context, s pgsession.Session, at time.Time) (time.Time, error) {
	row, err := schedulesAt("run_triggers", at).send(ctx, s, "next")
	if err != nil {
		return time.Time{}, err
	}
	return optionalTime(row["next"])
}

func schedulesAt(step string, at time.Time) *request {
	r := newRequest(step)
	if !at.IsZero() {
		r.text("now", at.UTC().Format(time.RFC3339Nano))
	}
	return r
}

// optionalTime is a time in JSON, zero if it is null.
func optionalTime(v pgsession.Value) (time.Time, error) {
	if v.Null {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, v.Text)
}
