package integration

import (
	"slices"
	"strings"
	"testing"
)

func TestACreateThatIsRolledBackLeavesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `begin`, createTotals)
		s.want(readTotals, afterCreate...)
		s.want(`select count(*) from rwproxy.flows`, "1")
		s.exec(`rollback`)
		if left := s.flowObjects("totals"); left != "" {
			t.Errorf("left behind: %s", left)
		}
		s.exec(createTotals)
		s.want(readTotals, afterCreate...)
	})
}

func TestARefreshThatIsRolledBackChangesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`insert into orders values (4, current_date, 1)`, `begin`, `refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
		s.exec(`rollback`)
		s.want(readTotals, afterCreate...)
		s.want(`select count(*) from rwproxy.refreshes where state = 'COMPLETED'`, "1")
		s.exec(`refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
	})
}

func TestARefreshMayBeUndoneToASavepoint(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`begin`, `insert into orders values (4, current_date, 1)`, `savepoint before`, `refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
		s.exec(`rollback to before`)
		s.want(readTotals, afterCreate...)
		s.exec(`commit`)
		s.want(readTotals, afterCreate...)
		s.want(`select count(*) from orders`, "4")
	})
}

func TestAFailedRefreshAbortsItsTransactionAndASavepointSavesIt(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`begin`, `insert into orders values (4, current_date, 1)`, `savepoint before`)
		s.fails("42703", `refresh streaming table totals where missing = 1`)
		s.fails("25P02", `select 1`)
		s.fails("25P02", `refresh streaming table totals`)
		s.exec(`rollback to savepoint before`, `refresh streaming table totals`, `commit`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
	})
}

func TestTwoRefreshesInATransactionHappenTogether(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.createTotals()
		s.exec(`create streaming table counts flow replace where day >= current_date - 1 by name select day, count(*) as n from orders group by day`,
			`insert into orders values (4, current_date, 1)`, `begin`, `refresh streaming table totals`, `refresh streaming table counts`)
		other := connect(t, d.url)
		other.want(`select t.orders, c.n from totals t, counts c where t.day = current_date and c.day = current_date`, "1|1")
		s.exec(`commit`)
		other.want(`select t.orders, c.n from totals t, counts c where t.day = current_date and c.day = current_date`, "2|2")
	})
}

func TestAFlowSeesWhatItsTransactionWrote(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`drop table totals, orders`, `begin isolation level serializable`)
		s.createTotals()
		s.exec(`delete from orders where id = 2`, `refresh streaming table totals`, `commit`)
		s.want(readTotals, "0|1|30.00")
	})
}

func TestAReadOnlyTransactionRefusesARefresh(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`insert into orders values (4, current_date, 1)`, `begin read only`)
		if err := s.fails("25006", `refresh streaming table totals`); err.Message != "cannot execute REFRESH STREAMING TABLE in a read-only transaction" {
			t.Error(err.Message)
		}
		s.exec(`rollback`, `set default_transaction_read_only = on`)
		s.fails("25006", `refresh streaming table totals`)
		s.exec(`set default_transaction_read_only = off`)
		s.want(readTotals, afterCreate...)
	})
}

func TestAFlowKeepsTheTimeZoneItWasCreatedIn(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table events (at timestamptz)`, `insert into events values ('2024-01-01 23:30+00')`, `set timezone = 'UTC'`,
			`create streaming table days flow replace where day >= '2024-01-01' by name select at::date as day, to_char(at, 'HH24:MI') as time from events`)
		s.want(`select * from days`, "2024-01-01|23:30")
		// In Tokyo it is the next day: the flow must not notice.
		s.exec(`set timezone = 'Asia/Tokyo'`, `set datestyle = 'German'`, `set search_path = pg_catalog`, `refresh streaming table public.days`)
		s.want(`select day = '2024-01-01'::date, time from public.days`, "t|23:30")
	})
}

func TestASessionsSettingsArePutBack(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`set timezone = 'UTC'`)
		s.createTotals()
		s.exec(`create schema own`, `set timezone = 'Asia/Tokyo'`, `set datestyle = 'SQL, DMY'`, `set intervalstyle = 'iso_8601'`,
			`set search_path = own, public`, `set application_name = 'mine'`)
		settings := `select name, setting from pg_settings where name in
			('TimeZone', 'DateStyle', 'IntervalStyle', 'search_path', 'application_name', 'transaction_isolation',
			'default_transaction_isolation', 'plan_cache_mode', 'role', 'session_authorization', 'lock_timeout') order by name`
		before := s.rows(settings)
		s.exec(`refresh streaming table totals`)
		s.want(settings, before...)
		s.exec(`begin`, `set local lock_timeout = '7s'`)
		inside := s.rows(settings)
		s.exec(`refresh streaming table totals`, `create streaming table own.other `+totalsFlow)
		s.want(settings, inside...)
		s.exec(`savepoint before`)
		s.fails("42703", `refresh streaming table totals where missing`)
		s.exec(`rollback to before`)
		s.want(settings, inside...)
		s.exec(`commit`)
		s.want(settings, before...)
		s.fails("42703", `refresh streaming table totals where missing`)
		s.want(settings, before...)
	})
}

