package integration

import (
	"context"
	"strings"
	"testing"
)

const (
	createSales = `create table sales (id integer, day date, region text, amount numeric(8,2))`
	insertSales = `insert into sales values (1, '2024-01-31', 'n', 10), (2, '2024-02-01', 'n', 20), (3, '2024-02-01', 's', 30), (4, null, null, 40)`
	createFresh = `create table fresh (id integer, day date, region text, amount numeric(8,2))`
	insertFresh = `insert into fresh values (5, '2024-02-01', 'n', 50), (6, '2024-02-02', 'w', 60)`
	salesIDs    = `select string_agg(id::text, ' ' order by id) from sales`
)

func TestSelectiveOverwrite(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createSales, createFresh, insertFresh)
		for _, c := range []struct{ sql, tag, left string }{
			{`insert into sales replace where day >= '2024-02-01' select * from fresh`, "INSERT 0 2", "1 4 5 6"},
			{`insert into table sales by name replace where day >= date '2024-02-01' table fresh`, "INSERT 0 2", "1 4 5 6"},
			{`insert into sales replace where region <=> null values (7, '2024-03-01', null, '7')`, "INSERT 0 1", "1 2 3 7"},
			{`with x as (select * from fresh) insert into sales replace where day >= '2024-02-01' select * from x where false`, "INSERT 0 0", "1 4"},
			{`insert into sales replace where 1 = 2 select * from fresh`, "INSERT 0 2", "1 2 3 4 5 6"},
			{`insert into sales replace using (day, region) select * from fresh`, "INSERT 0 2", "1 3 4 5 6"},
			{"insert into table sales AS t replace on (t.`day` <=> s.`day`) (select * from fresh) AS s", "INSERT 0 2", "1 4 5 6"},
			{`insert overwrite sales select id + 10, day, region, amount from sales where id > 2`, "INSERT 0 2", "13 14"},
			{`insert overwrite table sales partition (region = 'n') select id, day, amount from fresh`, "INSERT 0 2", "3 4 5 6"},
			{`insert into sales by name select 9 as id`, "INSERT 0 1", "1 2 3 4 9"},
			// PostgreSQL's own, with our words in it.
			{`insert into sales (id, region) select 9, replace('overwrite', 'e', '') as replace from fresh replace where id = 5`, "INSERT 0 1", "1 2 3 4 9"},
		} {
			s.exec(`truncate sales`, insertSales)
			if tag := s.exec(c.sql); tag != c.tag {
				t.Errorf("%s: got tag %s, want %s", c.sql, tag, c.tag)
			}
			s.want(salesIDs, c.left)
		}
	})
}

func TestARowOutsideTheReplacedWindowIsRefused(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createSales, insertSales, createFresh, insertFresh)
		const sql = `insert into sales replace where day >= '2024-02-01' and region = 'n' select * from fresh`
		e := s.fails("44000", sql)
		if !strings.Contains(e.Detail, "id = 6, day = 2024-02-02, region = w, amount = 60.00") || sql[e.Position-1:][:6] != "region" {
			t.Errorf("got detail %q, position %d", e.Detail, e.Position)
		}
		s.want(salesIDs, "1 2 3 4")
		s.exec(`set spark.databricks.delta.replaceWhere.constraintCheck.enabled = false`, sql)
		s.want(salesIDs, "1 3 4 5 6")
	})
}

func TestSelectiveOverwriteInATransaction(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.exec(createSales, insertSales, createFresh, insertFresh, `begin`)
		s.exec(`insert into sales replace where day >= '2024-02-01' select * from fresh`,
			`insert into sales replace using (id) select id, day, region, 0 from sales where id = 5`)
		s.want(salesIDs, "1 4 5 6")
		connect(t, d.url).want(salesIDs, "1 2 3 4")
		s.exec(`savepoint a`)
		s.fails("44000", `insert into sales replace where id = 1 values (2, null, null, null)`)
		s.fails("25P02", `insert overwrite sales select * from fresh`)
		s.exec(`rollback to a`, `commit`)
		s.want(`select id, amount from sales order by id`, "1|10.00", "4|40.00", "5|0.00", "6|60.00")
		s.exec(`begin`, `insert overwrite sales select * from fresh`, `rollback`)
		s.want(salesIDs, "1 4 5 6")
	})
}

func TestSelectiveOverwriteAmongOtherStatementsOfAQuery(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.exec(createSales, insertSales, createFresh, insertFresh)
	s.exec(`insert into fresh values (7, '2024-02-03', 'n', 70);
		insert into sales replace where day >= '2024-02-01' select * from fresh;
		delete from sales where id = 6`)
	s.want(salesIDs, "1 4 5 7")
	s.fails("44000", `delete from sales where id = 1; insert into sales replace where region = 'n' select * from fresh`)
	s.want(salesIDs, "1 4 5 7")
}

func TestSelectiveOverwriteInAPipeline(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.exec(createSales, insertSales, createFresh, insertFresh)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	send := func(statements ...string) error {
		p := s.conn.StartPipeline(ctx)
		for _, sql := range statements {
			p.SendQueryParams(sql, nil, nil, nil, nil)
		}
		if err := p.Sync(); err != nil {
			t.Fatal(err)
		}
		return p.Close()
	}
	if err := send(`insert into fresh values (7, '2024-02-03', 'n', 70)`,
		`insert into sales replace where day >= '2024-02-01' select * from fresh`,
		`delete from sales where id = 6`); err != nil {
		t.Fatal(err)
	}
	s.want(salesIDs, "1 4 5 7")
	for _, fails := range [][]string{
		{`delete from sales where id = 1`, `insert into sales replace where region = 'n' select * from fresh`},
		{`insert overwrite sales select * from fresh`, `select 1 / 0`},
		{`insert into sales replace where true select * from fresh`, `selec`},
		{`insert into sales replace using (id) select * from fresh`, `insert into sales replace where region = 'n' select * from fresh`},
		{`insert overwrite sales select * from fresh`, `refresh streaming table sales`},
	} {
		if err := send(fails...); err == nil {
			t.Errorf("%q has no error", fails)
		}
		s.want(salesIDs, "1 4 5 7")
	}
	if err := send(`insert overwrite sales select * from fresh`, `update sales set id = id + 100`); err != nil {
		t.Fatal(err)
	}
	s.want(salesIDs, "105 106 107")
}

func TestThePreparedFormOfASelectiveOverwriteIsDescribed(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.exec(createSales)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	description, err := s.conn.Prepare(ctx, "p", `insert into sales by name replace where day >= $1 select $2 as amount, $1 as day`, nil)
	if err != nil {
		t.Fatal(describe(err))
	}
	const date, numeric = 1082, 1700
	if types := description.ParamOIDs; len(types) != 2 || types[0] != date || types[1] != numeric || len(description.Fields) != 0 {
		t.Errorf("got parameters %v and columns %v", types, description.Fields)
	}
}

func TestDynamicPartitionOverwriteOfAStreamingTable(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create streaming table sales (id integer, day date, region text, amount numeric(8,2)) partitioned by (region)`,
			insertSales, `set spark.sql.sources.partitionOverwriteMode = dynamic`,
			`insert overwrite sales values (8, null, 'n', 1), (9, null, null, 1)`)
		s.want(salesIDs, "3 8 9")
	})
}
