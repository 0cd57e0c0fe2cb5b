package main

import (
	"context"
	"fmt"
)

// change is what happens to the sources between two refreshes.
type change struct {
	name string
	// sql makes it in a round; "" changes nothing.
	sql func(rows int64, round int) string
}

// changes are of shares of the window's rows, in the newest days or spread over
// all of them, and of single rows of the other tables.
var changes = []change{
	{"nothing", func(int64, int) string { return "" }},
	{"recent, 0.01 %", recent(10_000)},
	{"recent, 1 %", recent(100)},
	{"recent, 10 %", recent(10)},
	{"uniform, 0.01 %", uniform(10_000)},
	{"uniform, 1 %", uniform(100)},
	{"uniform, 10 %", uniform(10)},
	{"a store's region", func(_ int64, round int) string {
		return fmt.Sprintf("update store set region = 'region ' || (store + 1 + %d) %% 50 where store = 1234", round)
	}},
	{"a product's name", func(_ int64, round int) string {
		return fmt.Sprintf("update product set name = name || '%d' where product = 4321", round)
	}},
}

// windowRows are the sales in the window, of so many.
func windowRows(rows int64) int64 { return rows * 30 / 100 }

// recent changes one of so many rows of the window: the newest.
func recent(share int64) func(int64, int) string {
	return func(rows int64, _ int) string {
		return fmt.Sprintf("update sale set amount = amount + 1 where id >= %d", rows-windowRows(rows)/share)
	}
}

// uniform changes one of so many rows of the window, at equal distances.
func uniform(share int64) func(int64, int) string {
	return func(rows int64, round int) string {
		first := rows - windowRows(rows)
		return fmt.Sprintf("update sale set amount = amount + 1 where id >= %d and id %% %d = %d", first, share, int64(round)%share)
	}
}

// make changes the sources, and leaves no dead rows.
func (c change) make(ctx context.Context, direct *session, rows int64, round int) error {
	sql := c.sql(rows, round)
	if sql == "" {
		return nil
	}
	return direct.run(ctx, sql, "vacuum sale, store, product")
}
