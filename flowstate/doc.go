// Package flowstate is everything rwproxy stores: streaming tables and their
// flows, the history of refreshes, and events. It is kept in schema rwproxy of
// the database that holds the tables, so that it commits, rolls back and is
// dumped with them; a proxy process holds no state.
//
// # Three schemas
//
// rwproxy holds the tables, the views that users read (flows, refreshes,
// event_log) and the functions that write. rwproxy_flows holds each flow's
// query as a view. rwproxy_compat holds the Databricks functions that
// PostgreSQL lacks. [Service.EnsureInstalled] creates all three.
//
// # Rights
//
// Everything here runs on a client's own connection with the client's rights.
// The tables are closed to everybody; one step of work is one INSERT into
// rwproxy.request, whose trigger, running with the rights of the schema's
// owner, first checks what the caller may do to the target.
//
// A role that refreshes another role's flow runs that role's query and
// predicate, as an INSERT into another role's table runs its triggers.
//
// # Imports
//
// It may import rewrite, internal/pgsession, internal/pgdiag and pgx.
package flowstate
