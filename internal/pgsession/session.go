// Package pgsession is the one small interface through which rwproxy runs its
// own statements on Postgres.
//
// A refresh that a client waits for runs on the client's own connection,
// through the relay's injector; work that nobody waits for runs on a pgx
// connection. Both satisfy [Session], so both run the same code.
//
// It may import internal/pgdiag, and pgx for the adapter.
package pgsession

import "context"

// Session is one connection to Postgres. It is not safe for concurrent use.
//
// Arguments are sent as text parameters whose types Postgres infers; nil is
// NULL, a string is sent as it is, a bool and an integer are formatted, a
// []string becomes an array. Errors of Postgres are returned as
// *pgdiag.Diagnostic with every field Postgres sent.
type Session interface {
	// Exec runs one statement and returns the row count of its command tag,
	// 0 when the tag has none.
	Exec(ctx context.Context, sql string, args ...any) (int64, error)
	// Query runs one statement and returns its rows in text format. It is for
	// catalogs and bookkeeping, never for user data: all rows are in memory.
	Query(ctx context.Context, sql string, args ...any) ([]Row, error)
	// Describe parses one statement without running it and returns the types
	// of its parameters and its result columns.
	Describe(ctx context.Context, sql string) (Description, error)
}

// Row is one result row.
type Row []Value

// Value is one result value in text format.
type Value struct {
	Text string
	Null bool
}

// Description is what Postgres says of a statement it has parsed.
type Description struct {
	Parameters []uint32 // type OIDs
	Columns    []Column // nil when the statement returns no rows
}

// Column is one result column.
type Column struct {
	Name         string
	TypeOID      uint32
	TypeModifier int32
}
