package rewrite_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/rewrite"
)

func TestTheShadowOfAnInsertDescribesItsParameters(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, "create table t (id int, day date, amount numeric(8,2)); create table s (k bigint, day date)")
	for _, test := range []struct{ sql, types string }{
		{"insert into t replace where day = '2024-01-01' select 1, day from s", ""},
		{"insert into t replace where id == 1 select `k` from s group by all", ""},
		{"insert into t replace where day >= $1 and id = $2 select * from s", "date int4"},
		{"insert into t replace where day >= $2 values ($1, $2, $3)", "int4 date numeric"},
		{"insert into t (amount, id) replace where id = $1 values ($2, $1), ($3, 5)", "int4 numeric numeric"},
		{"insert into t by name replace where `day` == $1 select $2 as amount, $1 as day", "date numeric"},
		{"insert into t by name replace using (id) select $1::int8 as id union all select $2", "int8 int8"},
		{"insert into t by name replace using (id) select * from (select $1::text as id) x", "text"},
		{"with x as (select * from s where k = $1) insert into t replace where id = $2 select k, day, $3 from x limit $4", "int8 int4 numeric int8"},
		{"with recursive x (n) as (select $1::int union all select n + 1 from x where n < $2) insert overwrite t select n from x", "int4 int4"},
		{"insert into t replace where t.id = $1 with x as (select $2::text) select 1 from x", "int4 text"},
		{"insert into t as a replace on a.id = b.k and b.day > $1 (select * from s) as b", "date"},
		{"insert into t replace on t.day = $1 select * from s where k < $2", "date int8"},
		{"insert overwrite t partition (day = $1, amount = $2) values ($3)", "date numeric int4"},
		{"insert into table t values ($1, $2, $3)", "int4 date numeric"},
	} {
		shadow := shadowOf(t, test.sql)
		description, err := c.Prepare(t.Context(), test.sql, shadow)
		if err != nil {
			t.Errorf("%s\n%s\n%v", test.sql, shadow, err)
			continue
		}
		var types []string
		for _, oid := range description.ParamOIDs {
			typ, _ := c.TypeMap().TypeForOID(oid)
			types = append(types, typ.Name)
		}
		if got := strings.Join(types, " "); got != test.types || len(description.Fields) != 0 {
			t.Errorf("%s\n%s\ngot parameters %s and %d columns, want %s and none", test.sql, shadow, got, len(description.Fields), test.types)
		}
	}
}

func shadowOf(t *testing.T, sql string) string {
	t.Helper()
	statement, err := rewrite.Parse(sql, rewrite.Lexical{})
	if err != nil || statement == nil {
		t.Fatal(sql, statement, err)
	}
	return statement.Shadow()
}

func TestTheShadowOfAnInsertWritesNothingIfItIsRun(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, "create table t (id int); create table s (k int)")
	for _, sql := range []string{
		"insert overwrite t values ($1)",
		"insert into t replace where id = $1 select 1",
		"insert into t replace where id > 0 select $1",
		"insert overwrite t partition (id = $1) select from s",
	} {
		for _, fill := range []string{"truncate t", "insert into t values (1)"} {
			execute(t, c, fill)
			before := rows(t, c, "table t")
			if _, err := c.Exec(t.Context(), shadowOf(t, sql), pgx.QueryExecModeDescribeExec, 1); err == nil {
				t.Errorf("%s: the shadow was run", sql)
			}
			if after := rows(t, c, "table t"); len(before) != len(after) {
				t.Errorf("%s: the shadow has written", sql)
			}
		}
	}
}
