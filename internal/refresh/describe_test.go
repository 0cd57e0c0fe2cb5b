package refresh_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show checks the rows of a statement of ours.
func (s *session) show(sql string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.shown(sql)); diff != "" {
		s.t.Errorf("%s (-want +got)\n%s", sql, diff)
	}
}

func TestDescribeShowsTheColumnsWithPostgresComments(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (day date, n int)",
		`create streaming table dst (day date comment 'typed', "N" bigint, note varchar(7)) partitioned by (day)
		 flow replace where day is not null by name select day, n as "N" from src`,
		"comment on column dst.day is 'set later'", "comment on column dst.note is 'a note'")
	want := []string{
		"day|date|set later", "N|bigint|null", "note|character varying(7)|a note",
		"# Partition Information||", "# col_name|data_type|comment", "day|date|set later",
	}
	s.show("describe dst", want...)
	s.show("DESC TABLE public.dst", want...)
	s.show("describe dst \"N\"", "col_name|N", "data_type|bigint", "comment|NULL")
	s.show("describe extended dst note", "col_name|note", "data_type|character varying(7)", "comment|a note")
	if d := s.fails("42703", "describe dst n"); d.Position != 14 {
		t.Errorf("position %d", d.Position)
	}
}

func TestDescribeExtendedShowsDefinitionAndRefreshes(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("set timezone = 'UTC'", "create table src (day date, n int)",
		`create streaming table dst comment 'first' tblproperties ('b' = '2', 'a' = '1')
		 flow replace where day > '2024-01-01' by name select day from src`,
		"comment on table dst is 'second'", "alter streaming table dst add schedule cron '0 0 9 * * ?'")
	s.fails("22012", "refresh table dst where 1 / (extract(day from day)::int - extract(day from day)::int) = 1 or 1 / 0 = 1")
	rows := s.shown("describe formatted dst")
	stable := slices.DeleteFunc(slices.Clone(rows), func(r string) bool {
		return strings.HasPrefix(r, "Created Time|") || strings.HasPrefix(r, "Last Refreshed|") || strings.HasPrefix(r, "Latest Refresh|")
	})
	want := []string{
		"day|date|null", "||",
		"# Detailed Table Information||", "Catalog|" + s.Database() + "|", "Database|public|", "Table|dst|", "Owner|" + s.User() + "|",
		"Type|STREAMING_TABLE|", "Comment|second|", "Table Properties|[a=1,b=2]|", "||",
		"# Flow Information||", "Flow Name|dst|", "Replace Where|day > '2024-01-01'|", "Query|select day from src|", "||",
		"# Refresh Information||", "Last Refresh Type|RECOMPUTED|", "Latest Refresh Status|FAILED|",
		"Refresh Schedule|CRON '0 0 9 * * ?' AT TIME ZONE 'UTC'|",
	}
	if diff := cmp.Diff(want, stable); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(rows)-len(stable) != 3 {
		t.Errorf("the times or the id are missing: %q", rows)
	}
	id := s.rows("select refresh_id from rwproxy.refreshes where state = 'FAILED'")[0]
	if !slices.Contains(rows, "Latest Refresh|"+id+"|") {
		t.Errorf("the latest refresh is not %s: %q", id, rows)
	}
}

func TestTheScheduleOfATableWithoutOneIsManual(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	for schedule, want := range map[string]string{
		"":                               "MANUAL",
		"schedule every 1 day":           "EVERY 1 DAYS",
		"schedule every 3 hours":         "EVERY 3 HOURS",
		"schedule refresh every 2 weeks": "EVERY 2 WEEKS",
		"schedule cron '0 0 9 * * ?' at time zone 'Etc/GMT-3'": "CRON '0 0 9 * * ?' AT TIME ZONE 'Etc/GMT-3'",
		"trigger on update": "TRIGGER ON UPDATE",
		"trigger on update at most every interval 15 minutes": "TRIGGER ON UPDATE AT MOST EVERY INTERVAL 900 SECOND",
	} {
		s.must("drop table if exists dst", "create streaming table dst "+schedule)
		rows := s.shown("describe extended dst")
		if got := rows[len(rows)-1]; got != "Refresh Schedule|"+want+"|" {
			t.Errorf("%q: got %q", schedule, got)
		}
	}
}

func TestShowTblpropertiesShowsAllOrOne(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create streaming table dst tblproperties ('quality' = 'gold', pipelines.reset.allowed = false)")
	s.show("show tblproperties dst", "pipelines.reset.allowed|false", "quality|gold")
	s.show("show tblproperties dst ('quality')", "quality|gold")
	s.show("show tblproperties dst (Pipelines.Reset.Allowed)", "pipelines.reset.allowed|false")
	s.show("show tblproperties dst ('none')", "none|Table public.dst does not have property: none")
	s.must("create or refresh streaming table dst")
	s.show("show tblproperties dst")
}

func TestTheEventLogIsThatOfOneTable(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("create streaming table other flow replace where day is not null by name select day from sales")
	const about = "select distinct origin ->> 'dataset_name' from rwproxy.event_log order by 1"
	s.expect(about, "public.by_day", "public.other")
	s.must("create table copy as select l.* from event_log ( table ( public.other ) ) l")
	s.expect("select distinct origin ->> 'dataset_name' from copy", "public.other")
	s.expect("select (select count(*) from copy) = (select count(*) from rwproxy.event_log where origin ->> 'dataset_name' = 'public.other')", "t")
	d := s.fails("42703", "select massage from event_log(table(by_day)) where true")
	if d.Position != 8 {
		t.Errorf("position %d, want 8", d.Position)
	}
	if d = s.fails("42703", "select message from event_log(table(by_day)) where nope"); d.Position != 52 {
		t.Errorf("position %d, want 52", d.Position)
	}
}

func TestHistoryHasAVersionForEachCompletedRefresh(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("refresh streaming table by_day where day = '2024-01-01'", "describe history by_day", "desc history by_day limit 1")
	s.expect(`select version, "userName", operation, "operationParameters" ->> 'kind', "operationMetrics" ->> 'numDeletedRows', "readVersion"
		from rwproxy.table_history('by_day')`, "1 postgres REFRESH override 1 0", "0 postgres REFRESH window 0 null")
}

func TestWhatIsNoStreamingTableIsPostgresToRefuse(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	s.must("create table plain (a int)", "create view v as select 1 as a")
	for range 2 { // before and after the schema is installed
		for _, sql := range []string{
			"describe plain", "describe extended v", "desc nowhere", "describe elsewhere.public.plain", "describe plain as json",
			"describe history plain", "show create table plain", "show tblproperties plain ('a')", "select * from event_log(table(plain))",
			"describe plain a b c",
		} {
			_, err := s.Exec(t.Context(), sql)
			if want, got := err, s.run(sql); got == nil || got.Error() != want.Error() {
				t.Errorf("%s: got %v, Postgres says %v", sql, got, want)
			}
		}
		s.must("create streaming table dst")
		s.must("drop table dst")
	}
	s.must("create streaming table dst")
	s.fails("0A000", "describe dst as json")
	s.fails("42601", "describe dst a b c")
	s.fails("42601", "show create table dst more")
	s.fails("42601", "show tblproperties dst (")
	s.fails("42601", "describe history dst limit x")
}

func TestDescribingWritesNothing(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("begin read only")
	s.joined = true
	s.must("describe extended by_day", "show create table by_day", "show tblproperties by_day",
		"select * from event_log(table(by_day))", "describe history by_day", "commit")
}
