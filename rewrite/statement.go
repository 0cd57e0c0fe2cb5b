package rewrite

import "github.com/rwproxy/rwproxy/internal/pgdiag"

// Span is a piece of a statement's text and where it stands in it, so that a
// position Postgres reports in the piece can be shown in what the user typed.
type Span struct {
	Text   string
	Offset int // in bytes from the start of the statement
}

// trimmed returns the span without the white space around it.
func (s Span) trimmed() Span {
	start, end := 0, len(s.Text)
	for start < end && isSpace(s.Text[start]) {
		start++
	}
	for end > start && isSpace(s.Text[end-1]) {
		end--
	}
	if start == end {
		return Span{}
	}
	return Span{Text: s.Text[start:end], Offset: s.Offset + start}
}

// Statement is one statement of rwproxy's own, or a native one that rwproxy
// has to act on.
type Statement interface {
	// Tag is the command tag of its CommandComplete.
	Tag() string
	// Shadow is a statement for Postgres that parses and describes like this
	// one: same result columns, same parameters, no effect if it were run.
	// For one that RunsNatively it is the native statement itself.
	Shadow() string
}

// RunsNatively reports that Postgres is to run the Shadow of a statement, once
// its handler has done its part in the same transaction.
func RunsNatively(s Statement) bool {
	switch s.(type) {
	case *Drop, *EventLog, *DescribeHistory:
		return true
	}
	return false
}

// IsOursByTarget reports that a statement is ours only if what it is about is a
// streaming table. To know that takes the database, which is asked when the
// statement is prepared: a statement that Postgres cannot parse fails there.
func IsOursByTarget(s Statement) bool {
	switch s.(type) {
	case *Describe, *DescribeHistory, *ShowCreateTable, *ShowProperties, *EventLog:
		return true
	}
	return false
}

// Name is a possibly qualified table name, as Postgres resolves it: folded to
// lower case where it was bare, unquoted where it was quoted.
type Name struct {
	Catalog, Schema string // "" when not given
	Table           string
	Offset          int // of its first token, in bytes from the start of the statement
}

// CreateStreamingTable is CREATE STREAMING TABLE or CREATE OR REFRESH
// STREAMING TABLE, with or without its flow.
type CreateStreamingTable struct {
	Text        string // the statement as typed
	Target      Name
	OrRefresh   bool
	IfNotExists bool
	Columns     []ColumnDef
	Constraints []Span // table constraints, PostgreSQL text
	// Meanings are the Constraints in the meaning of the table's dialect, none
	// if it is PostgreSQL's.
	Meanings    []Translation
	PartitionBy []ColumnName // stored, no effect
	ClusterBy   *Span        // stored, no effect: CLUSTER BY …, for a NOTICE
	Comment     *string
	Properties  map[string]string
	Schedule    *Schedule
	Flow        *ReplaceWhere // nil when a CREATE FLOW is to follow

	// Notices are for the client: what was read but has no effect.
	Notices []*pgdiag.Diagnostic
}

// ColumnDef is a declared column.
type ColumnDef struct {
	Name    string
	Type    string // PostgreSQL type text, translated from Databricks names
	Written Span   // the type as it is written
	Rest    Span   // NOT NULL, DEFAULT …, CHECK …, PRIMARY KEY …: PostgreSQL text
	// Meaning is Rest in the meaning of the table's dialect, without SQL if it
	// is PostgreSQL's.
	Meaning Translation
	Comment *string
	Offset  int
}

// ReplaceWhere is the flow itself.
type ReplaceWhere struct {
	Predicate Span
	Query     Span
}

// Schedule is a parsed SCHEDULE or TRIGGER clause.
type Schedule struct {
	Offset int    // in bytes from the start of the statement
	Text   string // canonical: EVERY 1 DAYS, CRON '…', TRIGGER ON UPDATE …
	// Cron says that Text is a cron expression, as typed: what it means is
	// internal/schedule's to know.
	Cron       bool
	CronOffset int // in bytes from the start of the statement
	// Zone is the time zone of a cron expression, as typed; "" when the
	// session's is meant.
	Zone       string
	ZoneOffset int // in bytes from the start of the statement
}

// CreateFlow is CREATE FLOW … AS INSERT INTO … BY NAME REPLACE WHERE ….
type CreateFlow struct {
	Text    string
	Name    string
	Comment *string
	Target  Name
	Flow    ReplaceWhere
}

// Refresh is REFRESH [STREAMING] TABLE.
type Refresh struct {
	Text   string
	Target Name
	Full   bool
	Where  *Span
	Async  bool
}

// Drop is DROP TABLE or DROP STREAMING TABLE of one or more tables. Postgres
// runs Native; rwproxy removes the flows of those tables in the same
// transaction.
type Drop struct {
	Text    string
	Targets []Name
	Native  string // DROP TABLE …
	Cascade bool
}

// Tag implements Statement.
func (*CreateStreamingTable) Tag() string { return "CREATE STREAMING TABLE" }

// Tag implements Statement.
func (*CreateFlow) Tag() string { return "CREATE FLOW" }

// Tag implements Statement.
func (*Refresh) Tag() string { return "REFRESH STREAMING TABLE" }

// Tag implements Statement.
func (*Drop) Tag() string { return "DROP TABLE" }

// Shadow implements Statement.
func (*CreateStreamingTable) Shadow() string { return noRows }

// Shadow implements Statement.
func (*CreateFlow) Shadow() string { return noRows }

// Shadow implements Statement.
func (r *Refresh) Shadow() string {
	if r.Async {
		return "select null::pg_catalog.uuid as update_id, null::pg_catalog.text as status_url where false"
	}
	return noRows
}

// Shadow implements Statement.
func (d *Drop) Shadow() string { return d.Native }

// noRows describes as NoData without parameters.
const noRows = "DO ''"
