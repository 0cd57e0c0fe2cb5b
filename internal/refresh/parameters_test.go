package refresh_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// parameterTypes prepares a statement, in a transaction as the wire does.
func (s *session) parameterTypes(sql string, declared ...string) ([]uint32, error) {
	s.t.Helper()
	statement, err := rewrite.Parse(sql, rewrite.Lexical{})
	if err != nil || statement == nil {
		s.t.Fatalf("%s: %v, %v", sql, statement, err)
	}
	s.must("begin")
	s.joined = true
	types, err := s.engine.Prepare(s.t.Context(), s, statement, declared)
	s.joined = false
	s.must("rollback")
	return types, err
}

func TestTheTypesOfParametersAreThoseThatPostgresInfers(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("create schema own", "create function own.first_day() returns date language sql as 'select date ''2024-01-01'''",
		"set search_path = public, own",
		"create streaming table by_own flow replace where day >= own.first_day() by name select day, amount from sales",
		"reset search_path")
	for sql, want := range map[string]struct {
		declared []string
		types    []uint32
	}{
		"refresh streaming table by_day where day >= $1":                                                {nil, []uint32{1082}},
		"refresh table by_day where day between $2 and $1 and amount > $3":                              {nil, []uint32{1082, 1082, 1700}},
		"refresh streaming table by_day where by_day.day = any ($1)":                                    {nil, []uint32{1182}},
		"refresh streaming table by_day where day >= $1 -- declared":                                    {[]string{"pg_catalog.timestamptz"}, []uint32{1184}},
		"refresh streaming table by_day where day >= $1 and amount > $2 -- in part":                     {[]string{"", "pg_catalog.int4"}, []uint32{1082, 23}},
		"refresh streaming table by_day where `day` == $1":                                              {nil, []uint32{1082}},
		"refresh streaming table by_own where day >= first_day() + 1 * $1":                              {nil, []uint32{23}},
		"refresh streaming table by_day where day >= add_months(current_date(), $1)":                    {nil, []uint32{23}},
		"refresh streaming table by_day where day >= $1 and 'what $9 costs' = 'what''s'":                {nil, []uint32{1082}},
		"insert into sales replace where day >= $1 select day, region, $2 from sales":                   {nil, []uint32{1082, 1700}},
		"insert into sales replace using (day) values ($1, $2, $3)":                                     {nil, []uint32{1082, 25, 1700}},
		"insert into sales by name replace where day = $1 select $1 as day, $2 as amount":               {[]string{"pg_catalog.timestamptz", "pg_catalog.int4"}, []uint32{1184, 23}},
		"insert overwrite sales select day, region, amount from sales where day < add_months(day, $1)":  {nil, []uint32{23}},
		"insert into sales replace on (sales.day = s.day and s.amount > $1) (select * from sales) as s": {nil, []uint32{1700}},
	} {
		got, err := s.parameterTypes(sql, want.declared...)
		if err != nil || !slices.Equal(got, want.types) {
			t.Errorf("%s\ngot %v, %v, want %v", sql, got, err, want.types)
		}
	}
	s.expect("select current_setting('search_path'), count(*) from rwproxy.refreshes where kind = 'override'", `"$user", public 0`)
}

func TestFaultsOfAParameterStandInTheUsersText(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	for sql, want := range map[string]struct{ code, at string }{
		"refresh streaming table by_day where nope > 'é' and day = $1":                                     {"42703", "nope"},
		"refresh streaming table by_day where `day` = $1 and nope":                                         {"42703", "nope"},
		"refresh streaming table by_day where day = $1 and sum(amount) > $2":                               {"42903", "sum"},
		"refresh streaming table by_day where day = $70000":                                                {"42P02", "$70000"},
		"refresh streaming table by_day where day in (select $1)":                                          {"0AKDC", "select"},
		"refresh streaming table nobody where day = $1":                                                    {"42P01", "nobody"},
		"refresh streaming table sales where day = $1":                                                     {"42601", "day"},
		"insert into nobody replace where day = $1 select * from sales":                                    {"42P01", "nobody"},
		"insert into sales replace where nope > 'é' and day = $1 select * from sales":                      {"42703", "nope"},
		"insert into sales replace where day = $1 select day, region, nope from sales where $2":            {"42703", "nope"},
		"insert into sales (day, nope) replace where day = $1 select day, $2 from sales":                   {"42703", "nope"},
		"insert into sales replace where `day` = $1 select day from sales where $2 +":                      {"42601", ""},
		"with x as (select 'é', nope from sales) insert into sales replace where day = $1 select * from x": {"42703", "nope"},
		"with x as (select `day`, $1 $2 from sales) insert into sales replace where true select * from x":  {"42601", "$2"},
		"refresh streaming table by_day where day = $1 $1":                                                 {"42601", "$1"},
		"create streaming table x flow replace where day > $1 by name select * from sales":                 {"42P02", "$1"},
		"create flow f as insert into x by name replace where day > $1 select * from sales":                {"42P02", "$1"},
	} {
		_, err := s.parameterTypes(sql, "pg_catalog.date")
		d, _ := err.(*pgdiag.Diagnostic) //nolint:errorlint // the engine's errors reach the wire unwrapped
		switch {
		case d == nil || d.Code != want.code:
			t.Errorf("%s\ngot %v, want %s", sql, err, want.code)
		case d.Position == 0 || !strings.HasPrefix(string([]rune(sql)[d.Position-1:]), want.at):
			t.Errorf("%s\n%s at %d, want at %q", sql, d.Message, d.Position, want.at)
		case strings.Contains(d.Message, "pg_catalog") || strings.Contains(d.Message, "near") && want.at != "" && !strings.Contains(d.Message, "near \""+want.at+"\""):
			t.Errorf("%s\n%s quotes what is not in it", sql, d.Message)
		}
	}
}

func TestParametersInTheDialectOfDatabricks(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("set rwproxy.dialect = 'databricks'",
		"create streaming table spark flow replace where true by name select day, region, amount, cast(amount as int) as whole from sales")
	const text, date, numeric, float, integer = 25, 1082, 1700, 701, 23
	for predicate, want := range map[string][]uint32{
		"day >= $1":                           {date},
		"region = $1 and region <> \"n\"":     {text},
		"day >= cast($1 as date)":             {text},
		"cast($1 as int) < amount":            {text},
		"$1::date = day":                      {text},
		"whole / $1 > 2":                      {float},
		"whole / 2 >= $1":                     {float},
		"whole + $1 > 3":                      {integer},
		"amount = $1":                         {numeric},
		"day >= date_sub(current_date(), $1)": {integer},
		"concat(region, $1) = 'nx'":           {text},
		"region || $1 = 'nx'":                 {text},
		"whole in ($1, $2)":                   {integer, integer},
		"day between $1 and cast($2 as date) + interval 1 day": {date, text},
	} {
		for _, sql := range []string{
			"refresh streaming table spark where " + predicate,
			"insert into spark replace where " + predicate + " select * from spark",
		} {
			got, err := s.parameterTypes(sql)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s\ngot %v, %v, want %v", sql, got, err, want)
			}
		}
	}
}
