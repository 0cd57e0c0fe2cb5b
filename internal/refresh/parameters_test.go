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
	types, err := s.engine.ParameterTypes(s.t.Context(), s, statement, declared)
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
	s.expect("select current_setting('search_path'), count(*) from rwproxy.refreshes where kind = 'OVERRIDE'", `"$user", public 0`)
}

func TestFaultsOfAParameterStandInTheUsersText(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	for sql, want := range map[string]struct{ code, at string }{
		"refresh streaming table by_day where nope > 'é' and day = $1":                      {"42703", "nope"},
		"refresh streaming table by_day where `day` = $1 and nope":                          {"42703", "nope"},
		"refresh streaming table by_day where day = $1 and sum(amount) > $2":                {"42903", "sum"},
		"refresh streaming table by_day where day = $70000":                                 {"42P02", "$70000"},
		"refresh streaming table by_day where day in (select $1)":                           {"0AKDC", "select"},
		"refresh streaming table nobody where day = $1":                                     {"42P01", "nobody"},
		"refresh streaming table sales where day = $1":                                      {"42601", "day"},
		"create streaming table x flow replace where day > $1 by name select * from sales":  {"42P02", "$1"},
		"create flow f as insert into x by name replace where day > $1 select * from sales": {"42P02", "$1"},
	} {
		_, err := s.parameterTypes(sql, "pg_catalog.date")
		d, _ := err.(*pgdiag.Diagnostic) //nolint:errorlint // the engine's errors reach the wire unwrapped
		switch {
		case d == nil || d.Code != want.code:
			t.Errorf("%s\ngot %v, want %s", sql, err, want.code)
		case d.Position == 0 || !strings.HasPrefix(string([]rune(sql)[d.Position-1:]), want.at):
			t.Errorf("%s\n%s at %d, want at %q", sql, d.Message, d.Position, want.at)
		}
	}
}
