package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// manyRows is the number of rows of the largest source. One statement changes up
// to all of them: more keys than a window is narrowed by, and more than are
// logged.
const manyRows = 40_000

// manyTables are the sources. Every column that is a key of a flow has NULL.
var manyTables = []string{
	`create table many (id integer primary key, d date, k integer, s integer, v integer, c text)`,
	`create table few (s integer, r integer, c text)`,
	`create index on few (s)`,
	`create table next_id as select 0 as id`,
	manyInsert(manyRows),
	`insert into few select s, nullif(s % 3000, 0), 'c' || s % 10 from generate_series(1, 5000) s`,
	`analyze many, few`,
}

// manyInsert inserts rows; one in five of them matches nothing of few.
func manyInsert(rows int) string {
	return fmt.Sprintf(`with new as (update next_id set id = id + %d returning id)
		insert into many select i, date '2024-01-01' + nullif(i / 2500, 7), nullif(i %% 30000, 3), nullif(i %% 6251, 5), i %% 11,
			case i %% 9 when 0 then null when 1 then 'it''s ' || i else e'back\\slash ' || i %% 20000 end
		from new cross join lateral generate_series(id - %[1]d, id - 1) i`, rows)
}

// manyFlow is a flow whose sources change in many keys at once.
type manyFlow struct {
	name, properties, query string
	windows                 []string
}

var (
	ofDays    = []string{`d >= '2024-01-05'`, `d between '2024-01-03' and '2024-01-18' or d is null`, `true`}
	ofKeys    = []string{`k >= 100`, `k is null or k < 28000`, `true`}
	manyFlows = []manyFlow{
		{name: "rows", windows: ofDays, query: `select d, id, v from many`},
		{name: "groups", windows: ofDays, query: `select d, k, count(*) as n, sum(v) as v from many group by d, k`},
		{name: "keys", windows: ofKeys, query: `select k, count(*) as n, sum(v) as v, max(c) as c from many group by k`},
		{name: "joined", windows: ofDays, query: `select f.d, f.k, count(*) as n, count(x.s) as known, max(x.c) as c from many f left join few x on x.s = f.s group by 1, 2`},
		{name: "optional", windows: ofKeys, query: `select x.r as k, count(*) as n, sum(f.v) as v from many f left join few x on x.s = f.s group by 1`},
		{name: "words", windows: []string{`c > 'c'`, `c is null or c < 'it'`, `true`}, query: `select c, k, v from many where v <> 3`},
		{name: "differing", windows: ofKeys, properties: `tblproperties ('rwproxy.apply' = 'diff') `, query: `select k, s, count(*) as n, sum(v) as v from many group by k, s`},
	}
)

// manyOracle plays statements that change many keys against one flow.
type manyOracle struct {
	t        *testing.T
	flow     manyFlow
	random   *rand.Rand
	session  *session // through the proxy
	writer   *session // past it, with at most one open transaction
	open     bool
	window   string
	script   []string
	outcomes map[string]int
}

// Many keys change at once; what is refreshed by a statement, in a transaction,
// by the queue, and by the queue while others write, is what a recompute gives.
// The seed is that of TestARefreshIsWhatARecomputeIs; rounds are half as many,
// each of which takes longer.
func TestARefreshOfManyKeysIsWhatARecomputeIs(t *testing.T) {
	t.Parallel()
	rounds := number(t, roundsVariable, defaultRounds) / 2
	seed := number(t, seedVariable, rand.Uint64())
	t.Logf("%s=%d, %d rounds", seedVariable, seed, rounds)
	d := newDatabase(t)
	for _, f := range manyFlows {
		t.Run(f.name, func(t *testing.T) {
			o := &manyOracle{
				t: t, flow: f, random: rand.New(rand.NewPCG(seed^hash(f.name), 1)), window: f.windows[0],
				session: connect(t, d.url), writer: connect(t, d.direct), outcomes: map[string]int{},
			}
			path := `set search_path = ` + f.name
			o.writer.exec(`create schema `+f.name, path)
			o.session.exec(path)
			o.do(o.writer, manyTables...)
			o.do(o.session, `create streaming table target `+f.properties+`flow replace where `+o.window+` by name `+f.query)
			for range rounds {
				o.round()
			}
			t.Log(o.outcomes)
		})
	}
}

func (o *manyOracle) do(s *session, statements ...string) {
	o.t.Helper()
	for _, sql := range statements {
		o.script = append(o.script, sql+";")
		if _, err := s.run(sql); err != nil {
			o.fatalf("%s\n%s", sql, describe(err))
		}
	}
}

func (o *manyOracle) fatalf(format string, arguments ...any) {
	o.t.Helper()
	o.t.Fatalf(format+"\nafter\n%s", append(arguments, strings.Join(o.script, "\n"))...)
}

