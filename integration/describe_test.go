package integration

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgconn"
)

// columns are the names of a statement's result columns.
func (s *session) columns(sql string) string {
	s.t.Helper()
	result, err := s.run(sql)
	if err != nil {
		s.t.Fatalf("%s\n%s", sql, describe(err))
	}
	var names []string
	for _, f := range result.FieldDescriptions {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

func TestDescribeAnswersAsDatabricksDoes(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.createTotals()
		s.exec(`comment on column totals.day is 'the day of the order'`, `alter streaming table totals add schedule every 1 day`, `alter streaming table totals set tblproperties ('a' = 'b')`)
		for statement, want := range map[string]string{
			`describe totals`:                        "col_name, data_type, comment",
			`describe extended totals`:               "col_name, data_type, comment",
			`desc totals day`:                        "info_name, info_value",
			`show tblproperties totals`:              "key, value",
			`show create table totals`:               "createtab_stmt",
			`describe history totals`:                "version, timestamp, userId, userName, operation, operationParameters, job, notebook, clusterId, readVersion, isolationLevel, isBlindAppend, operationMetrics, userMetadata, engineInfo",
			`select * from event_log(table(totals))`: "id, sequence, origin, timestamp, message, level, maturity_level, error, details, event_type",
		} {
			if diff := cmp.Diff(want, s.columns(statement)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", statement, diff)
			}
		}
		s.want(`describe totals`, "day|date|the day of the order", "orders|bigint|NULL", "amount|numeric|NULL")
		s.want(`desc table totals day`, "col_name|day", "data_type|date", "comment|the day of the order")
		extended := s.rows(`describe table formatted public.totals`)
		for _, row := range []string{
			"# Detailed Table Information||", "Catalog|" + d.name + "|", "Database|public|", "Table|totals|", "Type|STREAMING_TABLE|",
			"# Refresh Information||", "Last Refresh Type|RECOMPUTED|", "Latest Refresh Status|COMPLETED|", "Refresh Schedule|EVERY 1 DAYS|",
		} {
			if !slices.Contains(extended, row) {
				t.Errorf("no row %q in\n%s", row, strings.Join(extended, "\n"))
			}
		}
	})
}

func TestTheEventLogOfOneTableIsRead(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`create streaming table other ` + totalsFlow)
		s.want(`select count(*) from event_log(table(totals)) where origin ->> 'dataset_name' <> 'public.totals'`, "0")
		s.want("with e as (select * from event_log ( table ( public.`Totals` ) ) as log where log.event_type = 'flow_progress') "+
			`select message from e order by sequence desc limit 1`, "Flow 'totals' has COMPLETED.")
		s.exec(`begin read only`)
		s.want(`select count(*) > 0 from event_log(table(other))`, "t")
		s.exec(`commit`)
		result := s.conn.ExecParams(t.Context(), `select count(*) from event_log(table(totals)) where level = $1`,
			[][]byte{[]byte("ERROR")}, nil, nil, []int16{1}).Read()
		if result.Err != nil || len(result.Rows) != 1 || string(result.Rows[0][0]) != "\x00\x00\x00\x00\x00\x00\x00\x00" {
			t.Errorf("with a parameter and in binary: %q, %v", result.Rows, result.Err)
		}
	})
}

