// Command rwproxy is a PostgreSQL proxy that adds streaming tables and
// REPLACE WHERE flows. `rwproxy --help` lists its commands and settings.
//
// It may import internal/cli.
package main

import (
	"os"

	"github.com/rwproxy/rwproxy/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
