package flowstate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Kind is what window a refresh writes.
type Kind string

// The kinds of refresh.
const (
	KindWindow   Kind = "window"   // the flow's own
	KindFull     Kind = "full"     // the flow's own, after every row is deleted
	KindOverride Kind = "override" // that of REFRESH … WHERE
)

// Cause is what made a refresh run.
type Cause string

// The causes of a refresh.
const (
	CauseStatement Cause = "statement" // of a client's
	CauseSchedule  Cause = "schedule"
	CauseTrigger   Cause = "trigger" // a source has changed
	CauseAPI       Cause = "api"
)

// The states in which a refresh ends.
const (
	StateCompleted = "COMPLETED"
	StateFailed    = "FAILED"
	StateCanceled  = "CANCELED"
)

// The techniques: how a refresh writes its window.
const (
	TechniqueFullRecompute = "FULL_RECOMPUTE" // all of the window
	TechniqueIncremental   = "INCREMENTAL"    // the part of the window that can differ
	TechniqueNoOp          = "NO_OP"          // nothing: no source has changed
)

// Refresh is a refresh that starts.
type Refresh struct {
	Target uint32 // OID of the table
	Kind   Kind
	Cause  Cause
}

// Start records that the session now runs a refresh, and returns its id, a
// UUID. The session holds the lock of [LockKeys], at session or transaction
// level; a refresh of the table whose session was lost is recorded as failed.
// Errors: 42501 unless the session's role may SELECT, INSERT and DELETE on the
// table or has its owner's rights, 55000 without the lock, 0A000 without a
// flow.
func Start(ctx context.Context, s pgsession.Session, r Refresh) (id string, err error) {
	row, err := newRequest("start_refresh").
		number("target", int64(r.Target)).
		text("kind", string(r.Kind)).
		text("cause", string(r.Cause)).
		send(ctx, s, "id")
	return row["id"].Text, err
}

// PlanRecord is what a refresh is going to do, and why.
type PlanRecord struct {
	Technique string // one of the constants
	Reason    string // of a full recompute, else ""
	Window    string // the predicate of the window, resolved
	Applied   string // the predicate that DELETE and INSERT use
	Differs   bool   // of an override: it may have deleted other rows than it has inserted
	// Issues are what speaks against writing less, each with the reason that
	// it gives. Without any, Reason is the only one.
	Issues []Issue
}

// Issue is one obstacle to an incremental refresh; what it is not about is "".
type Issue struct {
	Type     string `json:"issue_type"` // a reason of a full recompute
	Table    string `json:"table,omitempty"`
	Column   string `json:"column,omitempty"`
	Function string `json:"function,omitempty"`
}

// Plan records what the refresh is going to do. It belongs to the transaction
// that writes the table, and is called again when that is retried.
func Plan(ctx context.Context, s pgsession.Session, id string, p PlanRecord) error {
	issues, err := json.Marshal(append([]Issue{}, p.Issues...))
	if err != nil {
		return err
	}
	_, err = newRequest("plan_refresh").
		text("id", id).
		json("issues", issues).
		text("technique", p.Technique).
		optional("reason", p.Reason).
		text("window_predicate", p.Window).
		text("applied_predicate", p.Applied).
		boolean("override_differs", p.Differs).
		send(ctx, s)
	return err
}

// Outcome is what a refresh did.
type Outcome struct {
	RowsDeleted  int64
	RowsInserted int64
}

// Finish records that the refresh is complete. It belongs to the transaction
// that writes the table, after [Plan].
func Finish(ctx context.Context, s pgsession.Session, id string, o Outcome) error {
	_, err := newRequest("finish_refresh").
		text("id", id).
		number("rows_deleted", o.RowsDeleted).
		number("rows_inserted", o.RowsInserted).
		send(ctx, s)
	return err
}

// Failure is a refresh that failed. All but RefreshID and Error is for one
// whose row was rolled back.
type Failure struct {
	RefreshID   string // "" if Start did not return one
	OID         uint32 // of the table
	Schema      string
	Name        string // of the table
	FlowName    string
	Kind        Kind
	Cause       Cause
	RequestedBy string // a role; only the service connection may name another than its own
	StartedAt   time.Time
	Plan        PlanRecord // zero if it failed before it was planned
	TimedOut    bool       // it was Postgres's clock that canceled it, no one else
	// Queued is that it came from the queue, where its [Job] was of this Attempt.
	Queued  bool
	Attempt int
	// RetryIn is when a refresh that runs by itself is tried again; 0 for never.
	RetryIn time.Duration
	Error   *pgdiag.Diagnostic
}

// State is the state in which the refresh ended, if it is not tried again.
func (f Failure) State() string {
	const queryCanceled = "57014"
	if f.Error.Code == queryCanceled && !f.TimedOut {
		return StateCanceled
	}
	return StateFailed
}

// Fail records that a refresh failed. It runs after the rollback, in a
// transaction of its own, and also records a refresh whose row, or whose table,
// was rolled back; one that has ended already stays as it ended, and the failure
// of an attempt that another one has followed changes nothing. It returns 55006
// if the refresh still runs in another session. A queued refresh that cannot
// begin fails like one that runs.
func Fail(ctx context.Context, s pgsession.Session, f Failure) error {
	r := newRequest("fail_refresh").
		optional("id", f.RefreshID).
		number("target", int64(f.OID)).
		text("schema", f.Schema).
		text("name", f.Name).
		text("flow_name", f.FlowName).
		text("kind", string(f.Kind)).
		text("cause", string(f.Cause)).
		text("requested_by", f.RequestedBy).
		text("started_at", f.StartedAt.Format(time.RFC3339Nano)).
		text("state", f.State()).
		optional("technique", f.Plan.Technique).
		optional("reason", f.Plan.Reason).
		optional("window_predicate", f.Plan.Window).
		optional("applied_predicate", f.Plan.Applied).
		text("error", f.Error.Message).
		text("error_code", f.Error.Code).
		optional("error_detail", f.Error.Detail).
		optional("error_hint", f.Error.Hint)
	if f.Queued {
		r.number("attempt", int64(f.Attempt))
	}
	if f.RetryIn > 0 {
		r.number("retry_in_ms", max(1, f.RetryIn.Milliseconds()))
	}
	_, err := r.send(ctx, s)
	return err
}