// round writes, refreshes in one of the ways there are, and compares.
func (o *manyOracle) round() {
	o.t.Helper()
	r := o.random
	for range 1 + r.IntN(3) {
		switch {
		case !o.open && chance(r, 6):
			o.do(o.writer, `begin`)
			o.open = true
		case o.open && chance(r, 2):
			o.end()
		}
		o.do(o.writer, o.statement())
	}
	if chance(r, 3) {
		o.end()
		o.do(o.writer, `analyze many, few, target`)
	}
	switch n := r.IntN(10); {
	case n < 3:
		o.replaced(o.window, func() { o.do(o.session, `refresh streaming table target`) })
	case n < 6:
		o.replaced(o.window, func() { o.queued(`refresh streaming table target async`) })
	case n < 7:
		override := pick(r, o.flow.windows)
		o.replaced(override, func() { o.queued(`refresh streaming table target where ` + override + ` async`) })
	case n < 8:
		o.end()
		o.window = pick(r, o.flow.windows)
		o.replaced(o.window, func() {
			o.do(o.session, `create or refresh streaming table target `+o.flow.properties+`flow replace where `+o.window+` by name `+o.flow.query)
		})
	case n < 9:
		o.end()
		o.do(o.session, `begin`, o.statement())
		o.replaced(o.window, func() { o.do(o.session, `refresh streaming table target`) })
		o.do(o.session, pick(r, []string{`commit`, `rollback`}))
	default:
		o.whileOthersWrite()
		o.replaced(o.window, func() { o.do(o.session, `refresh streaming table target`) })
	}
}

// end ends the writer's transaction.
func (o *manyOracle) end() {
	o.t.Helper()
	if o.open {
		o.do(o.writer, pick(o.random, []string{`commit`, `commit`, `rollback`}))
	}
	o.open = false
}

// statement changes a few keys, many, or more than a flow is narrowed by.
func (o *manyOracle) statement() string {
	r := o.random
	n := pick(r, []int{1, 40, 1500, 3000, 8000, 15_500, 16_500, manyRows / 2, manyRows})
	some := fmt.Sprintf(`id in (select id from many order by (id::bigint * %d) %% 40009 limit %d)`, 1+r.IntN(40_008), n)
	if chance(r, 2) {
		some = fmt.Sprintf(`id between %d and %[1]d + %d`, r.IntN(manyRows), n)
	}
	return pick(r, []string{
		`update many set v = v + 1 where ` + some,
		`update many set v = v + 1 where ` + some,
		`update many set k = nullif((k + 7001) % 31000, 30000) where ` + some,
		`update many set s = coalesce(s + 911, 1) % 7000 where ` + some,
		fmt.Sprintf(`update many set d = date '2024-01-01' + %d, c = c || '"' where `, r.IntN(22)) + some,
		`delete from many where id % 3 > 0 and (select count(*) from many) > 20000 and ` + some,
		manyInsert(n / 3),
		manyInsert(n / 3),
		fmt.Sprintf(`update few set r = nullif((r + 1) %% 3500, 0) where s between %d and %[1]d + %d`, r.IntN(5000), n/4),
		fmt.Sprintf(`update few set c = c || 'x' where s between %d and %[1]d + %d`, r.IntN(5000), n/4),
		fmt.Sprintf(`delete from few where s between %d and %[1]d + %d`, r.IntN(5000), n/16),
		fmt.Sprintf(`insert into few select s, s %% 3001, 'new' from generate_series(%d, %[1]d + %d) s`, r.IntN(6000), n/16),
	})
}

// queued has the queue run a refresh.
func (o *manyOracle) queued(statement string) {
	o.t.Helper()
	o.script = append(o.script, statement+";")
	o.session.ends(o.session.async(statement), "COMPLETED", "")
}

// whileOthersWrite refreshes in every way at once, and writes.
func (o *manyOracle) whileOthersWrite() {
	o.t.Helper()
	o.end()
	var statements []string
	for range 6 {
		statements = append(statements, o.statement())
	}
	o.script = append(o.script, "/* meanwhile")
	o.script = append(o.script, statements...)
	o.script = append(o.script, "*/")
	group, _ := errgroup.WithContext(context.Background())
	group.Go(func() error { return runAll(o.writer, statements...) })
	var ids []string
	for range 2 {
		ids = append(ids,
			o.session.async(`refresh streaming table target async`),
			o.session.async(`refresh streaming table target where `+pick(o.random, o.flow.windows)+` async`))
		o.do(o.session, `refresh streaming table target`)
	}
	for _, id := range ids {
		o.session.ends(id, "COMPLETED", "")
	}
	if err := group.Wait(); err != nil {
		o.fatalf("%s", describe(err))
	}
}

// replaced has the rows of a predicate replaced, and compares the whole target
// with what must be in it.
func (o *manyOracle) replaced(predicate string, refresh func()) {
	o.t.Helper()
	o.do(o.session, `create temporary table before as table target`)
	refresh()
	did := o.session.value(`select technique || ' ' || coalesce(reason, case when applied_predicate like '%(array[%' then 'by a list' else '' end)
		from rwproxy.refreshes where target_schema = current_schema() and target_table = 'target' order by requested_at desc limit 1`)
	o.outcomes[did]++
	o.script = append(o.script, "-- "+did)
	columns := strings.Join(o.session.columnNames(`select * from target`), ", ")
	is := `select (` + columns + `)::text as image from target`
	should := `select image from (select *, (` + columns + `)::text as image from before) q where (` + predicate + `) is not true
		union all select image from (select *, (` + columns + `)::text as image from (` + o.flow.query + `) q) q where ` + predicate
	wrong := o.session.rows(`(select '+', * from (` + is + ` except all (` + should + `)) a) union all (select '-', * from ((` + should + `) except all ` + is + `) b) limit 20`)
	if len(wrong) > 0 {
		o.fatalf("%s\ndiffers from a recompute (+ too much, - too little)\n%s", did, strings.Join(wrong, "\n"))
	}
	o.do(o.session, `drop table before`)
}
