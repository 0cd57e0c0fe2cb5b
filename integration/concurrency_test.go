package integration

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

func TestASecondRefreshOfATargetWaitsForTheFirst(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		g := s.createGated(d)
		second := connect(t, d.url)
		second.protocol = s.protocol
		g.close()
		first := g.startRefresh(s, `refresh streaming table gated`)
		// The second meets not the gate but the first.
		outcome := g.startRefresh(second, `refresh streaming table gated`)
		g.holder.want(`select state, count(*) from rwproxy.refreshes group by state order by state`, "COMPLETED|1", "RUNNING|1")
		g.holder.exec(`insert into source values (4, 'late')`)
		g.open()
		for _, o := range []<-chan error{first, outcome} {
			if err := done(t, o); err != nil {
				t.Fatal(describe(err))
			}
		}
		// The second saw the first one's result, and what came in between.
		s.want(readGated, append(afterRefresh[:3:3], "4|late")...)
		s.want(`select count(*) from rwproxy.refreshes where state = 'COMPLETED'`, "3")
	})
}

func TestRefreshesOfOneTargetDoNotDoubleItsRows(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	s.createTotals()
	var group errgroup.Group
	for i := range 6 {
		other := connect(t, d.url)
		if i%2 == 1 {
			other.protocol = extended
		}
		statement := []string{`refresh streaming table totals`, `refresh streaming table totals where day >= current_date - 2`, `begin; refresh streaming table totals; commit`}[i%3]
		if strings.HasPrefix(statement, "begin") {
			other.protocol = simple
		}
		group.Go(func() error {
			for range 5 {
				if _, err := other.run(statement); err != nil {
					return fmt.Errorf("%s: %s", statement, describe(err))
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	s.want(readTotals, "-2|1|10.00", "-1|1|20.00", "0|1|30.00")
}

func TestReadersNeverSeeAnEmptyOrHalfWindow(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	g := connect(t, d.url).createGated(d)
	s := connect(t, d.url)
	for _, statement := range []string{`refresh streaming table gated`, `refresh streaming table gated full`} {
		g.holder.exec(`update gated set value = 'old'`, `delete from gated where id = 3`)
		g.close()
		outcome := g.startRefresh(s, statement)
		g.holder.want(readGated, beforeRefresh...)
		g.open()
		if err := done(t, outcome); err != nil {
			t.Fatal(describe(err))
		}
		g.holder.want(readGated, afterRefresh...)
	}
}

func TestRefreshesOfDifferentTargetsDoNotWait(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	g := s.createGated(d)
	other := connect(t, d.url)
	other.createTotals()
	g.close()
	outcome := g.startRefresh(s, `refresh streaming table gated`)
	other.exec(`refresh streaming table totals`, `select count(*) from gated`, `insert into source values (5, 'x')`)
	g.open()
	if err := done(t, outcome); err != nil {
		t.Fatal(describe(err))
	}
}

func TestTwoProxiesStartTogetherOnAFreshDatabase(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	proxies := make([]*proxy, 2)
	var starting errgroup.Group
	for i := range proxies {
		starting.Go(func() (err error) {
			proxies[i], err = startProxy(server.URL("postgres"))
			return err
		})
	}
	err := starting.Wait()
	for _, p := range proxies {
		if p != nil {
			t.Cleanup(func() {
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	connect(t, d.direct).exec(createOrders, insertOrders)
	const flows = 8
	var creating errgroup.Group
	for i := range flows {
		s := connect(t, proxies[i%2].url(d.direct))
		creating.Go(func() error {
			_, err := s.run(strings.Replace(createTotals, "totals", fmt.Sprintf("totals_%d", i), 1))
			if err != nil {
				return fmt.Errorf("%s", describe(err))
			}
			return nil
		})
	}
	if err := creating.Wait(); err != nil {
		t.Fatal(err)
	}
	s := connect(t, d.url)
	s.want(`select count(*), count(distinct last_refresh_id) from rwproxy.flows`, "8|8")
	for i := range flows {
		s.want(fmt.Sprintf(`select day - current_date, orders, amount from totals_%d order by 1`, i), afterCreate...)
	}
	// What one proxy created the other refreshes.
	other := connect(t, proxies[1].url(d.direct))
	other.exec(`insert into orders values (4, current_date, 1)`, `refresh streaming table totals_0`)
	other.want(`select day - current_date, orders, amount from totals_0 order by 1`, "-1|1|20.00", "0|2|31.00")
}

func TestTheSameFlowCreatedTwiceAtOnceExistsOnce(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	connect(t, d.direct).exec(createOrders, insertOrders)
	outcomes := make([]error, 4)
	var creating errgroup.Group
	for i := range outcomes {
		s := connect(t, d.url)
		creating.Go(func() error {
			_, outcomes[i] = s.run(createTotals)
			return nil
		})
	}
	if err := creating.Wait(); err != nil {
		t.Fatal(err)
	}
	succeeded := 0
	for _, err := range outcomes {
		if err == nil {
			succeeded++
		} else if code := sqlState(err); code != "42P07" && code != "23505" && code != "42710" {
			t.Error(describe(err))
		}
	}
	if succeeded != 1 {
		t.Errorf("%d of them succeeded", succeeded)
	}
	s := connect(t, d.url)
	s.want(readTotals, afterCreate...)
	s.want(`select count(*) from rwproxy.flows`, "1")
}
