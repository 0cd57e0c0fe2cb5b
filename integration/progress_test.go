package integration

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// progressShape is how far a refresh has come, as users read it.
var progressShape = regexp.MustCompile(`^[a-z ]+(, (about )?[0-9]+ rows)?, [0-9]{2,}:[0-9]{2}:[0-9]{2}$`)

// told is a session whose notices can be waited for while a statement runs.
type told struct {
	*session
	notices chan string
}

func connectTold(t *testing.T, d database, p protocol) told {
	t.Helper()
	config, err := pgconn.ParseConfig(d.url)
	if err != nil {
		t.Fatal(err)
	}
	notices := make(chan string, 1000)
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices <- n.Message }
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, protocol: p, conn: conn}
	t.Cleanup(s.close)
	return told{s, notices}
}

// hears waits for a notice that begins so, and returns the rest of it.
func (s told) hears(prefix string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		select {
		case message := <-s.notices:
			if rest, found := strings.CutPrefix(message, prefix); found {
				return rest
			}
		case <-ctx.Done():
			s.t.Fatalf("no notice begins with %q", prefix)
		}
	}
}

func TestARefreshThatTakesItsTimeSaysHowFarItHasCome(t *testing.T) {
	t.Parallel()
	for _, p := range []protocol{simple, extended} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			s := connectTold(t, d, p)
			g := s.createGated(d)
			s.exec(`set rwproxy.progress = on`)
			g.close()
			outcome := g.startRefresh(s.session, `refresh streaming table gated`)
			for range 2 {
				if text := s.hears("refreshing public.gated: "); !progressShape.MatchString(text) {
					t.Errorf("notice %q", text)
				}
			}
			if text := g.holder.value(`select progress from rwproxy.refreshes where state = 'RUNNING'`); !progressShape.MatchString(text) {
				t.Errorf("progress %q", text)
			}
			g.open()
			if err := done(t, outcome); err != nil {
				t.Fatal(err)
			}
			s.want(readGated, afterRefresh...)
			g.holder.want(`select count(*) from rwproxy.progress`, "0")
			g.holder.want(`select count(*) from rwproxy.refreshes where progress is not null`, "0")
		})
	}
}

func TestProgressIsToldWhileWaitingAndInATransaction(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connectTold(t, d, simple)
	g := s.createGated(d)
	g.holder.exec(`select pg_advisory_lock(1920430194, 'gated'::regclass::oid::integer)`)
	s.exec(`set rwproxy.progress = on`, `begin`)
	outcome := g.startRefresh(s.session, `refresh streaming table gated`)
	if text := s.hears("refreshing public.gated: waiting for the lock, "); !strings.HasPrefix(text, "00:00:0") {
		t.Errorf("elapsed %q", text)
	}
	g.close()
	g.holder.exec(`select pg_advisory_unlock(1920430194, 'gated'::regclass::oid::integer)`)
	// The two rows that it has deleted are not among those that it has inserted.
	if text := s.hears("refreshing public.gated: inserting, "); strings.Contains(text, "rows") && !strings.HasPrefix(text, "about 0 rows") {
		t.Errorf("inserting, %s", text)
	}
	g.open()
	if err := done(t, outcome); err != nil {
		t.Fatal(err)
	}
	s.exec(`commit`)
	s.want(readGated, afterRefresh...)
}

func TestProgressOfAFailedRefreshIsForgotten(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connectTold(t, d, simple)
	g := s.createGated(d)
	g.close()
	outcome := g.startRefresh(s.session, `refresh streaming table gated`)
	eventually(t, "progress is shown", func() bool {
		return g.holder.value(`select count(progress) from rwproxy.refreshes where state = 'RUNNING'`) == "1"
	})
	if err := s.conn.CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := sqlState(done(t, outcome)); code != "57014" {
		t.Errorf("SQLSTATE %q", code)
	}
	g.open()
	g.holder.want(`select count(*) from rwproxy.progress`, "0")
	for len(s.notices) > 0 {
		if message := <-s.notices; strings.HasPrefix(message, "refreshing ") {
			t.Errorf("a notice that nobody asked for: %s", message)
		}
	}
}

func TestProgressIsOnOrOff(t *testing.T) {
	eachProtocol(t, func(_ *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`set rwproxy.progress = sometimes`)
		s.fails("22023", `refresh streaming table totals`)
		s.want(`select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`, "0")
		s.exec(`set rwproxy.progress = off`, `refresh streaming table totals`)
	})
}

func TestARefreshThatRunsByItselfShowsItsProgress(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	g := s.createGated(d)
	g.close()
	s.exec(`refresh streaming table gated async`)
	eventually(t, "progress is shown", func() bool {
		return g.holder.value(`select count(progress) from rwproxy.refreshes where state = 'RUNNING'`) == "1"
	})
	if text := g.holder.value(`select progress from rwproxy.refreshes where state = 'RUNNING'`); !progressShape.MatchString(text) {
		t.Errorf("progress %q", text)
	}
	g.open()
	eventually(t, "the refresh completes", func() bool {
		return g.holder.value(`select count(*) from rwproxy.refreshes where state <> 'COMPLETED'`) == "0"
	})
	s.want(readGated, afterRefresh...)
	eventually(t, "progress is forgotten", func() bool { return g.holder.value(`select count(*) from rwproxy.progress`) == "0" })
}
