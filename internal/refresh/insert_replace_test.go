package refresh_test

import "testing"

func TestReplaceUsingReplacesTheRowsWithTheSameKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sql, tag, left string }{
		{"insert into facts replace using (day) select * from source", "2", "1 2 4 5 6 7"},
		{"insert into facts replace using (region) select * from source", "2", "4 6 7"},
		{"insert into facts replace using (region, day, region) select * from source", "2", "1 2 3 4 5 6 7"},
		{"insert into facts by name replace using (region) select 's' as region, 9 as id", "1", "1 2 4 5 9"},
		{"insert into facts replace using (id) values (1, null, 'x', 1), (1, null, 'y', 2), (9, null, 'z', 3)", "3", "1 1 2 3 4 5 9"},
		// NULL equals nothing: the row of the table stays, that of the query is appended.
		{"insert into facts by name replace using (region) select 9 as id, null as region", "1", "1 2 3 4 5 9"},
		{"insert into facts by name replace using (day, region) select 9 as id, 'n' as region, null::date as day", "1", "1 2 3 4 5 9"},
		// An empty source deletes nothing.
		{"insert into facts replace using (id) select * from source where false", "0", "1 2 3 4 5"},
		{"insert into facts replace using (id) select id, day, region, amount + 1 from facts where id < 3", "2", "1 2 3 4 5"},
	} {
		s := facts(t)
		s.insert("INSERT 0 "+c.tag, c.sql)
		if got := s.rows(ids)[0]; got != c.left {
			t.Errorf("%s\ngot %s, want %s", c.sql, got, c.left)
		}
	}
}

func TestReplaceUsingNeedsItsColumnsOnBothSides(t *testing.T) {
	t.Parallel()
	s := facts(t)
	for _, c := range []struct{ code, message, sql, at string }{
		{"42703", `column "key" cannot be resolved in the table`, "insert into facts replace using (id, key) select * from source", "key"},
		{"42703", `column "region" cannot be resolved in the query`, "insert into facts replace using (region) select id, day, 'n', amount from source", "region"},
		{"42703", `column "region" cannot be resolved in the query`, "insert into facts by name replace using (region) select id from source", "region"},
		{"42802", "has not the same place", "insert into facts replace using (id) select 1 as day, date '2024-01-01' as id, region, amount from source", "id"},
		{"21S01", "more expressions", "insert into facts replace using (id) select *, 1 from source", "select"},
	} {
		s.failsAt(c.code, c.message, c.sql, c.at)
	}
	s.expect(ids, "1 2 3 4 5")
}

func TestReplaceOnReplacesTheRowsThatARowOfTheQueryMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sql, tag, left string }{
		{"insert into facts as t replace on t.day = s.day (select * from source) as s", "2", "1 2 4 5 6 7"},
		{"insert into table facts AS t replace on (t.`region` <=> s.`region`) (select 9 as id, null::date as day, null as region, 1 as amount) AS s", "1", "1 2 3 5 9"},
		{"insert into facts replace on facts.id = rwproxy.id (select 1 as id, null::date, 'x', 2) rwproxy", "1", "1 2 3 4 5"},
		{"insert into facts replace on public.facts.id + 3 = s.id (select * from source) s", "2", "1 2 5 6 7"},
		{"insert into facts by name t replace on t.id < s.id (select 3 as id) s", "1", "3 3 4 5"},
		{"insert into facts (id, region) as t replace on t.region = s.r and s.n = 5 (select 5 as n, 's' as r) as s", "1", "1 2 4 5 5"},
		// The names of the query count, not those of the columns they go to.
		{"insert into facts as t replace on t.id = key (select 4 as key, date '2024-01-01' as when, 'q' as what, 1 as much) s", "1", "1 2 3 4 5"},
		{"insert into facts t replace on t.day > column2 values (8, '2024-01-31', 'x', 1)", "1", "1 2 5 8"},
		// A condition on one side.
		{"insert into facts t replace on t.region = 'n' (select * from source) s", "2", "3 4 6 7"},
		{"insert into facts t replace on t.region = 'n' (select * from source where false) s", "0", "1 2 3 4 5"},
		{"insert into facts t replace on s.id = 7 (select * from source) s", "2", "6 7"},
		{"insert into facts t replace on s.id = 8 (select * from source) s", "2", "1 2 3 4 5 6 7"},
		{"insert into facts replace on true select * from source", "2", "6 7"},
		// An empty source deletes nothing.
		{"insert into facts replace on true select * from source where false", "0", "1 2 3 4 5"},
		{"insert into facts t replace on t.id in (select id from facts where id < 3) (select * from source) s", "2", "3 4 5 6 7"},
	} {
		s := facts(t)
		s.insert("INSERT 0 "+c.tag, c.sql)
		if got := s.rows(ids)[0]; got != c.left {
			t.Errorf("%s\ngot %s, want %s", c.sql, got, c.left)
		}
	}
}

