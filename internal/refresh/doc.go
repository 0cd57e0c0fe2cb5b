// Package refresh is what rwproxy's statements do: it creates flows, plans a
// refresh, runs it and says what happened.
//
// A flow is a target table T, a predicate P over T's columns and a source
// query Q. One refresh replaces the rows of the window (the rows of T for
// which P is true) with Q's rows for which P is true, in one transaction.
// After it the window holds exactly what a full recompute would have written,
// and every row outside the window is untouched.
//
// Postgres answers every question about names, types, volatility and validity:
// Q is stored as a view, P is described against the target and against Q.
//
// # Who runs it
//
// Statements run on the client's own connection with the client's own rights,
// through [Client]. The service connection of flowstate installs the schema,
// and records a failure that the client's connection can no longer record.
//
// # Imports
//
// It may import flowstate, rewrite, internal/pgsession, internal/pgdiag and
// internal/schedule.
package refresh
