// Package cli is the program: its commands, its signals and its exit status,
// and the assembly of all other packages.
//
//	rwproxy serve     run the proxy until a signal (the default)
//	rwproxy demo      run it with sample data and show what flows do
//	rwproxy flows     list the flows of a database
//	rwproxy refreshes list its refreshes, and follow them
//	rwproxy refresh   refresh a table, and wait for it
//	rwproxy verify    compare what flows have written with a recompute
//	rwproxy uninstall remove rwproxy from a database
//	rwproxy version   print the version
//
// flows, refreshes and refresh are clients as psql is: they find a server as
// psql does, log in as the user, and run SQL that anybody may run. verify and
// uninstall act as the service role.
//
// # Starting and stopping
//
// An [instance] starts from the back to the front: Postgres (embedded, unless
// there is an upstream), the wire, the console; it is ready when the port
// accepts. It stops from the front to the back. The first SIGINT or SIGTERM
// lets running statements finish, the second cuts them; SIGHUP reads the
// certificate again.
//
// The exit status is 0 after a stop that was asked for, else 1, with one line
// on standard error that says why. That of verify is 1 too if it has found
// something.
//
// It may import everything below it.
package cli