func TestASessionKeepsItsOwnObjectsAndLocks(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`create temporary table mine (a integer)`, `prepare p as select 7`, `declare c cursor with hold for values (1), (2)`,
			`select pg_advisory_lock(5)`, `listen channel`, `refresh streaming table totals`)
		s.exec(`insert into mine values (1)`)
		s.want(`execute p`, "7")
		s.want(`fetch all from c`, "1", "2")
		s.want(`select pg_advisory_unlock(5)`, "t")
		s.want(`select pg_listening_channels()`, "channel")
		s.want(`select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'`, "0")
		s.want(`select count(*) from pg_prepared_statements where name <> 'p'`, "0")
		s.exec(`discard all`, `refresh streaming table totals`)
	})
}

func TestAStatementIsPreparedOnceAndRunOften(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.createTotals()
	description, err := s.conn.Prepare(t.Context(), "again", `refresh streaming table totals`, nil)
	if err != nil {
		t.Fatal(describe(err))
	}
	if len(description.Fields) != 0 || len(description.ParamOIDs) != 0 {
		t.Errorf("described as %v, %v", description.Fields, description.ParamOIDs)
	}
	for i := range 3 {
		s.exec(`update orders set amount = amount + 1 where id = 3`)
		result := s.conn.ExecPrepared(t.Context(), "again", nil, nil, nil).Read()
		if result.Err != nil {
			t.Fatal(describe(result.Err))
		}
		if tag := result.CommandTag.String(); tag != "REFRESH STREAMING TABLE" {
			t.Errorf("command tag %q", tag)
		}
		want := []string{"31.00", "32.00", "33.00"}[i]
		s.want(`select amount from totals where day = current_date`, want)
	}
	s.exec(`deallocate again`)
	s.fails("26000", `execute again`)
}

func TestARefreshTakesParametersFromItsDriver(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	s.createTotals()
	s.exec(`update orders set amount = amount + 1`)
	description, err := s.conn.Prepare(t.Context(), "of_a_day", `refresh streaming table totals where day = current_date - $1::int and orders < $2`, nil)
	if err != nil {
		t.Fatal(describe(err))
	}
	const int4, int8 = 23, 20
	if len(description.Fields) != 0 || !slices.Equal(description.ParamOIDs, []uint32{int4, int8}) {
		t.Errorf("described as %v, %v", description.Fields, description.ParamOIDs)
	}
	binary := [][]byte{{0, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 9}}
	for _, run := range []struct {
		values  [][]byte
		formats []int16
		want    string
	}{
		{binary, []int16{1}, "-1|1|21.00 0|1|30.00"},
		{[][]byte{[]byte("0"), []byte("9")}, nil, "-1|1|21.00 0|1|31.00"},
	} {
		result := s.conn.ExecPrepared(t.Context(), "of_a_day", run.values, run.formats, nil).Read()
		if result.Err != nil || result.CommandTag.String() != "REFRESH STREAMING TABLE" {
			t.Fatalf("%s, %s", result.CommandTag, describe(result.Err))
		}
		if got := strings.Join(s.rows(readTotals), " "); got != run.want {
			t.Errorf("got %s, want %s", got, run.want)
		}
	}
	s.want(`select count(*) from rwproxy.refreshes where window_predicate like '%<%9%'`, "2")
}

func TestAnInsertTakesParametersFromItsDriver(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.createTotals()
	s.exec(`create table plain (day date, note text, tags text[])`, `insert into plain values ('2024-01-31', 'old'), ('2023-12-31', 'kept')`)
	// 2024-01-01 in days since 2000-01-01, PostgreSQL's binary form of a date.
	day := []byte{0, 0, 0x22, 0x3e}
	for sql, run := range map[string]struct {
		values  [][]byte
		formats []int16
		tag     string
		want    string
	}{
		`insert into plain replace where day >= $1 values ($1, $2, $3)`: {
			[][]byte{day, []byte(`it's \ new`), []byte(`{a,"b c"}`)}, []int16{1, 0, 0}, "INSERT 0 1", `2023-12-31|kept|NULL 2024-01-01|it's \ new|{a,"b c"}`,
		},
		`insert into plain by name replace using (day) select $1::date as day, $2 as note`: {
			[][]byte{[]byte("2023-12-31"), nil}, nil, "INSERT 0 1", `2023-12-31|NULL|NULL 2024-01-31|old|NULL`,
		},
	} {
		s.exec(`begin`)
		result := s.conn.ExecParams(t.Context(), sql, run.values, nil, run.formats, nil).Read()
		if result.Err != nil || result.CommandTag.String() != run.tag {
			t.Errorf("%s\n%s, %s", sql, result.CommandTag, describe(result.Err))
		}
		if got := strings.Join(s.rows(`select * from plain order by day`), " "); result.Err == nil && got != run.want {
			t.Errorf("%s\ngot %s, want %s", sql, got, run.want)
		}
		s.exec(`rollback`)
	}
}

func TestAPipelineRunsOurStatementsInItsTransaction(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.createTotals()
	for _, last := range []struct{ statement, want string }{
		{`select 1 / 0`, strings.Join(afterCreate, " ")},
		{`select 1`, "-1|1|20.00 0|2|31.00"},
	} {
		pipeline := s.conn.StartPipeline(t.Context())
		for _, sql := range []string{`insert into orders values (4, current_date, 1)`, `refresh streaming table totals`, last.statement} {
			pipeline.SendQueryParams(sql, nil, nil, nil, nil)
		}
		if err := pipeline.Sync(); err != nil {
			t.Fatal(err)
		}
		// The error of the failing round is seen in what the tables hold.
		_ = pipeline.Close()
		if got := strings.Join(s.rows(readTotals), " "); got != last.want {
			t.Errorf("after a pipeline that ends in %s: %s", last.statement, got)
		}
	}
}
