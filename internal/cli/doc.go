// Package cli is the program: its commands, its signals and its exit status,
// and the assembly of all other packages.
//
//	rwproxy serve     run the proxy until a signal (the default)
//	rwproxy demo      run it with sample data and show what flows do
//	rwproxy verify    compare what flows have written with a recompute
//	rwproxy version   print the version
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
