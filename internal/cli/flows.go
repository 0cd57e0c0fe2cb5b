package cli

import (
	"context"
	_ "embed" // flows.sql
	"encoding/json"
	"fmt"
	"time"

	"github.com/rwproxy/rwproxy/rewrite"
)

type flowsCommand struct {
	connection `embed:""`

	JSON bool `name:"json" help:"Write JSON, with every column of rwproxy.flows, instead of a table."`
}

//go:embed flows.sql
var flowsQuery string

// flowRow is a row of rwproxy.flows as far as the table shows it.
type flowRow struct {
	Schema        string     `json:"target_schema"`
	Table         string     `json:"target_table"`
	Predicate     string     `json:"predicate"`
	Schedule      string     `json:"schedule"`
	Owner         string     `json:"owner"`
	LastRefreshAt *time.Time `json:"last_refresh_at"`
	LastTechnique string     `json:"last_technique"`
	NextRunAt     *time.Time `json:"next_run_at"`
}

// Run prints the flows of a database.
func (c *flowsCommand) Run(ctx context.Context, p *program) error {
	s := notify(ctx)
	defer s.release()
	conn, err := c.open(s.first, p)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := query(s.first, conn, flowsQuery)
	if err != nil {
		return plain(err)
	}
	if c.JSON {
		return printObjects(p.stdout, rows)
	}
	table := newGrid(p.stdout,
		column{title: "table", cuttable: true},
		column{title: "last refresh"},
		column{title: "technique"},
		column{title: "next run"},
		column{title: "schedule", cuttable: true},
		column{title: "window", cuttable: true},
		column{title: "owner", cuttable: true, optional: true})
	var lines [][]string
	for _, row := range rows {
		var f flowRow
		if err := json.Unmarshal([]byte(row[0].Text), &f); err != nil {
			return fmt.Errorf("rwproxy.flows: %w", err)
		}
		lines = append(lines, []string{
			rewrite.Name{Schema: f.Schema, Table: f.Table}.SQL(),
			localTime(f.LastRefreshAt), f.LastTechnique, localTime(f.NextRunAt), f.Schedule, f.Predicate, f.Owner,
		})
	}
	table.print(lines)
	return nil
}

// localTime is a time as people read it, in the zone of this machine.
func localTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Local().Format(time.DateTime)
}