func TestTheErrorsOfReplaceOnPointIntoTheStatement(t *testing.T) {
	t.Parallel()
	s := facts(t)
	for _, c := range []struct{ code, message, sql, at string }{
		{"42702", `column reference "id" is ambiguous`, "insert into facts t replace on id = 1 (select * from source) s", "id = 1"},
		{"42703", `column t.key does not exist`, "insert into facts t replace on t.key = s.id (select * from source) s", "t.key"},
		{"42703", `column s.key does not exist`, "insert into facts t replace on t.id = s.key (select * from source) s", "s.key"},
		{"42703", "missing FROM-clause entry", "insert into facts t replace on t.id = x.id (select * from source) s", "x.id"},
		{"42703", "invalid reference to FROM-clause entry", "insert into facts t replace on facts.id = s.id (select * from source) s", "facts.id"},
		{"42K09", "condition must be type boolean", "insert into facts t replace on t.id + s.id (select * from source) s", "t.id + s.id"},
		{"42803", "aggregate functions are not allowed in a condition", "insert into facts t replace on max(t.id) > 1 (select * from source) s", "max"},
	} {
		s.failsAt(c.code, c.message, c.sql, c.at)
	}
	s.expect(ids, "1 2 3 4 5")
}

func TestInsertOverwriteReplacesTheTableOrAPartition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sql, tag, left string }{
		{"insert overwrite facts select * from source", "2", "6 7"},
		{"insert overwrite table facts table source", "2", "6 7"},
		{"insert overwrite facts by name select 9 as id", "1", "9"},
		{"insert overwrite facts (region, id) values ('x', 8)", "1", "8"},
		{"insert overwrite facts select * from source where false", "0", "none"},
		{"insert overwrite facts select id + 1, day, region, amount from facts where id < 3", "2", "2 3"},
		{"with x as (select * from source) insert overwrite facts select * from x", "2", "6 7"},
		{"insert overwrite facts partition (region = 'n') select id, day, amount from source", "2", "3 4 6 7"},
		{"insert overwrite facts partition (region = 'n') select 9, null, 1 where false", "0", "3 4"},
		{"insert overwrite facts partition (region = null) select id, day, amount from source", "2", "1 2 3 5 6 7"},
		{"insert overwrite facts partition (day = '2024-02-01', region = 's') (id) values (9)", "1", "1 2 4 5 9"},
		{"insert overwrite facts partition (day = date_add(date '2024-01-31', 1)) by name select 9 as id", "1", "1 2 4 5 9"},
		{"insert overwrite facts partition (id = '3') select day, region, amount from source", "2", "1 2 3 3 4 5"},
		{"insert overwrite facts partition (region = 's', day) select id, day, amount from source", "2", "1 2 4 5 6 7"},
	} {
		s := facts(t)
		s.must("create schema rwproxy_compat", "create function rwproxy_compat.date_add(date, int) returns date language sql immutable as 'select $1 + $2'")
		s.insert("INSERT 0 "+c.tag, c.sql)
		if got := s.rows(ids)[0]; got != c.left {
			t.Errorf("%s\ngot %s, want %s", c.sql, got, c.left)
		}
	}
	s := facts(t)
	s.insert("INSERT 0 2", "insert overwrite facts partition (region = 'x') select id, day, amount from source")
	s.expect("select distinct region from facts where id > 5", "x")
}

