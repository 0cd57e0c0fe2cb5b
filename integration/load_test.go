package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// How long the load lasts.
const (
	secondsVariable = "RWPROXY_LOAD_SECONDS"
	defaultSeconds  = 10
)

// load is what everybody does at once to the flows of one database.
type load struct {
	t       *testing.T
	d       database
	seed    uint64
	context context.Context // ends with the load
	group   *errgroup.Group
	actors  uint64
	nextID  atomic.Int64
}

// The flows under load: totals, which others write too, summary, which reads
// it, and two that only refreshes write.
var loadedFlows = []struct{ name, columns, predicate, query string }{
	{"totals", "", `day >= '2024-01-03'`, `select day, region, count(*) as n, sum(amount) as amount from sales group by day, region`},
	{"summary", "", `day >= '2024-01-04'`, `select day, count(*) as regions, sum(amount) as amount from totals group by day`},
	{
		"detail", "(id integer primary key, day date, amount integer, region text)", `day >= '2024-01-03'`,
		`select s.id, s.day, s.amount, r.name as region from sales s left join regions r on r.region = s.region`,
	},
	{"counted", "", `true`, `select 1 as one, count(*) as n, sum(amount) as amount from sales`},
}

// Two refreshers of each of some targets, a chain, writers of the sources and of
// the target, readers: nothing may be lost, and a refresh that is a statement of
// its own always succeeds. RWPROXY_LOAD_SECONDS makes it last longer.
func TestNothingIsLostUnderLoad(t *testing.T) {
	t.Parallel()
	seconds := number(t, secondsVariable, defaultSeconds)
	l := &load{t: t, d: newDatabase(t), seed: number(t, seedVariable, rand.Uint64())}
	t.Logf("%s=%d", seedVariable, l.seed)
	s := connect(t, l.d.url)
	s.exec(`create table sales (id integer primary key, day date, region integer, amount integer)`,
		`create table regions (region integer primary key, name text)`,
		`insert into regions select n, 'region ' || n from generate_series(1, 6) n`,
		`insert into sales select n, date '2024-01-01' + n % 8, n % 7, n from generate_series(1, 400) n`)
	l.nextID.Store(400)
	for _, f := range loadedFlows {
		s.exec(`create streaming table ` + f.name + ` ` + f.columns + ` flow replace where ` + f.predicate + ` by name ` + f.query)
	}
	var cancel context.CancelFunc
	l.context, cancel = context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	l.group, l.context = errgroup.WithContext(l.context)

	for share := range 3 {
		l.act(l.d.direct, simple, func(s *session, r *rand.Rand) error { return l.writeSource(s, r, share) })
	}
	l.act(l.d.direct, simple, l.writeDimension)
	l.act(l.d.direct, simple, l.writeTarget)
	for _, p := range []protocol{simple, extended} {
		l.act(l.d.url, p, func(s *session, r *rand.Rand) error {
			_, err := s.run(`refresh streaming table ` + pick(r, []string{"totals", "totals", "summary", "detail", "counted"}))
			return err
		})
		l.act(l.d.url, p, func(s *session, _ *rand.Rand) error {
			_, err := s.run(`refresh streaming table detail`)
			return err
		})
	}
	l.act(l.d.url, simple, l.refreshChain)
	l.act(l.d.url, simple, l.prove)
	l.act(l.d.direct, simple, func(s *session, _ *rand.Rand) error {
		result, err := s.run(`select count(*) from counted`)
		if err == nil && string(result.Rows[0][0]) != "1" {
			return fmt.Errorf("a reader sees %s rows where there is always one", result.Rows[0][0])
		}
		return err
	})
	if err := l.group.Wait(); err != nil {
		t.Fatal(describe(err))
	}
	for _, f := range loadedFlows {
		s.exec(`refresh streaming table ` + f.name)
		l.compare(s, f.name, f.predicate, f.query)
	}
	s.want(`select count(*) from rwproxy.refreshes where state not in ('COMPLETED', 'FAILED')`, "0")
	t.Log(strings.Join(s.rows(`select target_table, technique, reason, state, count(*) from rwproxy.refreshes group by 1, 2, 3, 4 order by 1, 2, 3, 4`), "\n"))
}

