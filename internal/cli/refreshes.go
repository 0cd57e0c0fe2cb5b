package cli

import (
	"context"
	_ "embed" // refreshes.sql
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

type refreshesCommand struct {
	connection `embed:""`

	Follow bool `short:"f" help:"Go on, and print each refresh when it begins and when it ends."`
	Limit  int  `default:"20" placeholder:"NUMBER" help:"How many to print at first, the newest (20)."`
	JSON   bool `name:"json" help:"Write JSON, with every column of rwproxy.refreshes, instead of a table; with --follow an object a line."`
}

//go:embed refreshes.sql
var refreshesQuery string

// refreshRow is a row of rwproxy.refreshes as far as the client shows it.
type refreshRow struct {
	ID           string     `json:"refresh_id"`
	Schema       string     `json:"target_schema"`
	Table        string     `json:"target_table"`
	Cause        string     `json:"cause"`
	Kind         string     `json:"kind"`
	Technique    string     `json:"technique"`
	Reason       string     `json:"reason"`
	RowsDeleted  int64      `json:"rows_deleted"`
	RowsInserted int64      `json:"rows_inserted"`
	State        string     `json:"state"`
	Progress     string     `json:"progress"`
	RequestedBy  string     `json:"requested_by"`
	RequestedAt  time.Time  `json:"requested_at"`
	StartedAt    *time.Time `json:"started_at"`
	EndedAt      *time.Time `json:"ended_at"`
	Error        string     `json:"error"`
	ErrorDetail  string     `json:"error_detail"`
	ErrorHint    string     `json:"error_hint"`

	object json.RawMessage // all of it
}

// refreshes reads the objects of rows.
func refreshes(rows []pgsession.Row) ([]refreshRow, error) {
	all := make([]refreshRow, len(rows))
	for i, row := range rows {
		all[i].object = json.RawMessage(row[0].Text)
		if err := json.Unmarshal(all[i].object, &all[i]); err != nil {
			return nil, fmt.Errorf("rwproxy.refreshes: %w", err)
		}
	}
	return all, nil
}

// Run prints the refreshes of a database, the newest first, or with --follow
// the newest last.
func (c *refreshesCommand) Run(ctx context.Context, p *program) error {
	if c.Limit < 0 {
		return errors.New("--limit is not a number of refreshes")
	}
	s := notify(ctx)
	defer s.release()
	conn, err := c.open(s.first, p)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if c.Follow {
		f := follower{conn: conn, print: c.printer(p)}
		return plain(f.follow(s.first, c.Limit))
	}
	rows, err := query(s.first, conn, refreshesQuery, c.Limit)
	if err != nil {
		return plain(err)
	}
	if c.JSON {
		return printObjects(p.stdout, rows)
	}
	newest, err := refreshes(rows)
	if err != nil {
		return err
	}
	refreshGrid(p).print(cells(newest))
	return nil
}

// printer returns what prints refreshes as they come.
func (c *refreshesCommand) printer(p *program) func([]refreshRow) {
	if c.JSON {
		return func(found []refreshRow) {
			for _, r := range found {
				fmt.Fprintf(p.stdout, "%s\n", r.object)
			}
		}
	}
	table := refreshGrid(p)
	return func(found []refreshRow) { table.print(cells(found)) }
}

func cells(all []refreshRow) [][]string {
	lines := make([][]string, len(all))
	for i, r := range all {
		lines[i] = r.cells()
	}
	return lines
}

func refreshGrid(p *program) *grid {
	return newGrid(p.stdout,
		column{title: "requested"},
		column{title: "table", cuttable: true},
		column{title: "state", least: len("COMPLETED")},
		column{title: "kind"},
		column{title: "technique", least: len("FULL_RECOMPUTE")},
		column{title: "rows"},
		column{title: "took"},
		column{title: "detail", cuttable: true},
		column{title: "cause", optional: true},
		column{title: "by", cuttable: true, optional: true},
		column{title: "refresh_id", optional: true})
}

// cells are the values of a refresh in the columns of refreshGrid.
func (r refreshRow) cells() []string {
	requested := r.RequestedAt
	detail := r.Reason
	switch {
	case r.Error != "":
		detail = r.Error
	case r.Progress != "":
		detail = r.Progress
	}
	return []string{
		localTime(&requested), r.name(), r.State, r.Kind, r.Technique, r.rows(), r.took(), detail, r.Cause, r.RequestedBy, r.ID,
	}
}

// name is the table's, as SQL writes it.
func (r refreshRow) name() string { return rewrite.Name{Schema: r.Schema, Table: r.Table}.SQL() }

// rows says how many were deleted and inserted, once that is known.
func (r refreshRow) rows() string {
	if r.State != "COMPLETED" {
		return ""
	}
	return fmt.Sprintf("-%d +%d", r.RowsDeleted, r.RowsInserted)
}

// took says how long it ran, once that is known.
func (r refreshRow) took() string {
	if r.StartedAt == nil || r.EndedAt == nil {
		return ""
	}
	d := r.EndedAt.Sub(*r.StartedAt)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