func TestInsertOverwriteRefusesWhatIsNoPartition(t *testing.T) {
	t.Parallel()
	s := facts(t)
	for _, c := range []struct{ code, message, sql, at string }{
		{"42703", `column "key" of relation "facts" does not exist`, "insert overwrite facts partition (key = 1) select * from source", "key"},
		{"42703", `column "id" does not exist`, "insert overwrite facts partition (day = '2024-01-01', region = id) select id, amount from source", "id)"},
		{"22007", "invalid input syntax for type date", "insert overwrite facts partition (day = 'x') select id, region, amount from source", "'x'"},
		{"21S01", "more expressions", "insert overwrite facts partition (region = 'n') select * from source", "select"},
		{"42701", `column "region" specified more than once`, "insert overwrite facts partition (region = 'n') by name select 1 as id, 'x' as region", "region"},
		{"42703", `the query does not return partition column "region"`, "insert overwrite facts partition (region) by name select 1 as id", "region)"},
		{"22001", "value too long", "insert overwrite codes partition (code = 'abcd') values (1)", ""},
	} {
		s.must("create table if not exists codes (id int, code varchar(3))")
		if c.at == "" {
			s.fails(c.code, c.sql)
			continue
		}
		s.failsAt(c.code, c.message, c.sql, c.at)
	}
	s.expect(ids, "1 2 3 4 5")
}

func TestDynamicOverwriteReplacesThePartitionsThatGetARow(t *testing.T) {
	t.Parallel()
	const dynamic = "set spark.sql.sources.partitionOverwriteMode = dynamic"
	s := newDatabase(t).connect()
	fill := func(table string) {
		s.must("truncate "+table, "insert into "+table+" values (1, 'n', 1), (2, 'n', 2), (3, 's', 1), (4, null, 1), (5, null, null), (6, 'n', null)")
	}
	expect := func(table, want string) {
		t.Helper()
		s.expect("select coalesce(string_agg(id::text, ' ' order by id), 'none') from "+table, want)
	}
	s.must(
		"create table plain (id int, region text, n int)",
		"create table parts (id int, region text, n int) partition by list (region)",
		"create table parts_default partition of parts default",
		"create table hashed (id int, region text, n int) partition by hash (abs(n))",
		"create table hashed_0 partition of hashed for values with (modulus 1, remainder 0)",
		"create streaming table st (id int, region text, n int) partitioned by (region, n)",
		"create streaming table unpartitioned (id int, region text, n int)",
		dynamic)

	fill("parts")
	s.insert("INSERT 0 1", "insert overwrite parts values (9, 'n', 9)")
	expect("parts", "3 4 5 9")
	fill("parts")
	s.insert("INSERT 0 2", "insert overwrite parts values (9, null, 9), (10, 'x', 1)")
	expect("parts", "1 2 3 6 9 10")
	s.insert("INSERT 0 0", "insert overwrite parts select * from parts where false")
	expect("parts", "1 2 3 6 9 10")
	s.insert("INSERT 0 1", "insert overwrite parts partition (region = 'n') values (11, 1)")
	expect("parts", "3 9 10 11")

	fill("st")
	s.insert("INSERT 0 2", "insert overwrite st values (9, 'n', 1), (10, null, null)")
	expect("st", "2 3 4 6 9 10")
	s.insert("INSERT 0 1", "insert overwrite st partition (region = 'n') values (11, null)")
	expect("st", "2 3 4 9 10 11")
	s.insert("INSERT 0 1", "insert overwrite st partition (region = 'n', n) by name select 2 as n, 12 as id")
	expect("st", "3 4 9 10 11 12")
	s.insert("INSERT 0 1", "insert overwrite st partition (region = 'n', n = 1) (id) values (13)")
	expect("st", "3 4 10 11 12 13")

	for _, table := range []string{"plain", "unpartitioned"} {
		fill(table)
		s.insert("INSERT 0 1", "insert overwrite "+table+" values (9, 'n', 9)")
		expect(table, "9")
	}
	// REPLACE WHERE does not mind the setting.
	fill("parts")
	s.insert("INSERT 0 1", "insert into parts replace where region = 'n' values (9, 'n', 9)")
	expect("parts", "3 4 5 9")

	s.failsAt("0A000", "partitioned by an expression", "insert overwrite hashed values (1, 'n', 1)", "hashed")
	s.failsAt("42703", `does not return partition column "region"`, "insert overwrite parts by name select 1 as id", "select")
	s.must("set spark.sql.sources.partitionOverwriteMode = 'STATIC'")
	s.insert("INSERT 0 1", "insert overwrite parts values (7, 'n', 9)")
	expect("parts", "7")
	s.must("set spark.sql.sources.partitionOverwriteMode = sometimes")
	s.fails("22023", "insert overwrite parts values (7, 'n', 9)")
}
