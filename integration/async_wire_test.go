package integration

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// An accepted refresh is answered as a query is, in either protocol and format,
// and done soon after.
func TestAnAsyncRefreshOverTheWire(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	s.exec(`create table src (a int)`)
	s.exec(`create streaming table dst flow replace where a > 0 by name select a from src`)
	conn, err := pgx.Connect(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for n, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeCacheStatement,
	} {
		s.exec(`insert into src values (1)`)
		var id [16]byte
		var url *string
		rows, err := conn.Query(t.Context(), "refresh streaming table dst where a > $1 async", mode, 0)
		if err != nil {
			t.Fatal(mode, err)
		}
		if _, err = pgx.ForEachRow(rows, []any{&id, &url}, func() error { return nil }); err != nil {
			t.Fatal(mode, err)
		}
		if tag := rows.CommandTag().String(); tag != "REFRESH STREAMING TABLE" {
			t.Errorf("%s: the tag is %s", mode, tag)
		}
		deadline := time.Now().Add(time.Minute)
		for state := ""; state != "COMPLETED"; time.Sleep(10 * time.Millisecond) {
			if err := conn.QueryRow(t.Context(), `select state from rwproxy.refreshes where update_id = $1`, id).Scan(&state); err != nil {
				t.Fatal(mode, err)
			}
			if state == "FAILED" || time.Now().After(deadline) {
				t.Fatalf("%s: the refresh is %s: %v", mode, state, s.rows(`select error from rwproxy.refreshes where state = 'FAILED'`))
			}
		}
		s.want(`select count(*) from dst`, strconv.Itoa(n+1))
	}
}
