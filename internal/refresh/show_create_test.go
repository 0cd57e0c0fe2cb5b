package refresh_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/rewrite"
)

// catalogOf is everything SHOW CREATE TABLE has to carry over.
func (s *session) catalogOf(table string) []string {
	s.t.Helper()
	all := s.shown("describe " + table)
	all = append(all, s.shown("show tblproperties "+table)...)
	for _, query := range []string{
		`select attname, attnotnull, attidentity, attgenerated, pg_get_expr(adbin, adrelid), attcollation::regcollation
		   from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
		  where attrelid = $$` + table + `$$::regclass and attnum > 0 and not attisdropped order by attnum`,
		`select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = $$` + table + `$$::regclass order by 1`,
		`select obj_description($$` + table + `$$::regclass, 'pg_class')`,
		`select partition_by, cluster_by, schedule, flow_name, flow_comment, predicate, query from rwproxy.streaming_tables
		  where format('%I.%I', target_schema, target_table)::regclass = $$` + table + `$$::regclass`,
		`select t::text from ` + table + ` t order by 1`,
	} {
		all = append(all, s.rows(query)...)
	}
	return all
}

// recreate drops a table, runs what SHOW CREATE TABLE said of it, and checks
// that it is what it was.
func (s *session) recreate(table string) string {
	s.t.Helper()
	before := s.catalogOf(table)
	created := s.shown("show create table " + table)
	s.must("drop table " + table)
	for _, statement := range rewrite.Split(created[0], rewrite.Lexical{}) {
		s.must(statement.Text)
	}
	if diff := cmp.Diff(before, s.catalogOf(table)); diff != "" {
		s.t.Errorf("%s\n(-before +after)\n%s", created[0], diff)
	}
	if diff := cmp.Diff(created, s.shown("show create table "+table)); diff != "" {
		s.t.Errorf("the second SHOW CREATE TABLE differs\n%s", diff)
	}
	return created[0]
}

func TestShowCreateTableRecreatesTheTable(t *testing.T) {
	t.Parallel()
	for name, create := range map[string][]string{
		"nothing but a name": {"create streaming table dst"},
		"columns of the query": {`create streaming table dst flow replace where day > '2024-01-01' by name
			select day, sum(n) as "Sum", count(*)::numeric(12, 2) as c from src group by day`},
		"a flow of its own name": {
			"create streaming table dst (day date, n int)",
			`create flow "Recent" comment 'it''s new' as insert into dst by name replace where day is not null select day, n from src -- end`,
		},
		"every clause": {`create streaming table dst (
				day date not null comment 'the day', n bigint default 7 check (n > 0), "Odd Name" text collate "C" default 'COMMENT',
				unique (n, day), constraint "Key" primary key (day), at timestamp(3) with time zone, list int[])
			cluster by (day, "Odd Name") trigger on update at most every interval 2 hours
			tblproperties ('it''s' = 'a\b', 'pipelines.reset.allowed' = false, 'empty' = '')
			comment E'line\nand ''quote'' \\'
			flow replace where day >= /* since */ date '2024-01-01' by name select s.day, s.n from src s -- the end`},
		"partitions": {`create streaming table dst (day date, n int) partitioned by (day, n) schedule cron '0 0 9 * * ?'
			flow replace where s.day is not null by name select s.day, s.n from src s`},
		"what was done to it later": {
			"create streaming table dst flow replace where day is not null by name select day, n from src",
			"alter table dst add column note text default 'x'", "alter table dst add column id int generated always as identity",
			"alter table dst add column twice int generated always as (n * 2) stored", "comment on column dst.twice is '2n'",
			"alter table dst add constraint positive check (n > 0)", "comment on table dst is 'later'", "comment on column dst.n is 'a number'",
		},
		"the dialect of Databricks": {
			`create streaming table dst (day timestamp, n numeric, m decimal(4, 1), r real)
			tblproperties ('rwproxy.dialect' = 'databricks') flow replace where n >= 1 by name select cast(day as timestamp) as day, n / 2 as m, n from src`,
			"alter table dst add column bare numeric, add column list numeric[]",
		},
		"a reference": {
			"create table parent (n int primary key)", "insert into parent values (1), (2)",
			"create streaming table dst (day date, n int references parent) flow replace where true by name select day, n from src",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDatabase(t).connect()
			s.must("create table src (day date, n int)", "insert into src values ('2024-01-02', 1), ('2024-01-03', 2)")
			s.must(create...)
			s.recreate("dst")
		})
	}
}

func TestShowCreateTableQuotesNames(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(`create schema "Odd; schema"`, "create table src (day date)",
		`create streaming table "Odd; schema"."a ""table""" flow replace where "select" is not null by name select day as "select" from src`)
	s.recreate(`"Odd; schema"."a ""table"""`)
}

func TestShowCreateTableNamesTheSettingsThatDiffer(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	s.must("create schema own", `create schema "x`+"\n"+`; drop table src; --"`, `set search_path = own, "x`+"\n"+`; drop table src; --"`, "set timezone = 'Asia/Tokyo'",
		"create table src (day date)", "create streaming table dst flow replace where day is not null by name select day from src")
	if got := s.shown("show create table dst")[0]; strings.Contains(got, "--") {
		t.Errorf("its own author is told of settings: %s", got)
	}
	other := d.connect()
	first, rest, _ := strings.Cut(other.shown("show create table own.dst")[0], "\n")
	if want := `-- written under TimeZone = "Asia/Tokyo", search_path = "own, \"x\n; drop table src; --\""`; !strings.Contains(first, `TimeZone = "Asia/Tokyo"`) ||
		!strings.Contains(first, `search_path = "own, \"x\n; drop table src; --\""`) {
		t.Errorf("got %s, want %s", first, want)
	}
	if !strings.HasPrefix(rest, "CREATE STREAMING TABLE own.dst (") {
		t.Errorf("got %s", rest)
	}
}

func TestADefinitionThatIsReplacedLosesWhatIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (day date)",
		`create streaming table dst (day date comment 'c') comment 'x' cluster by (day) schedule every 1 day tblproperties ('a' = 'b')
		 flow replace where true by name select day from src`,
		"comment on table dst is 'native'", "comment on column dst.day is 'native'",
		"create or refresh streaming table dst flow replace where true by name select day from src")
	s.show("show create table dst", "CREATE STREAMING TABLE public.dst (\n  day date\n)\nFLOW REPLACE WHERE true\nBY NAME\nselect day from src")
}

func TestShowCreateTableNamesTheDialectThatDiffers(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (day date)", "create streaming table dst flow replace where true by name select day from src",
		"set rwproxy.dialect = 'databricks'",
		"create streaming table other flow replace where true by name select day from src")
	if got := s.shown("show create table dst")[0]; !strings.HasPrefix(got, `-- written under rwproxy.dialect = "postgres"`) {
		t.Errorf("got %s", got)
	}
	if got := s.shown("show create table other")[0]; strings.HasPrefix(got, "--") {
		t.Errorf("got %s", got)
	}
	s.must("reset rwproxy.dialect")
	if got := s.shown("show create table other")[0]; !strings.HasPrefix(got, `-- written under rwproxy.dialect = "databricks"`) {
		t.Errorf("got %s", got)
	}
}
