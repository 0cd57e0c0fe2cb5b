package refresh_test

import (
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/rewrite"
)

func TestAnInsertInTheClientsTransactionIsPartOfIt(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		s := facts(t)
		s.must("create schema mine", "set search_path = mine, public", "begin isolation level "+level)
		s.joined = true
		s.must("set local search_path = public")
		s.insert("INSERT 0 2", "insert into facts replace where day >= '2024-02-01' select * from source")
		s.insert("INSERT 0 1", "insert into facts replace using (id) select id, day, region, 0 from facts where id = 6")
		s.insert("INSERT 0 1", "insert overwrite facts partition (region = 'n') (id) values (8)")
		s.expect("select current_setting('search_path')", "public")
		s.expect("select count(*) from pg_class where relpersistence = 't'", "0")
		s.expect(ids, "7 8")
		s.must("savepoint a")
		s.fails("44000", "insert into facts replace where id = 1 values (2, null, null, null)")
		s.must("rollback to a")
		s.expect(ids, "7 8")
		s.must("rollback")
		s.joined = false
		s.expect(ids, "1 2 3 4 5")
		s.expect("select current_setting('search_path')", "mine, public")
	}
}

func TestAnInsertLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	s := facts(t)
	s.must(`set search_path = "$user", public`)
	s.insert("INSERT 0 2", "insert into facts replace where day >= '2024-02-01' select * from source")
	s.fails("44000", "insert into facts replace where id = 1 values (2, null, null, null)")
	s.fails("42P01", "insert into facts replace where id = 1 select * from nowhere")
	s.expect("select current_setting('search_path')", `"$user", public`)
	s.expect("select count(*) from pg_class where relpersistence = 't'", "0")
	s.expect("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()", "0")
	if status := s.conn.PgConn().TxStatus(); status != 'I' {
		t.Errorf("the transaction status is %c", status)
	}
}

func TestAnInsertNeedsNoInstalledSchemaAndUsesItsFunctionsIfThereIsOne(t *testing.T) {
	t.Parallel()
	s := facts(t)
	const sql = "insert into facts replace where day >= date_add('2024-01-31', 1) select * from source"
	s.fails("42883", sql)
	s.expect("select count(*) from pg_namespace where nspname like 'rwproxy%'", "0")
	s.must("create streaming table other (id int)")
	s.insert("INSERT 0 2", sql)
	s.expect(ids, "1 2 5 6 7")
	s.must("set search_path = ''")
	s.insert("INSERT 0 2", strings.NewReplacer("facts", "public.facts", "source", "public.source").Replace(sql))
	s.expect("select current_setting('search_path')", `""`)
}

func TestAStreamingTableCanBeTheTarget(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.insert("INSERT 0 1", "insert into by_day replace where day = '2023-12-31' values ('2023-12-31', 9)")
	s.expect("select * from by_day order by day", "2023-12-31 9", "2024-01-01 5.00")
	s.insert("INSERT 0 1", "insert overwrite by_day values ('2024-01-01', 1)")
	s.must("refresh streaming table by_day")
	s.expect("select * from by_day", "2024-01-01 5.00")
}

