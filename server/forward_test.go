package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/rewrite"
	"github.com/rwproxy/rwproxy/server"
)

// forwarding handles DROP TABLE as the refresh engine does: it looks something
// up in the same transaction and has Postgres run the statement.
var forwarding = handlerFunc(func(ctx context.Context, c server.Client, s rewrite.Statement) (server.Outcome, error) {
	if _, ok := s.(*rewrite.Drop); !ok {
		return server.Outcome{}, errors.New("not a drop")
	}
	if !c.Joined() {
		return server.Outcome{}, errors.New("a drop is not joined to its transaction")
	}
	_, err := c.Query(ctx, "select relname from pg_class where relname = any ($1)", []string{"t", "child"})
	return server.Outcome{Forward: true}, err
})

// failing is COPY data that Postgres refuses before it reads the Syncs behind,
// failingLate such that it refuses behind the first one.
var (
	bad         = &pgproto3.CopyData{Data: []byte("x\ty\n")}
	good        = &pgproto3.CopyData{Data: []byte("7\tx\n")}
	failing     = batch(bad, &pgproto3.Sync{}, good, &pgproto3.CopyDone{})
	failingLate = batch(good, &pgproto3.Sync{}, bad, &pgproto3.CopyDone{})
	end         = batch(&pgproto3.Sync{}, &pgproto3.Terminate{})
)

// lengthenSearchPath makes a setting, which Postgres reports since version 18, so
// long that its report is passed on unread.
const lengthenSearchPath = "select set_config('search_path', repeat('nowhere, ', 10000) || current_setting('search_path'), true)"

