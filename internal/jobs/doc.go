// Package jobs runs the refreshes that no client waits for: REFRESH … ASYNC,
// schedules, triggers and the API. A *job* is such a refresh: a row of
// rwproxy.refresh in state QUEUED.
//
// # No leader, no polling
//
// Any number of instances may serve the same databases. Each has one session a
// database that listens on channel rwproxy, and sleeps until it is notified or
// something is due. A job runs once because its session takes the job's
// advisory lock first, and because it is COMPLETED by the transaction that
// writes its table. Only while jobs run does an instance look every two
// seconds whether their sessions live, and queues again what has lost its own.
//
// # Connections
//
// An instance has one session to find databases, one listening session for
// each of up to twenty databases, and one for each refresh that runs, which is
// what Config.MaxRefreshes bounds. More databases than that take turns. No
// database waits for another one: a slot that becomes free goes to the next
// database in line.
//
// # Rights
//
// A job runs on a session of its own that belongs to the role that asked for
// it; see [flowstate.Service.ConnectRunner].
//
// # Imports
//
// It may import internal/refresh, flowstate, internal/schedule,
// internal/pgsession and internal/pgdiag.
package jobs
