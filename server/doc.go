// Package server is the wire: listeners, startup and authentication, the relay
// between a client and its own Postgres connection, the order of answers in a
// pipeline, the interception of rwproxy's statements, and cancel.
//
// It knows messages, no flow SQL: what an intercepted statement does is behind
// [Handler]. The client connects to us, the backend is Postgres. Messages are
// named as in the protocol documentation.
//
// It may import rewrite, internal/pgsession and internal/pgdiag.
//
// # A session
//
//  1. [Server] accepts a connection. A PROXY header is read (proxyheader.go),
//     requests for encryption are answered (startup.go, tls.go), a
//     CancelRequest is forwarded on a connection of its own (cancel.go).
//  2. The backend is dialled (upstream.go) and gets the startup packet as the
//     client sent it. From here on everything is relayed, authentication too,
//     but for SCRAM with a client that has TLS: that is two exchanges, one on
//     each side (login.go, scram*.go).
//  3. Two goroutines relay (session.go): the client's reads the client and
//     writes to the backend (client.go), the backend's reads the backend, at
//     all times, and writes to the client (backend.go). Frames are walked in
//     place (frame.go) and forwarded as bytes, from the memory they were read
//     into (sender.go); writes are coalesced until the next read would block.
//  4. On Linux a loop (loop_linux.go) does the work of both goroutines while a
//     session without TLS is at rest or only passes messages on: one goroutine
//     waits on the connections of many sessions, and a session has no buffer of
//     its own. It runs the same code, on what it has read; where that would have
//     to wait (a statement of ours, too many answers owed, a message to be read
//     as a whole that is long) the code says so before it has done anything, and
//     the session goes back to goroutines until its next ReadyForQuery
//     (move_linux.go).
//  5. The session ends when either side goes. A client's end of file is passed
//     on to the backend; the backend's last words are passed on to the client.
//
// # Answers owed
//
// ledger.go keeps what the backend owes: one entry for each message that was
// sent, oldest first, with a note where an answer is not simply passed on. An
// error in the extended protocol cancels the entries up to the next Sync, COPY
// FROM takes the Syncs in its data. The ledger says when everything in front
// of a statement has been answered, whether Postgres skips messages, and to
// whom an answer belongs.
//
// # Interception
//
// The text of a Query or Parse that may hold a statement of ours is read by
// package rewrite (script.go). One that is malformed is sent to Postgres
// anyway, which fails on it in the right place and state; the error's fields
// are then replaced. Otherwise:
//
//   - A Query that is one statement, outside a transaction, is run by the
//     handler; a Sync gets its ReadyForQuery (simple.go).
//   - A Query of several statements is run one by one, as extended messages
//     closed by Flush, in one transaction, with the answers that a Query shows.
//   - A Parse becomes the Parse of the statement's shadow, so that Bind,
//     Describe, Close and names stay Postgres's own. Execute runs the handler:
//     in a transaction of its own if it is all that runs between two Syncs,
//     else joined to the client's (extended.go).
//
// A statement with parameters is parsed in two steps: the handler says what
// types they have, and Postgres is given a statement that declares them, so that
// it describes them and checks each Bind. Execute has Postgres read the bytes of
// the Bind and puts typed constants into the statement (parameters.go).
//
// The handler's statements are injected on the same connection, named, and
// closed by Flush when they join a transaction of the client's (injector.go).
// When a joined statement fails without Postgres, Postgres is made to fail at
// the same place with a text it cannot parse (run.go).
//
// While the handler runs, the client is read ahead so that its end is noticed
// (watch.go): the backend's connection is then closed and its statement
// cancelled.
package server