func TestShowCreateTableCanBeRun(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals (
				day date not null primary key comment 'the ''day''', orders bigint default 0, amount numeric(12, 2) check (amount > 0))
			comment 'what people bought' tblproperties ('quality' = 'gold') cluster by auto schedule cron '0 0 9 * * ?' at time zone 'UTC'`,
			`create flow recent comment 'the last days' as insert into totals by name replace where day >= current_date() - 1 `+totalsQuery)
		before := append(s.rows(`describe totals`), s.rows(readTotals)...)
		script := s.value(`show create table totals`)
		s.exec(`drop table totals`)
		connect(t, d.url).exec(script) // two statements
		if diff := cmp.Diff(before, append(s.rows(`describe totals`), s.rows(readTotals)...)); diff != "" {
			t.Errorf("(-before +after)\n%s", diff)
		}
		if diff := cmp.Diff(script, s.value(`show create table totals`)); diff != "" {
			t.Errorf("(-before +after)\n%s", diff)
		}
		s.want(`select flow_name, schedule, properties ->> 'quality' from rwproxy.flows`, "recent|CRON '0 0 9 * * ?' AT TIME ZONE 'UTC'|gold")
	})
}

// What is no streaming table gets Postgres's own answer, in every field.
func TestOtherObjectsGetPostgresAnswer(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		direct := connect(t, d.direct)
		direct.protocol = s.protocol
		s.exec(`create table plain (a integer)`)
		for _, installed := range []bool{false, true} {
			if installed {
				s.exec(`create streaming table waiting`)
			}
			statements := []string{
				`describe plain`, `DESC  plain a`, `describe extended nowhere`, `describe`, `describe function f`,
				`show create table plain`, `show create table`, `show tblproperties plain`, `show tblproperties plain ('a')`,
				`describe /* ä */ plain as json`, `select * from event_log(table(select 1))`, `restore database d`,
				`create materialized view v (a b) as select 1`, `show tblproperties`,
			}
			if s.protocol == simple {
				statements = append(statements, `describe plain; select 1`, `select 'ä'; describe plain`)
			}
			for _, statement := range statements {
				_, want := direct.run(statement)
				_, got := s.run(statement)
				if diff := cmp.Diff(postgresError(want), postgresError(got), cmpopts.IgnoreUnexported(pgconn.PgError{})); diff != "" {
					t.Errorf("%s (-Postgres +rwproxy)\n%s", statement, diff)
				}
			}
		}
		s.exec(`create materialized view summary as select 1 as a`, `grant select on plain to public`)
		s.want(`select * from summary`, "1")
	})
}

func postgresError(err error) *pgconn.PgError {
	var e *pgconn.PgError
	errors.As(err, &e)
	return e
}

func TestDescribingNeedsTheRightToRead(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	s.createTotals()
	reader := s.role(d, "describe_reader")
	r := s.as(d, reader)
	for _, statement := range []string{`describe totals`, `show create table totals`, `show tblproperties totals`, `describe history totals`, `select * from event_log(table(totals))`} {
		r.fails("42501", statement)
	}
	s.exec(`grant select on totals to ` + reader)
	r.exec(`describe extended totals`, `show create table totals`, `show tblproperties totals`, `describe history totals`)
	r.fails("42501", `select * from event_log(table(totals))`)
	r.fails("42501", `alter streaming table totals set tblproperties ('a' = 'b')`)
}

// A driver learns the columns of a statement, and what is wrong with it, when it
// prepares it.
func TestStatementsThatDescribeArePreparedAsPostgresPreparesItsOwn(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, direct := connect(t, d.url), connect(t, d.direct)
	prepare := func(s *session, sql string) (*pgconn.StatementDescription, error) {
		return s.conn.Prepare(t.Context(), "", sql, nil)
	}
	s.exec(`create table plain (a integer)`)
	for _, installed := range []bool{false, true} {
		if installed {
			s.createTotals()
		}
		for _, statement := range []string{
			`describe plain`, `describe nowhere`, `show create table plain`, `show tblproperties nowhere`, `describe history plain`,
			`select * from event_log(table(plain)) where id = $1`, `select 'ä' from event_log(table(nowhere))`,
		} {
			_, want := prepare(direct, statement)
			_, got := prepare(s, statement)
			if diff := cmp.Diff(postgresError(want), postgresError(got), cmpopts.IgnoreUnexported(pgconn.PgError{})); diff != "" {
				t.Errorf("%s (-Postgres +rwproxy)\n%s", statement, diff)
			}
		}
	}
	for statement, want := range map[string]string{
		`describe totals nothing`:                                     "42703 nothing",
		`describe totals as json`:                                     "0A000 as json",
		`show tblproperties totals extended`:                          "42601 extended",
		`describe history totals limit $1`:                            "42601 $1",
		`select 1, nothing from event_log(table(totals))`:             "42703 nothing from event_log(table(totals))",
		`select * from event_log(table(totals)) where level = $1 $2`:  "42601 $2",
		`select id from event_log(table(totals)) where sequence > $1`: "",
		`describe extended totals`:                                    "",
	} {
		described, err := prepare(s, statement)
		got := ""
		if e := postgresError(err); e != nil {
			got = e.Code + " " + string([]rune(statement)[e.Position-1:])
		}
		if got != want {
			t.Errorf("%s: got %q, want %q: %v", statement, got, want, err)
		}
		if parameters := strings.Count(statement, "$"); err == nil && (len(described.Fields) == 0 || len(described.ParamOIDs) != parameters) {
			t.Errorf("%s: %+v", statement, described)
		}
	}
}
