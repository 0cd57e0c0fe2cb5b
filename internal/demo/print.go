package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgconn"
)

func printWords(out io.Writer, lines []string) {
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	if text != "" {
		fmt.Fprintf(out, "\n%s\n", text)
	}
}

// printResult prints rows as a table, or the command tag of a statement that
// returns none.
func printResult(out io.Writer, r *pgconn.Result) {
	if len(r.FieldDescriptions) == 0 {
		fmt.Fprintf(out, "  %s\n", r.CommandTag)
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	names := make([]string, len(r.FieldDescriptions))
	for i, f := range r.FieldDescriptions {
		names[i] = f.Name
	}
	printRow(table, names)
	for _, row := range r.Rows {
		values := make([]string, len(row))
		for i, v := range row {
			if values[i] = string(v); v == nil {
				values[i] = "(null)"
			}
		}
		printRow(table, values)
	}
	table.Flush()
}

func printRow(table io.Writer, values []string) {
	fmt.Fprintf(table, "    %s\n", strings.Join(values, "\t"))
}
