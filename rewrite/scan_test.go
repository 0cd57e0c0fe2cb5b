package rewrite_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rwproxy/rwproxy/rewrite"
)

func TestOrdinaryTextIsToldFromOursByItsWords(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"":                                     false,
		"select * from tables":                 false,
		"select streaming_flow from refreshed": false,
		"create table t (drop int)":            false,
		"drop view v; create index i":          false,
		"drop schema s cascade":                false,
		"select 1 as flows, 'Stream'":          false,
		"Refresh Table t":                      true,
		"REFRESH":                              true,
		"create\tSTREAMING\ntable t":           true,
		"create flow f":                        true,
		"DROP/*x*/TABLE t":                     true,
		"drop table":                           true,
		"/**/CREATE/**/FLOW/**/f":              true,
		"drop view a; truncate table b":        true,
		"select a from t order by a desc":      false,
		"select describe, show from restore":   false,
		"select 1 -- first\norder by 1 desc":   false,
		" \n\tDesc t":                          true,
		"select 1; describe t":                 true,
		"/* a; b */ describe t":                true,
		"-- c\nshow create table t":            true,
		"'; /*'; restore t":                    true,
		"select * from Event_Log(table(t))":    true,
		"select * from event_logs":             false,
		"create materialized view v":           true,
		"replace overwrite by name insert":     false,
		"insert into t select 1":               false,
		"insert into t (id, name) values (1)":  false,
		"INSERT INTO t BY NAME select 1":       true,
		"insert into t replace where":          true,
		"insert overwrite t":                   true,
		"insert into/**/table t":               true,
		"insert into t partition (a = 1)":      true,
		"insert with schema evolution into t":  true,
	} {
		if got := rewrite.MayBeOurs([]byte(sql)); got != want {
			t.Errorf("%q: got %v", sql, got)
		}
	}
}

func TestNoStatementOfOursIsMissed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sql := texts().Draw(t, "sql")
		statement, err := rewrite.Parse(sql, rewrite.Lexical{})
		if (statement != nil || err != nil) && !rewrite.MayBeOurs([]byte(sql)) {
			t.Fatalf("%q is missed", sql)
		}
	})
}

func TestLookingForOurWordsAllocatesNothing(t *testing.T) {
	sql := []byte(ordinarySQL)
	if allocations := testing.AllocsPerRun(100, func() { rewrite.MayBeOurs(sql) }); allocations != 0 {
		t.Errorf("got %v allocations", allocations)
	}
}

const ordinarySQL = `select o.id, o.placed_at, sum(l.quantity * l.price) as total
from orders as o join order_lines as l on l.order_id = o.id
where o.placed_at >= now() - interval '7 days' and o.status in ('open', 'paid')
group by o.id, o.placed_at order by total desc limit 100`

func BenchmarkMayBeOurs(b *testing.B) {
	for name, sql := range map[string]string{"query": ordinarySQL, "long": strings.Repeat(ordinarySQL+";\n", 1000)} {
		b.Run(name, func(b *testing.B) {
			text := []byte(sql)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if rewrite.MayBeOurs(text) {
					b.Fatal("ordinary text is taken for ours")
				}
			}
		})
	}
}
