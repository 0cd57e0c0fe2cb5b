// Package server is the wire: listeners, startup and authentication, the relay
// between a client and its own Postgres connection, the order of answers in a
// pipeline, the interception of rwproxy's statements, and cancel.
//
// It knows messages, no flow SQL: what an intercepted statement does is behind
// [Handler]. The client connects to us, the backend is Postgres.
//
// It may import rewrite, internal/pgsession and internal/pgdiag.
package server
