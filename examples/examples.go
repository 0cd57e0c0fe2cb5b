// Package examples holds the worked examples as psql scripts, each with the
// rows it prints. The demo and the tests run the same files.
//
// It may import the standard library only.
package examples

import "embed"

// Scripts are the examples, in the order of their names.
//
//go:embed *.sql
var Scripts embed.FS