// act repeats something in a session of its own until the load ends.
func (l *load) act(url string, p protocol, action func(*session, *rand.Rand) error) {
	l.t.Helper()
	s := connect(l.t, url)
	s.protocol = p
	l.actors++
	r := rand.New(rand.NewPCG(l.seed, l.actors))
	l.group.Go(func() error {
		for l.context.Err() == nil {
			if err := action(s, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeSource is one transaction on the rows of a share, which some roll back.
// Nothing of it may fail.
func (l *load) writeSource(s *session, r *rand.Rand, share int) error {
	mine := fmt.Sprintf("id %% 3 = %d", share)
	statements := []string{"begin"}
	for range 1 + r.IntN(3) {
		statements = append(statements, pick(r, []string{
			fmt.Sprintf(`insert into sales values (%d, date '2024-01-01' + %d, nullif(%d, 7), %d)`, l.nextID.Add(1)*3+int64(share), r.IntN(8), r.IntN(8), r.IntN(100)),
			fmt.Sprintf(`update sales set amount = amount + 1 where %s and region = %d`, mine, r.IntN(7)),
			fmt.Sprintf(`update sales set day = date '2024-01-01' + %d where %s and id %% 20 = %d`, r.IntN(8), mine, r.IntN(20)),
			fmt.Sprintf(`delete from sales where %s and id %% 30 = %d and (select count(*) from sales) > 200`, mine, r.IntN(30)),
		}))
	}
	statements = append(statements, pick(r, []string{"commit", "commit", "commit", "rollback"}))
	return runAll(s, statements...)
}

func (l *load) writeDimension(s *session, r *rand.Rand) error {
	n := r.IntN(6) + 1
	return runAll(s, pick(r, []string{
		fmt.Sprintf(`update regions set name = 'region %d' where region = %d`, r.IntN(100), n),
		fmt.Sprintf(`delete from regions where region = %d`, n),
		fmt.Sprintf(`insert into regions values (%d, 'new') on conflict do nothing`, n),
	}))
}

// writeTarget changes rows that a refresh writes. Whoever does so may be the
// one that Postgres chooses to end a deadlock.
func (l *load) writeTarget(s *session, r *rand.Rand) error {
	err := runAll(s, pick(r, []string{
		fmt.Sprintf(`update totals set amount = 0 where region = %d`, r.IntN(7)),
		fmt.Sprintf(`delete from totals where day = date '2024-01-01' + %d`, r.IntN(8)),
		`insert into totals select * from totals where day = '2024-01-05' limit 2`,
		`delete from summary where day = '2024-01-06'`,
	}))
	if sqlState(err) == "40P01" {
		return nil
	}
	return err
}

// refreshChain refreshes a chain in one transaction, which may have to be
// repeated.
func (l *load) refreshChain(s *session, _ *rand.Rand) error {
	return transient(s, runAll(s, `begin isolation level repeatable read`, `refresh streaming table totals`, `refresh streaming table summary`, `commit`))
}

// prove compares a refresh with a recompute in one snapshot.
func (l *load) prove(s *session, r *rand.Rand) error {
	f := loadedFlows[2+r.IntN(2)]
	if err := runAll(s, `begin isolation level repeatable read`, `refresh streaming table `+f.name); err != nil {
		return transient(s, err)
	}
	if wrong, err := differences(s, f.name, f.predicate, f.query); err != nil || len(wrong) > 0 {
		return errors.Join(err, fmt.Errorf("under load %s is wrong: %q", f.name, wrong))
	}
	return transient(s, runAll(s, `commit`))
}

// transient forgives a transaction what it may be repeated after, and ends it.
func transient(s *session, err error) error {
	if code := sqlState(err); code != "40001" && code != "40P01" {
		return err
	}
	return runAll(s, `rollback`)
}

// compare checks a window against a recompute.
func (l *load) compare(s *session, table, predicate, query string) {
	l.t.Helper()
	wrong, err := differences(s, table, predicate, query)
	if err != nil {
		l.t.Fatal(describe(err))
	}
	if len(wrong) > 0 {
		l.t.Errorf("%s differs from a recompute (+ too much, - too little)\n%s", table, strings.Join(wrong, "\n"))
	}
}

// differences lists the rows by image that a window has too much and too
// little, compared with a query.
func differences(s *session, table, predicate, query string) ([]string, error) {
	columns := s.columnNames(`select * from ` + table)
	list := "row(" + strings.Join(columns, ", ") + ")::text"
	is := `select ` + list + ` from ` + table + ` where ` + predicate
	should := `select ` + list + ` from (` + query + `) q where ` + predicate
	result, err := s.run(`(select '+', * from (` + is + ` except all ` + should + `) a) union all (select '-', * from (` + should + ` except all ` + is + `) b)`)
	if err != nil {
		return nil, err
	}
	return textRows(result), nil
}

// runAll runs statements up to the first error.
func runAll(s *session, statements ...string) error {
	for _, sql := range statements {
		if _, err := s.run(sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}
