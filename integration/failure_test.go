package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestASourceQueryThatFailsHalfWayChangesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table source (id integer, divisor integer)`, `insert into source select n, 1 from generate_series(1, 1000) n`,
			`create streaming table target flow replace where id > 0 by name select id, 10 / divisor as quotient from source`,
			`update source set divisor = 2`, `insert into source values (1001, 0)`)
		e := s.fails("22012", `refresh streaming table target`)
		if e.Message != "division by zero" {
			t.Errorf("message %q", e.Message)
		}
		s.want(`select count(*), min(quotient), max(quotient) from target`, "1000|10|10")
		s.want(`select state, error like '%division by zero%', rows_inserted is null or rows_inserted = 0 from rwproxy.refreshes
			order by requested_at desc limit 1`, "FAILED|t|t")
		s.exec(`delete from source where divisor = 0`, `refresh streaming table target`)
		s.want(`select count(*), min(quotient), max(quotient) from target`, "1000|5|5")
		s.want(`select state from rwproxy.refreshes order by requested_at`, "COMPLETED", "FAILED", "COMPLETED")
	})
}

func TestAKilledProxyLeavesTheTargetAsItWas(t *testing.T) {
	t.Parallel()
	for _, p := range []protocol{simple, extended} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			g := connect(t, d.url).createGated(d)
			own := ownProxy(t, server.URL("postgres"))
			s := connect(t, own.url(d.direct))
			s.protocol = p
			g.close()
			outcome := g.startRefresh(s, `refresh streaming table gated`)
			own.kill()
			if err := done(t, outcome); err == nil {
				t.Error("the client of a killed proxy was told that its refresh succeeded")
			}
			g.open()
			// The backend notices at its next message that nobody is there.
			g.gone(s.pid())
			g.recovered(d, "FAILED")
		})
	}
}

func TestAKilledProxyUndoesAUsersTransaction(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	g := connect(t, d.url).createGated(d)
	own := ownProxy(t, server.URL("postgres"))
	s := connect(t, own.url(d.direct))
	s.exec(`begin`, `refresh streaming table gated`)
	s.want(readGated, afterRefresh...)
	own.kill()
	g.gone(s.pid())
	g.holder.want(readGated, beforeRefresh...)
	connect(t, d.url).exec(`refresh streaming table gated`)
	g.holder.want(readGated, afterRefresh...)
}

func TestATerminatedBackendLeavesTheTargetAsItWas(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		g := s.createGated(d)
		g.close()
		outcome := g.startRefresh(s, `refresh streaming table gated`)
		g.holder.exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, s.pid()))
		if code := sqlState(done(t, outcome)); code != "57P01" {
			t.Errorf("the client got SQLSTATE %q, want Postgres's 57P01", code)
		}
		g.open()
		g.recovered(d, "FAILED")
	})
}

func TestACanceledRefreshLeavesTheTargetAsItWas(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		g := s.createGated(d)
		g.close()
		outcome := g.startRefresh(s, `refresh streaming table gated`)
		if err := s.conn.CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code := sqlState(done(t, outcome)); code != "57014" {
			t.Errorf("SQLSTATE %q", code)
		}
		g.open()
		s.want(readGated, beforeRefresh...)
		g.recovered(d, "CANCELED")
	})
}

func TestARefreshThatIsCanceledTwiceIsRecorded(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		g := s.createGated(d)
		g.close()
		outcome := g.startRefresh(s, `refresh streaming table gated`)
		// Comes between the refresh's transaction and the one that records it.
		locker := connect(t, d.direct)
		locker.exec(`begin`)
		locked := make(chan error, 1)
		go func() {
			_, err := locker.run(`lock table rwproxy.refresh in exclusive mode`)
			locked <- err
		}()
		waits := func(pid uint32) string {
			return g.holder.value(fmt.Sprintf(`select coalesce(min(waitstart)::text, '') from pg_locks where pid = %d and not granted`, pid))
		}
		eventually(t, "the table waits for the refresh", func() bool { return waits(locker.pid()) != "" })
		before := waits(s.pid())
		for range 2 {
			if err := s.conn.CancelRequest(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is being recorded", func() bool {
				now := waits(s.pid())
				return now != "" && now != before
			})
			before = waits(s.pid())
		}
		if err := done(t, locked); err != nil {
			t.Fatal(describe(err))
		}
		locker.exec(`rollback`)
		if code := sqlState(done(t, outcome)); code != "57014" {
			t.Errorf("SQLSTATE %q", code)
		}
		g.open()
		g.recovered(d, "CANCELED")
	})
}

func TestARefreshStopsAtTheStatementTimeout(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		g := s.createGated(d)
		g.close()
		s.exec(`set statement_timeout = '200ms'`)
		s.fails("57014", `refresh streaming table gated`)
		s.exec(`reset statement_timeout`)
		g.open()
		g.recovered(d, "FAILED")
	})
}

func TestAClientThatVanishesTakesItsRefreshWithIt(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		g := s.createGated(d)
		g.close()
		outcome := g.startRefresh(s, `refresh streaming table gated`)
		pid := s.pid()
		if err := s.conn.Conn().Close(); err != nil {
			t.Fatal(err)
		}
		if err := done(t, outcome); err == nil {
			t.Error("a closed connection reported success")
		}
		g.open()
		g.gone(pid)
		g.recovered(d, "FAILED")
		if got := g.holder.value(`select error from rwproxy.refreshes where state = 'FAILED'`); got != "connection to client lost" {
			t.Errorf("the history says %q", got)
		}
	})
}

func TestAProxyThatIsStoppedFinishesItsRefresh(t *testing.T) {
	t.Parallel()
	for _, p := range []protocol{simple, extended} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			g := connect(t, d.url).createGated(d)
			own := ownProxy(t, server.URL("postgres"))
			s, idle := connect(t, own.url(d.direct)), connect(t, own.url(d.direct))
			s.protocol = p
			g.close()
			outcome := g.startRefresh(s, `refresh streaming table gated`)
			if err := own.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the proxy refuses new clients", func() bool {
				conn, err := pgconn.Connect(t.Context(), own.url(d.direct))
				if err == nil {
					_ = conn.Close(t.Context())
				}
				return err != nil
			})
			g.gone(idle.pid())
			g.open()
			if err := done(t, outcome); err != nil {
				t.Error(describe(err))
			}
			<-own.exited
			if own.status != nil {
				t.Errorf("the proxy left with %v\n%s", own.status, own.log.String())
			}
			g.holder.want(readGated, afterRefresh...)
		})
	}
}

func TestARefreshThatWaitsForAnotherCanBeCanceled(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		g := s.createGated(d)
		second, third := connect(t, d.url), connect(t, d.url)
		second.protocol, third.protocol = s.protocol, s.protocol
		g.close()
		first := g.startRefresh(s, `refresh streaming table gated`)
		outcome := g.startRefresh(second, `refresh streaming table gated`)
		if err := second.conn.CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code := sqlState(done(t, outcome)); code != "57014" {
			t.Errorf("SQLSTATE %q", code)
		}
		third.exec(`set lock_timeout = '100ms'`)
		third.fails("55P03", `refresh streaming table gated`)
		g.open()
		if err := done(t, first); err != nil {
			t.Error(describe(err))
		}
		s.want(readGated, afterRefresh...)
		// Nothing of the two that gave up is left in the way.
		second.exec(`refresh streaming table gated`)
		third.exec(`refresh streaming table gated`)
	})
}

func TestAKilledServerLeavesTheTargetAsItWas(t *testing.T) {
	t.Parallel()
	own, p := ownServer(t, "killed")
	// Not dropped: the whole server goes.
	d := database{name: "postgres", url: p.url(own.URL("postgres")), direct: own.URL("postgres")}
	s := connect(t, d.url)
	g := s.createGated(d)
	g.close()
	outcome := g.startRefresh(s, `refresh streaming table gated`)
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := done(t, outcome); err == nil {
		t.Error("the client of a killed server was told that its refresh succeeded")
	}
	if _, err := pgconn.Connect(t.Context(), d.url); sqlState(err) != "08006" && sqlState(err) != "57P03" {
		t.Errorf("without a server a new client gets %v", err)
	}
	if err := own.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d = database{name: "postgres", url: p.url(own.URL("postgres")), direct: own.URL("postgres")}
	g.holder = connect(t, d.direct)
	g.recovered(d, "FAILED")
}

// recovered checks what must be true after a refresh of a gated flow did not
// finish: nothing changed, history says so, and the next refresh is right.
func (g *gate) recovered(d database, state string) {
	t := g.holder.t
	t.Helper()
	g.holder.want(readGated, beforeRefresh...)
	eventually(t, "the refresh is recorded as ended", func() bool {
		return g.holder.value(`select count(*) from rwproxy.refreshes where state <> 'RUNNING'`) == "2"
	})
	if got := g.holder.rows(`select concat_ws(' ', state, error) from rwproxy.refreshes order by requested_at`); !strings.HasPrefix(got[1], state+" ") {
		t.Errorf("the refresh is recorded as %s\n%s", got, shared.log.String())
	}
	s := connect(t, d.url)
	s.exec(`refresh streaming table gated`)
	s.want(readGated, afterRefresh...)
	s.want(`select state from rwproxy.refreshes order by requested_at`, "COMPLETED", state, "COMPLETED")
	s.holdsNoLock()
}
