package integration

import (
	"fmt"
	"slices"
	"testing"
)

// Logical replication applies changes without firing statement triggers.
func TestARefreshIsExactWhenLogicalReplicationFeedsItsSource(t *testing.T) {
	t.Parallel()
	publisher, d := newDatabase(t), newDatabase(t)
	p, s, direct := connect(t, publisher.direct), connect(t, d.url), connect(t, d.direct)
	slot := "slot_" + d.name
	const table = `create table source (id integer primary key, day date, amount integer)`
	p.exec(table, `insert into source select n, date '2024-01-01' + n % 6, n from generate_series(1, 30) n`,
		`create publication everything for table source`, `select pg_create_logical_replication_slot('`+slot+`', 'pgoutput')`)
	direct.exec(table, `insert into source select n, date '2024-01-01' + n % 6, n from generate_series(1, 30) n`,
		// A subscription to the own server cannot make the slot itself: it would wait for its own transaction.
		`create subscription fed connection 'host=127.0.0.1 user=postgres port=`+fmt.Sprint(server.Port())+` dbname=`+publisher.name+`' publication everything
			with (create_slot = false, slot_name = '`+slot+`', copy_data = false)`)
	t.Cleanup(func() {
		direct := connect(t, d.direct)
		direct.exec(`alter subscription fed disable`, `alter subscription fed set (slot_name = none)`, `drop subscription fed`)
		eventually(t, "the slot is free", func() bool {
			return direct.value(`select count(*) from pg_replication_slots where slot_name = '`+slot+`' and active`) == "0"
		})
		connect(t, publisher.direct).exec(`select pg_drop_replication_slot('` + slot + `')`)
	})
	s.exec(`create streaming table totals flow replace where day >= '2024-01-03' by name
		select day, count(*) as n, sum(amount) as amount from source group by day`)
	for _, change := range []string{
		`update source set amount = amount + 1 where day = '2024-01-05'`,
		`delete from source where id = 10`,
		`insert into source values (31, '2024-01-06', 31)`,
		`update source set day = day + 1 where id % 4 = 1`,
		`truncate source`,
	} {
		p.exec(change)
		const content = `select * from source order by 1`
		eventually(t, "the change arrives", func() bool { return slices.Equal(p.rows(content), direct.rows(content)) })
		s.exec(`refresh streaming table totals`)
		s.want(wholeTotals, s.recomputedTotals()...)
	}
}
