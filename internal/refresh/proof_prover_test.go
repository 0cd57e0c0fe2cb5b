package refresh

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// prover is a session that makes proofs.
type prover struct {
	t *testing.T
	pgsession.Session
	conn  *pgx.Conn
	frame *frame
}

// newProver begins a transaction in a new database and runs statements in it.
func newProver(t *testing.T, statements string) *prover {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), statements+"; begin"); err != nil {
		t.Fatal(err)
	}
	p := &prover{t: t, Session: pgsession.FromPgx(conn), conn: conn}
	settings, err := authorSettings(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	settings[settingSearchPath] = "public"
	if p.frame, err = enter(t.Context(), p, settings, time.Now()); err != nil {
		t.Fatal(err)
	}
	return p
}

// exec runs statements under the search_path of the flow.
func (p *prover) exec(statements ...string) {
	p.t.Helper()
	sql := "set local search_path = public;\n" + strings.Join(statements, ";\n") + ";\nset local search_path = pg_catalog"
	if _, err := p.conn.PgConn().Exec(p.t.Context(), sql).ReadAll(); err != nil {
		p.t.Fatalf("%s\n%v", sql, err)
	}
}

func (p *prover) query(sql string) (rows []pgsession.Row) {
	p.t.Helper()
	err := p.frame.asFlow(p.t.Context(), func() (err error) {
		rows, err = p.Query(p.t.Context(), sql)
		return err
	})
	if err != nil {
		p.t.Fatalf("%s\n%v", sql, err)
	}
	return rows
}

// prove makes a proof of a query, stored as view v.
func (p *prover) prove(query, keys string) *proof {
	p.t.Helper()
	p.exec("drop view if exists v", "create view v as "+query)
	proved, err := prove(p.t.Context(), p.frame, "public.v", strings.Fields(keys))
	if err != nil {
		p.t.Fatalf("%s\n%v", query, err)
	}
	return proved
}

// version is the major version of the server.
func (p *prover) version() int {
	p.t.Helper()
	number, err := strconv.Atoi(p.query("select current_setting('server_version_num')")[0][0].Text)
	if err != nil {
		p.t.Fatal(err)
	}
	return number / 10000
}

// describe returns a proof as shapes have it.
func describe(p *proof) []string {
	var lines []string
	for _, s := range p.Sources {
		line := strings.TrimPrefix(s.Name, "public.") + ":"
		switch {
		case s.Unscanned:
			line += " unscanned"
		case len(s.Routes) == 0:
			line += " none"
		default:
			line += describeRoute(s.OID, s.Routes[0])
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func describeRoute(of uint32, r route) string {
	line := ""
	for _, k := range r.Keys {
		mark := "*"
		if k.NullFree {
			mark = "!"
		} else if k.NullProved {
			mark = "?"
		}
		line += " " + k.Column + mark
	}
	if strings.Contains(r.SQL, " as h0") {
		for _, n := range r.Needs {
			if n.Relation == of {
				line += " by " + strings.Join(n.Columns, " ")
			}
		}
	}
	return line
}

func TestWhatIsProvedOfEachShape(t *testing.T) {
	t.Parallel()
	p := newProver(t, sourcesOfShapes)
	for _, s := range shapes {
		want := slices.Clone(s.want)
		if p.version() < 17 {
			// The planner learned then that a NOT NULL column is not NULL.
			for i := range want {
				want[i] = strings.Replace(want[i], "s: day? id!", "s: day? id?", 1)
			}
		}
		if diff := cmp.Diff(want, describe(p.prove(s.query, s.keys))); diff != "" {
			t.Errorf("%s: %s (-want +got)\n%s", s.name, s.query, diff)
		}
	}
}

func TestAProofLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	p := newProver(t, sourcesOfShapes)
	p.exec("set local enable_partition_pruning = on", "set local constraint_exclusion = 'on'", "set local plan_cache_mode = force_custom_plan")
	var names []string
	for name := range plannerSettings {
		names = append(names, rewrite.QuoteLiteral(name))
	}
	state := `
		select (select string_agg(name || '=' || setting, ' ' order by name) from pg_settings where name in (` + strings.Join(names, ", ") + `)),
		       (select count(*) from pg_prepared_statements where name like 'rwproxy%')`
	before := p.query(state)
	p.prove("select day, count(*) as n from p group by day", "day n")
	if diff := cmp.Diff(before, p.query(state)); diff != "" {
		t.Error(diff)
	}
}

func TestAProofNamesTheColumnsToLogAndThoseRead(t *testing.T) {
	t.Parallel()
	p := newProver(t, sourcesOfShapes+`
		create table g (a int, b int, c int generated always as (a + b) stored, unused int);
		create view inner_view as select day, store, region from s where amount > 1;`)
	for _, test := range []struct {
		query, keys string
		want        []string
	}{
		{
			"select s.day, s.region, count(d.city) as n from s join d on d.store = s.store group by 1, 2", "day region",
			[]string{"d: logs store, reads city store", "s: logs day region store, reads day region store"},
		},
		{"select x.day, x.region from inner_view as x", "region day", []string{"s: logs region day, reads amount day region store"}},
		{"select c, count(*) as n from g group by c", "c", []string{"g: logs c, reads all"}},
		{"select day, max(s::text) as r from s group by day", "day", []string{"s: logs day, reads all"}},
		{"select id, extra, day from child union all select id, 0, day from parent", "day", []string{"parent: logs day, reads all"}},
		{"select count(*) as n from m", "n", []string{"m: logs, reads"}},
	} {
		var got []string
		for _, s := range p.prove(test.query, test.keys).Sources {
			reads := s.Reads
			if reads == nil {
				reads = []string{"all"}
			}
			logs := strings.Join(append([]string{"logs"}, s.Columns...), " ")
			got = append(got, strings.TrimPrefix(s.Name, "public.")+": "+logs+", "+strings.Join(append([]string{"reads"}, reads...), " "))
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.query, diff)
		}
	}
}

func TestATableThatRunsFunctionsWhenItIsPlannedIsNotReadByARoute(t *testing.T) {
	t.Parallel()
	p := newProver(t, sourcesOfShapes+`
		create function f(int) returns bool language plpgsql immutable as 'begin return true; end'`)
	const query = "select s.day, sum(s.amount) as a from s join d on d.store = s.store group by s.day"
	for _, test := range []struct{ change, want string }{
		{"create index plain on s (store) where amount > 1", "d: day? by store"},
		{"create index evil on s (store) where f(1)", "d: none"},
		{"drop index evil", "d: day? by store"},
		{"alter table s add constraint evil check (f(store)) not valid", "d: none"},
		{"alter table s drop constraint evil", "d: day? by store"},
		{"create statistics evil on f(id), store from s", "d: none"},
	} {
		p.exec(test.change)
		if got := describe(p.prove(query, "day"))[0]; got != test.want {
			t.Errorf("after %s: %s, want %s", test.change, got, test.want)
		}
	}
}