func TestBackslashesAreEscapesWhereTheSessionSaysSo(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table t (v text)", `insert into t values ('it''s'), ('a\b')`, "set standard_conforming_strings = off", "set escape_string_warning = off")
	statement, err := rewrite.Parse(`insert into t replace where v = 'it\'s' and v <> 'x\\y' values ('it\'s'), ('it\'s')`, rewrite.Lexical{BackslashEscapes: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.engine.Run(t.Context(), s, statement); err != nil {
		t.Fatal(err)
	}
	s.expect("select v, count(*) from t group by v order by v", `a\b 1`, "it's 2")
}

func TestTwoInsertsOfTheSameRowsDoNotDoubleThem(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, other := d.connect(), d.connect()
	s.must("create table t (id int, day date)")
	const sql = "insert into t replace where day = '2024-01-01' values (1, '2024-01-01')"
	other.must("begin")
	other.joined = true
	other.must(sql)
	if err := d.whileWaiting(s, sql, func() { other.must("commit") }); err != nil {
		t.Fatal(err)
	}
	s.expect("select id from t", "1")

	// One that is not rwproxy's: the row it has deleted makes this one try again.
	other.must("begin", "delete from t", "insert into t values (2, '2024-01-01')")
	if err := d.whileWaiting(s, sql, func() { other.must("commit") }); err != nil {
		t.Fatal(err)
	}
	s.expect("select id from t", "1")
}

func TestASourceThatIsBeingReloadedIsNotReadAsEmpty(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, loader := d.connect(), d.connect()
	s.must("create table t (id int)", "insert into t values (1)", "create table source (id int)", "insert into source values (1)",
		"create view seen as select id from source")
	for _, sql := range []string{"insert overwrite t select id from source", "insert into t replace where id > 0 select * from seen"} {
		loader.must("begin", "truncate source", "insert into source values (2), (3)")
		if err := d.whileWaiting(s, sql, func() { loader.must("commit") }); err != nil {
			t.Fatal(err)
		}
		s.expect("select id from t order by id", "2", "3")
	}
	// The lock comes first, so the load waits while the rows are read.
	s.must("begin isolation level repeatable read")
	loader.must("set lock_timeout = '10ms'")
	s.joined = true
	s.must("insert overwrite t select id from source")
	if err := loader.run("truncate source"); err == nil {
		t.Error("the source could be truncated while the transaction that reads it is open")
	}
	s.must("commit")
}

func TestAnInsertHasTheRightsOfItsRole(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	role := "writer_" + strings.TrimPrefix(s.rows("select 'r' || pg_backend_pid()")[0], "r")
	s.must("create role "+role, "create table t (id int, day date)", "insert into t values (1, '2024-01-01')",
		"create table source (id int, day date, secret text)", "insert into source values (2, '2024-01-01', 'x')",
		"grant insert, select on t to "+role, "grant select (id, day) on source to "+role)
	defer s.must("reset role", "drop owned by "+role, "drop role "+role)
	s.must("set role " + role)
	const sql = "insert into t replace where day = '2024-01-01' select id, day from source"
	s.fails("42501", sql)
	s.must("reset role", "grant delete on t to "+role, "set role "+role)
	s.insert("INSERT 0 1", sql)
	s.expect("select id from t", "2")
	s.fails("42501", "insert overwrite t select id, day from source where secret is null")

	s.must("reset role", "do $$ begin execute format('revoke temporary on database %I from public', current_database()); end $$", "set role "+role)
	if d := s.fails("42501", sql); !strings.Contains(d.Hint, "TEMPORARY") || d.Position != 0 {
		t.Errorf("got hint %q at %d", d.Hint, d.Position)
	}
	s.insert("INSERT 0 1", "insert into table t values (3, null)")
	s.expect("select id from t order by id", "2", "3")
}

func TestAReadOnlySessionWritesNothing(t *testing.T) {
	t.Parallel()
	s := facts(t)
	s.must("set default_transaction_read_only = on")
	if d := s.fails("25006", "insert overwrite facts select * from source"); d.Message != "cannot execute INSERT in a read-only transaction" {
		t.Errorf("got %q", d.Message)
	}
	s.expect(ids, "1 2 3 4 5")
}

func TestARowWriterInFrontDoesItsWorkOnce(t *testing.T) {
	t.Parallel()
	s := facts(t)
	s.insert("INSERT 0 2", `with gone as (delete from source returning *)
		insert into facts replace where day >= '2024-02-01' select * from gone`)
	s.expect(ids, "1 2 5 6 7")
	s.expect("select count(*) from source", "0")
	s.must("create sequence n")
	s.insert("INSERT 0 1", "insert into facts by name replace using (id) select nextval('n') as id")
	s.expect("select last_value from n", "1")
}

func TestAViewCanBeTheTarget(t *testing.T) {
	t.Parallel()
	s := facts(t)
	s.must("create view north as select id, day from facts where region = 'n'")
	s.insert("INSERT 0 1", "insert into north replace where day = '2024-01-31' values (9, '2024-01-31')")
	s.expect(ids, "1 3 4 5 9")
}

func TestForeignKeysHold(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table parent (id int primary key)", "insert into parent values (1), (2)",
		"create table child (id int references parent deferrable)", "insert into child values (1)")
	s.fails("23503", "insert overwrite parent values (1), (3)")
	s.must("set constraints all immediate", "alter table child alter constraint child_id_fkey deferrable initially deferred")
	s.insert("INSERT 0 2", "insert overwrite parent values (1), (3)")
	s.fails("23503", "insert overwrite parent values (3)")
	s.expect("select id from parent order by id", "1", "3")
}

func TestATriggerThatKeepsRowsDoesNotDoubleThem(t *testing.T) {
	t.Parallel()
	s := facts(t)
	s.must("create function keep() returns trigger language plpgsql as 'begin if old.id = 3 then return null; end if; return old; end'",
		"create trigger keep before delete on facts for each row execute function keep()")
	for _, sql := range []string{
		"insert into facts replace where day >= '2024-02-01' select * from source",
		"insert into facts replace using (day) select * from source",
		"insert into facts t replace on t.day = s.day (select * from source) s",
		"insert overwrite facts select * from source",
		"insert overwrite facts partition (region = 's') select id, day, amount from source",
	} {
		s.fails("55000", sql)
	}
	s.insert("INSERT 0 2", "insert into facts replace where day = '2024-02-02' select id, date '2024-02-02', region, amount from source")
	s.expect(ids, "1 2 3 5 6 7")
}

func TestTheTimeoutOfAStatementIsThatOfTheWhole(t *testing.T) {
	t.Parallel()
	s := facts(t)
	s.must("set statement_timeout = '300ms'")
	s.fails("57014", "insert into facts replace where id > 0 and pg_sleep(0.2) is not null select * from source")
	s.expect("show statement_timeout", "300ms")
	s.expect(ids, "1 2 3 4 5")
}

func TestFunctionsOfOthersAreNotCalledByOurStatements(t *testing.T) {
	t.Parallel()
	s := facts(t)
	s.must("create schema trap",
		"create function trap.format_type(oid, int) returns text language plpgsql as 'begin raise ''trapped''; end'",
		"create function trap.left(text, int) returns text language plpgsql as 'begin raise ''trapped''; end'",
		"create function trap.to_json(anyelement) returns json language plpgsql as 'begin raise ''trapped''; end'",
		"set search_path = trap, pg_catalog, public")
	s.insert("INSERT 0 2", "insert into facts replace where day >= '2024-02-01' select * from source")
	s.fails("44000", "insert into facts replace where day >= '2024-02-02' select * from source")
}