// drops are conversations in which the proxy takes part: a DROP TABLE is
// looked at before Postgres runs it. Postgres is the oracle of how a Query
// with several statements and a pipeline behave around it.
var drops = map[string][]step{
	"alone":                              {{query("drop table child"), "Z"}, {query("drop table child"), "Z"}},
	"alone, in front of nothing":         {{query("drop table if exists nothing"), "Z"}},
	"among others":                       {{query("select 1; drop table child; select 2"), "Z"}},
	"an error after it":                  {{query("drop table child; select 1/0; select 2"), "Z"}, {query("select count(*) from child"), "Z"}},
	"an error in front of it":            {{query("insert into t values (9, 'x'); select 1/0; drop table child"), "Z"}, {query("select count(*) from t, child"), "Z"}},
	"its own error":                      {{query("insert into t values (9, 'x'); drop table nothing; select 2"), "Z"}, {query("select count(*) from t"), "Z"}},
	"an error with a position":           {{query("select 'é';\n drop table child; select a, nothing from t; select 3"), "Z"}},
	"a block in the text":                {{query("begin; drop table child; rollback; select count(*) from child"), "Z"}},
	"a block of its own behind it":       {{query("drop table child; begin; insert into t values (9, 'x'); commit; select count(*) from t"), "Z"}},
	"a block left open":                  {{query("begin; drop table child"), "Z"}, {query("rollback"), "Z"}},
	"a block that fails":                 {{query("begin; drop table child; select 1/0; commit"), "Z"}, {query("select 1"), "Z"}, {query("rollback"), "Z"}},
	"COMMIT without a block":             {{query("insert into t values (9, 'x'); commit; drop table child; select 1/0"), "Z"}, {query("select count(*) from t, child"), "Z"}},
	"ROLLBACK without a block":           {{query("insert into t values (9, 'x'); rollback; drop table child"), "Z"}, {query("select count(*) from t"), "Z"}},
	"BEGIN twice":                        {{query("begin; begin; drop table child; commit; commit"), "Z"}},
	"SERIALIZABLE":                       {{query("start transaction isolation level serializable; show transaction_isolation; drop table child; commit"), "Z"}},
	"an isolation level too late":        {{query("drop table child; set transaction isolation level serializable"), "Z"}},
	"an isolation level first":           {{query("set transaction isolation level serializable; drop table child; show transaction_isolation"), "Z"}},
	"SAVEPOINT":                          {{query("drop table child; savepoint a"), "Z"}},
	"LOCK":                               {{query("drop table child; lock table t; select 1"), "Z"}},
	"LOCK first":                         {{query("lock table t; drop table child; select 1"), "Z"}},
	"SET LOCAL":                          {{query("drop table child; set local timezone = 'Asia/Tokyo'; show timezone"), "Z"}, {query("show timezone"), "Z"}},
	"a cursor":                           {{query("declare c cursor for select a from t order by a; fetch 2 c; drop table child"), "Z"}},
	"VACUUM":                             {{query("drop table child; vacuum t"), "Z"}},
	"COPY FROM that fails before a Sync": {{join(query("copy t from stdin"), failing, query("drop table child; select 1"), query("select 2"), end), "$"}},
	"COPY FROM that fails behind a Sync": {{join(query("copy t from stdin"), failingLate, query("drop table child; select 1"), query("select 2"), end), "$"}},
	"the same, answer by answer":         {{query("copy t from stdin"), "G"}, {failing, "EZZ"}, {query("drop table child; select 1"), "Z"}},
	"extended, fails before a Sync":      {{join(batch(run("copy t from stdin")...), failing, batch(run("drop table child")...), withSync(run("select 2")...), end), "$"}},
	"extended, fails behind a Sync":      {{join(batch(run("copy t from stdin")...), failingLate, batch(run("drop table child")...), withSync(run("select 2")...), end), "$"}},
	"extended, fails behind, then ours":  {{join(batch(run("copy t from stdin")...), failingLate, batch(&pgproto3.Sync{}), query("drop table child; select 1"), withSync(run("select 2")...), end), "$"}},
	"extended, Syncs among good data":    {{join(batch(run("copy t from stdin")...), batch(&pgproto3.CopyData{Data: []byte("7\tx\n")}, &pgproto3.Sync{}, &pgproto3.CopyDone{}), batch(run("drop table child")...), withSync(run("select 2")...), end), "$"}},
	"a script whose COPY fails, a Sync":  {{join(query("copy t from stdin; drop table child"), failing, query("select count(*) from child; drop table child"), end), "$"}},
	"a script whose COPY fails later":    {{join(query("drop table child; copy t from stdin"), failingLate, query("select count(*) from child; drop table child"), end), "$"}},
	"CopyData without a COPY":            {{join(batch(&pgproto3.CopyData{Data: []byte("7\tx\n")}, &pgproto3.CopyDone{}), query("drop table child; select 1"), batch(&pgproto3.CopyFail{}), end), "$"}},
	"VACUUM, and a COMMIT":               {{query("vacuum t; drop table child; commit"), "Z"}, {query("select count(*) from child"), "Z"}},
	"VACUUM behind a COMMIT":             {{query("drop table child; commit; vacuum t; select 1"), "Z"}, {query("select count(*) from t"), "Z"}},
	"VACUUM in an aborted block":         {{query("begin; select 1/0"), "Z"}, {query("vacuum t; drop table child; rollback"), "Z"}, {query("rollback; vacuum t; drop table child"), "Z"}},
	"CREATE DATABASE":                    {{query("drop table child; create database never"), "Z"}},
	"CREATE DATABASE, and a COMMIT":      {{query("commit; create database never; drop table child"), "Z"}},
	"CREATE INDEX CONCURRENTLY":          {{query("create index concurrently on t (b); drop table child"), "Z"}, {query("begin; commit; create index concurrently on t (b); drop table child"), "Z"}},
	"DISCARD ALL":                        {{query("drop table child; discard all"), "Z"}},
	"ROLLBACK PREPARED":                  {{query("drop table child; rollback prepared 'x'"), "Z"}, {query("commit; rollback prepared 'x'; drop table child"), "Z"}},
	"ALTER SYSTEM, and a COMMIT":         {{query("alter system reset all; drop table child; commit"), "Z"}},
	"a parameter":                        {{query("select 1; select $1::int + 1; drop table child"), "Z"}, {query("drop table child; select a from t where b = $1"), "Z"}},
	"a parameter of no type":             {{query("drop table child;\n select $1, 'é'"), "Z"}, {query("select 'é'; select $1 is null; drop table child"), "Z"}},
	"a parameter in a bad statement":     {{query("drop table child; select $1 from nothing"), "Z"}},
	"a parameter in EXPLAIN":             {{query("drop table child; explain select $1::int"), "Z"}},
	"a parameter in a block":             {{query("begin"), "Z"}, {query("drop table child; select $1::int"), "Z"}, {query("rollback"), "Z"}},
	"a parameter of PREPARE":             {{query("prepare s as select $1::int; drop table child; execute s(5)"), "Z"}},
	"a parameter of a function":          {{query("create function f(int) returns int language sql return $1 + 1; drop table child; select f(5)"), "Z"}},
	"a syntax error, in a block":         {{query("begin"), "Z"}, {query("select 1; drop table child; selec"), "Z"}, {query("select 1"), "Z"}, {query("rollback; select count(*) from child"), "Z"}},
	"several, in a block":                {{query("begin"), "Z"}, {query("savepoint a; select 1; drop table child; release a"), "Z"}, {query("rollback; select count(*) from child"), "Z"}},
	"an isolation level in a block":      {{query("begin"), "Z"}, {query("set transaction isolation level serializable; drop table child; show transaction_isolation"), "Z"}, {query("rollback"), "Z"}},
	"a cursor, in a block":               {{query("begin; declare c cursor for select a from t order by a"), "Z"}, {query("fetch c; drop table child; fetch c"), "Z"}, {query("commit"), "Z"}},
	"VACUUM first":                       {{query("vacuum t; drop table child"), "Z"}},
	"COPY FROM in front of it":           {{query("copy t from stdin; drop table child; select count(*) from t"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("7\tx\n")}, &pgproto3.CopyDone{}), "Z"}},
	"COPY FROM at the end":               {{query("drop table child; copy t from stdin"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("7\tx\n")}, &pgproto3.CopyDone{}), "Z"}, {query("select count(*) from t"), "Z"}},
	"COPY FROM with bad data":            {{query("drop table child; copy t from stdin; select 1"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("x\ty\n")}), "EZ"}, {batch(&pgproto3.CopyDone{}), ""}, {query("select count(*) from child"), "Z"}},
	"COPY FROM that the client ends":     {{query("drop table child; copy t from stdin; select 1"), "G"}, {batch(&pgproto3.CopyFail{Message: "no"}), "Z"}, {query("select count(*) from child"), "Z"}},
	"COPY FROM, everything at once":      {{join(query("drop table child; copy t from stdin; select 1"), batch(&pgproto3.CopyData{Data: []byte("7\tx\n")}, &pgproto3.CopyDone{}), query("select 2")), "ZZ"}},
	"two COPYs":                          {{query("copy t from stdin; drop table child; copy t from stdin"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("7\tx\n")}, &pgproto3.CopyDone{}), "G"}, {batch(&pgproto3.CopyData{Data: []byte("8\tx\n")}, &pgproto3.CopyDone{}), "Z"}},
	"COPY TO":                            {{query("drop table child; copy t to stdout; select 1"), "Z"}},
	"a deferred constraint at commit":    {{query("drop table if exists nothing; insert into child values (99)"), "Z"}, {query("select count(*) from child"), "Z"}},
	"in an aborted block":                {{query("begin; select 1/0"), "Z"}, {query("drop table child"), "Z"}, {query("select 1; drop table child"), "Z"}, {query("rollback; drop table child; select 1"), "Z"}},
	"notices":                            {{query("drop table if exists nothing; do $$ begin raise notice 'hello'; end $$; drop table child"), "Z"}},
	"notifications":                      {{query("listen x; drop table child; notify x, 'hello'"), "Z"}},
	"a reported setting":                 {{query("drop table child; set application_name = 'abc'"), "Z"}},
	"EXPLAIN and SHOW":                   {{query("explain (costs off) select 1; drop table child; show server_encoding"), "Z"}},
	"no rows":                            {{query("select a from t where false; drop table child; update t set b = 'x' where a = 1 returning a"), "Z"}},
	"a rule with statements in it":       {{query("create rule r as on insert to child do also (select 1; select 2); drop table child"), "Z"}},
	"a function with statements in it":   {{query("create function f() returns int begin atomic select 1; select 2; end; drop table child; select f()"), "Z"}},
	"standard_conforming_strings off":    {{query("set standard_conforming_strings = off; set escape_string_warning = off"), "Z"}, {query(`select 'a\'; drop table t; --'; drop table child`), "Z"}, {query("select count(*) from t"), "Z"}},
	"the unnamed statement":              {{batch(&pgproto3.Parse{Query: "select 1"}, &pgproto3.Sync{}), "Z"}, {query("drop table child"), "Z"}, {batch(&pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}), "Z"}},
	"the unnamed statement, an error":    {{batch(&pgproto3.Parse{Query: "select 1"}, &pgproto3.Sync{}), "Z"}, {query("drop table nothing"), "Z"}, {batch(&pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}), "Z"}},
	"a syntax error in front of it":      {{query("selec 1; drop table child"), "Z"}},
	"a syntax error behind it":           {{query("drop table child; selec 1"), "Z"}, {query("select count(*) from child"), "Z"}},
	"PREPARE and EXECUTE":                {{query("prepare s as select 1; drop table child; execute s; deallocate s"), "Z"}},
	"extended":                           {{withSync(run("drop table child")...), "Z"}, {withSync(run("drop table child")...), "Z"}},
	"extended, in a pipeline":            {{withSync(concat(run("insert into t values (9, 'x')"), run("drop table child"), run("select count(*) from t"))...), "Z"}},
	"extended, an error behind it":       {{withSync(concat(run("drop table child"), run("select 1/0"), run("select 2"))...), "Z"}, {query("select count(*) from child"), "Z"}},
	"extended, an error in front of it":  {{join(withSync(concat(run("select 1/0"), run("drop table child"), run("select 2"))...), withSync(run("select count(*) from child")...)), "ZZ"}},
	"extended, its own error":            {{withSync(concat(run("insert into t values (9, 'x')"), run("drop table nothing"), run("select 2"))...), "Z"}, {query("select count(*) from t"), "Z"}},
	"extended, named":                    {{batch(&pgproto3.Parse{Name: "s", Query: "drop table child"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{}), "Z"}, {batch(&pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s"}, &pgproto3.Describe{ObjectType: 'P', Name: "p"}, &pgproto3.Execute{Portal: "p"}, &pgproto3.Close{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{}), "Z"}, {batch(&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Sync{}), "Z"}},
	"extended, a name used twice":        {{batch(&pgproto3.Parse{Name: "s", Query: "drop table child"}, &pgproto3.Sync{}, &pgproto3.Parse{Name: "s", Query: "drop table t"}, &pgproto3.Sync{}), "ZZ"}},
	"extended, closed by Flush":          {{batch(&pgproto3.Parse{Query: "drop table child"}, &pgproto3.Flush{}), "1"}, {batch(&pgproto3.Bind{}, &pgproto3.Flush{}), "2"}, {batch(&pgproto3.Execute{}, &pgproto3.Flush{}), "C"}, {batch(&pgproto3.Sync{}), "Z"}},
	"extended, not executed":             {{batch(&pgproto3.Parse{Query: "drop table child"}, &pgproto3.Bind{}, &pgproto3.Sync{}), "Z"}, {query("select count(*) from child"), "Z"}},
	"extended, replaced before it ran":   {{batch(concat([]pgproto3.FrontendMessage{&pgproto3.Parse{Query: "drop table child"}, &pgproto3.Bind{}}, run("select count(*) from child"), []pgproto3.FrontendMessage{&pgproto3.Sync{}})...), "Z"}},
	"extended, executed twice":           {{batch(append(run("drop table child"), &pgproto3.Execute{}, &pgproto3.Sync{})...), "Z"}},
	"extended, several statements":       {{withSync(run("select 1; drop table child")...), "Z"}},
	"extended, in a block":               {{withSync(run("begin")...), "Z"}, {withSync(run("drop table child")...), "Z"}, {withSync(run("rollback")...), "Z"}, {query("select count(*) from child"), "Z"}},
	"extended, in an aborted block":      {{query("begin; select 1/0"), "Z"}, {withSync(run("drop table child")...), "Z"}, {query("rollback"), "Z"}},
	"extended, bound, then aborted":      {{query("begin"), "Z"}, {batch(&pgproto3.Parse{Query: "drop table child"}, &pgproto3.Bind{DestinationPortal: "p"}, &pgproto3.Sync{}), "Z"}, {query("select 1/0"), "Z"}, {batch(&pgproto3.Execute{Portal: "p"}, &pgproto3.Sync{}), "Z"}},
	"extended, mixed with a Query":       {{join(batch(run("drop table child")...), query("select 1; drop table t"), withSync(run("select 2")...)), "ZZ"}},
	"a Query that is to be skipped":      {{join(batch(&pgproto3.Parse{Query: "selec"}), query("drop table child"), batch(&pgproto3.Sync{})), "Z"}, {query("select count(*) from child"), "Z"}},
	"read before the drop":               {{query("select * from t; drop table t cascade; select 3"), "Z"}},
	"several in one packet":              {{join(query("drop table child"), query("select 1"), query("drop table t; select 2"), query("select 3")), "ZZZZ"}},
	"behind a pipeline":                  {{join(batch(run("insert into t values (9, 'x')")...), query("drop table if exists nothing"), query("select 1; drop table child"), batch(&pgproto3.Sync{})), "ZZZ"}},
	"a commit fails behind a pipeline":   {{join(batch(run("insert into child values (99)")...), query("drop table if exists nothing"), batch(&pgproto3.Sync{})), "ZZ"}},
	"behind a pipeline of nothing":       {{join(batch(run("")...), query("drop table child"), batch(&pgproto3.Sync{})), "ZZ"}},
	"behind a pipeline that commits":     {{join(batch(concat(run("insert into t values (9, 'x')"), run("commit"))...), query("drop table child"), batch(&pgproto3.Sync{})), "ZZ"}},
	"behind VACUUM in a pipeline":        {{join(batch(run("vacuum t")...), query("drop table if exists nothing"), query("select 1"), batch(&pgproto3.Sync{}), query("select 2")), "ZZZZ"}},
	"behind a DROP DATABASE":             {{join(batch(run("drop database if exists nothing")...), query("drop table if exists nothing"), query("select 1"), batch(&pgproto3.Sync{}), query("select 2")), "ZZZZ"}},
	"behind a DISCARD ALL":               {{join(batch(run("discard all")...), query("drop table if exists nothing"), batch(&pgproto3.Sync{}), query("select 2")), "ZZZ"}},
	"behind a Sync that COPY took":       {{join(batch(concat(run("set local timezone = 'Asia/Tokyo'"), run("copy t from stdin"))...), batch(&pgproto3.Sync{}, good, &pgproto3.CopyDone{}), query("begin; drop table child"), batch(&pgproto3.Sync{}), query("rollback; select count(*) from t")), "ZZZ"}},
	"an error behind a Sync in COPY":     {{join(batch(run("copy t from stdin")...), batch(&pgproto3.Sync{}, good, &pgproto3.CopyDone{}), query("drop table child; select 1/0"), batch(&pgproto3.Sync{}), query("select count(*) from t")), "ZZZ"}},
	"a setting that it rolls back":       {{query("begin"), "Z"}, {join(batch(run("set local timezone = 'Asia/Tokyo'")...), query("rollback; drop table child; begin"), batch(&pgproto3.Sync{})), "ZZ"}, {query("show timezone"), "Z"}},
	"a setting that it leaves":           {{query("begin"), "Z"}, {join(batch(run("set local timezone = 'Asia/Tokyo'")...), query("select 1; drop table child"), batch(&pgproto3.Sync{})), "ZZ"}, {query("show timezone"), "Z"}, {query("rollback"), "Z"}},
	"a setting that a failed COPY ends":  {{join(batch(concat(run("set local timezone = 'Asia/Tokyo'"), run("copy t from stdin"))...), failing, batch(run("drop table child")...), withSync(run("select 2")...), end), "$"}},
	"a setting that its failure ends":    {{join(batch(concat(run("set local timezone = 'Asia/Tokyo'"), run("copy t from stdin"))...), failingLate, batch(run("drop table child")...), withSync(run("select 2")...), end), "$"}},
	"a long setting that it rolls back":  {{query("set search_path = public"), "Z"}, {query("begin"), "Z"}, {join(batch(run(lengthenSearchPath)...), query("rollback; drop table if exists nothing; begin"), batch(&pgproto3.Sync{})), "ZZ"}, {query("show search_path"), "Z"}},
	"a long setting that it leaves":      {{query("set search_path = public"), "Z"}, {query("begin"), "Z"}, {join(batch(run(lengthenSearchPath)...), query("select 1; drop table if exists nothing"), batch(&pgproto3.Sync{})), "ZZ"}, {query(lengthenSearchPath), "Z"}, {query("rollback"), "Z"}},
	"a long setting behind another":      {{query("set search_path = public"), "Z"}, {query("begin"), "Z"}, {join(batch(run("set local search_path = pg_catalog, public")...), query(lengthenSearchPath+"; drop table if exists nothing"), batch(&pgproto3.Sync{})), "ZZ"}, {query("rollback"), "Z"}},
	"a long setting that is taken back":  {{query("set search_path = public"), "Z"}, {query("begin"), "Z"}, {query(lengthenSearchPath), "Z"}, {query("rollback"), "Z"}},
	"a setting set twice around it":      {{query("begin; set local timezone = 'UTC'"), "Z"}, {join(batch(run("set local timezone = 'Asia/Tokyo'")...), query("set local timezone = 'UTC'; drop table child"), batch(&pgproto3.Sync{})), "ZZ"}, {query("commit"), "Z"}},
	"behind a portal that is suspended":  {{join(batch(&pgproto3.Parse{Query: "select a from t"}, &pgproto3.Bind{}, &pgproto3.Execute{MaxRows: 1}), query("drop table child"), query("savepoint a"), batch(&pgproto3.Sync{})), "ZZZ"}},
	"a function call behind a pipeline":  {{join(batch(run("select 1")...), functionCall, query("vacuum t; drop table child"), query("select 1; drop table child"), batch(&pgproto3.Sync{})), "ZZZZ"}},
	"a block that a pipeline ends":       {{query("begin"), "Z"}, {join(batch(run("commit")...), query("select 1; drop table child"), batch(&pgproto3.Sync{})), "ZZ"}},
	"a failed one that a pipeline ends":  {{query("begin; select 1/0"), "Z"}, {join(batch(run("rollback")...), query("drop table child"), batch(&pgproto3.Sync{})), "ZZ"}, {query("drop table child"), "Z"}},
	"a plan that fails, then its portal": {{query("begin"), "Z"}, {query("drop table child; select 1/0"), "Z"}, {batch(&pgproto3.Execute{}, &pgproto3.Sync{}), "Z"}},
	"a portal that fails, then it":       {{query("begin"), "Z"}, {query("drop table child; select 1 / (a - 1) from t"), "Z"}, {batch(&pgproto3.Execute{}, &pgproto3.Sync{}), "Z"}},
	"in a Query that COPY takes as data": {{join(query("copy t from stdin"), query("drop table child")), "$"}},
}

func TestWhatSurroundsAnInterceptedStatementBehavesAsInPostgres(t *testing.T) {
	t.Parallel()
	p := startProxy(t, forwarding)
	url := pgtest.Database(t)
	for name, steps := range drops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := converse(t, url, steps, false)
			for _, bytewise := range []bool{false, true} {
				got := converse(t, p.url(t, url), steps, bytewise)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("one byte at a time: %v; direct and proxied answers differ (-direct +proxied):\n%s", bytewise, diff)
				}
			}
		})
	}
}
