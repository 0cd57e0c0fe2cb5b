// Package embedded runs a private Postgres: for `rwproxy serve` without an
// upstream, for the demo and for tests.
//
// It uses installed binaries of PostgreSQL 14 to 18 and downloads nothing.
// Postgres refuses to run as root, so a root process starts it as user
// postgres, or nobody where there is none, and gives it the data directory.
//
// # Layout of a data directory
//
//	postgres/      the cluster, created by initdb at the first start
//	socket/        the directory of the Unix socket, when its path is short enough
//	pg_hba.conf    written at every start
//	lock           held while a process of ours uses the directory
//
// # Who may connect
//
// Everybody who can reach the Unix socket, as any role: the socket's directory
// has mode 0700, so that is the user that runs the server, and root. Loopback
// TCP asks for a password (SCRAM), and the superuser postgres has none until
// someone sets one; with [Config].Trust, which is for tests, it asks for
// nothing.
//
// # Life
//
// The server does not receive the terminal's signals: its owner stops it. On
// Linux it also shuts down when its owner dies in whatever way. The next start
// recovers what a crash left, a stale postmaster.pid included.
//
// It may import nothing of this module.
package embedded
