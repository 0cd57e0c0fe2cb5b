package main

import (
	"context"
	"fmt"
	"strings"
)

// flow is a query whose result is kept in three tables, each in another way.
type flow struct {
	name  string
	query string // over the sources of flows.sql
	key   string // the columns that are a row's key
}

// window is what the flows keep of their queries.
const window = "day >= date '2026-03-12'"

var flows = []flow{
	{
		name: "A",
		query: `select s.day, o.region, count(*) as sales, sum(s.amount) as amount
			from sale s join store o using (store) group by s.day, o.region`,
		key: "day, region",
	},
	{
		name:  "S",
		query: `select day, store, count(*) as sales, sum(amount) as amount from sale group by day, store`,
		key:   "day, store",
	},
	{
		name: "B",
		query: `select s.id, s.day, s.store, o.name as store_name, o.region, p.name as product_name, p.category, s.amount
			from sale s join store o using (store) join product p using (product)`,
		key: "id",
	},
}

// The tables that hold a flow's result.
func (f flow) hand() string         { return "hand_" + strings.ToLower(f.name) }
func (f flow) materialized() string { return "materialized_" + strings.ToLower(f.name) }
func (f flow) streaming() string    { return "streaming_" + strings.ToLower(f.name) }

// windowOf is the query's rows in the window.
func (f flow) windowOf() string {
	return fmt.Sprintf("select * from (%s) as q where %s", f.query, window)
}

// replace is what a person writes instead of a flow.
func (f flow) replace(predicate string) string {
	return fmt.Sprintf("begin; delete from %s where %s; insert into %[1]s select * from (%[3]s) as q where %[2]s; commit",
		f.hand(), predicate, f.query)
}

func (f flow) refreshMaterialized() string {
	return "refresh materialized view concurrently " + f.materialized()
}

func (f flow) refreshStreaming() string { return "refresh streaming table " + f.streaming() }

// create creates the three tables, with the same indexes and statistics.
func (f flow) create(ctx context.Context, direct, proxied *session) error {
	if err := direct.run(ctx,
		fmt.Sprintf("create table %s as %s", f.hand(), f.windowOf()),
		fmt.Sprintf("create materialized view %s as %s", f.materialized(), f.windowOf())); err != nil {
		return err
	}
	err := proxied.run(ctx, fmt.Sprintf("create streaming table %s flow replace where %s by name %s", f.streaming(), window, f.query))
	if err != nil {
		return err
	}
	for _, table := range []string{f.hand(), f.materialized(), f.streaming()} {
		if err := direct.run(ctx,
			fmt.Sprintf("create unique index on %s (%s)", table, f.key),
			fmt.Sprintf("create index on %s (day)", table),
			"vacuum analyze "+table); err != nil {
			return err
		}
	}
	// The index is new to the flow; this refresh takes notice of it.
	return proxied.run(ctx, f.refreshStreaming())
}

// vacuum removes what a round has left dead.
func (f flow) vacuum(ctx context.Context, direct *session) error {
	return direct.run(ctx, fmt.Sprintf("vacuum %s, %s, %s", f.hand(), f.materialized(), f.streaming()))
}

// compare fails unless the flow's table has the rows that the one kept by hand
// has.
func (f flow) compare(ctx context.Context, direct *session) error {
	rows, err := direct.query(ctx, fmt.Sprintf(`
		select (select count(*) from (table %[1]s except all table %[2]s) as missing),
		       (select count(*) from (table %[2]s except all table %[1]s) as extra)`, f.hand(), f.streaming()))
	if err != nil {
		return err
	}
	if missing, extra := rows[0][0], rows[0][1]; missing != "0" || extra != "0" {
		return fmt.Errorf("flow %s: %s rows are missing, %s are too many", f.name, missing, extra)
	}
	return nil
}
