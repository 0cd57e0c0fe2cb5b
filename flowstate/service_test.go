package flowstate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

const servicePids = "select pid from pg_stat_activity where application_name = 'rwproxy' and datname = current_database()"

func TestServiceReusesItsConnections(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := connect(t, url, "")
	database := s.conn.Config().Database
	service := newService(t, strings.Replace(url, "/"+database, "/postgres", 1)) // the database is that of the call
	pid := func() string {
		t.Helper()
		var pid string
		ok(t, service.Do(t.Context(), database, func(session pgsession.Session) error {
			rows, err := session.Query(t.Context(), "select pg_backend_pid(), current_database(), current_setting('application_name')")
			if err == nil {
				pid = rows[0][0].Text
				if rows[0][1].Text != database || rows[0][2].Text != "rwproxy" {
					t.Errorf("connected to %s as %s", rows[0][1].Text, rows[0][2].Text)
				}
			}
			return err
		}))
		return pid
	}
	first := pid()
	if second := pid(); second != first {
		t.Error("the idle connection was not used")
	}
	s.must("select pg_terminate_backend(" + first + ", 10000)")
	if third := pid(); third == first {
		t.Error("a dead connection was used")
	}

	failure := errors.New("left in an unknown state")
	kept := pid()
	err := service.Do(t.Context(), database, func(pgsession.Session) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if pid() == kept {
		t.Error("the connection of a failed call was used again")
	}
	kept = pid()
	ok(t, service.Do(t.Context(), database, func(session pgsession.Session) error {
		_, err := session.Exec(t.Context(), "begin")
		return err
	}))
	if pid() == kept {
		t.Error("a connection left in a transaction was used again")
	}
}

func TestServiceLimitsItsConnections(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := connect(t, url, "")
	database := s.conn.Config().Database
	service := newService(t, url)
	busy, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if err := service.Do(context.Background(), database, func(pgsession.Session) error {
				busy <- struct{}{}
				<-release
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	<-busy
	<-busy
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := service.Do(ctx, database, func(pgsession.Session) error { return errors.New("ran on a third connection") })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want to have waited", err)
	}
	service.Close()
	close(release)
	group.Wait()
	s.untilNone(servicePids)
	if got := pgdiag.Code(service.Do(t.Context(), database, nil)); got != "57P01" {
		t.Errorf("after Close: SQLSTATE %s", got)
	}
	service.Close()
}

func TestServiceReportsAnUnreachableDatabase(t *testing.T) {
	t.Parallel()
	service := newService(t, pgtest.Database(t))
	err := service.EnsureInstalled(t.Context(), "there_is_no_such_database")
	var d *pgdiag.Diagnostic
	if !errors.As(err, &d) || d.Code != "3D000" || d.Message != `database "there_is_no_such_database" does not exist` {
		t.Errorf("got %v", err)
	}
	if _, err := flowstate.NewService("postgres://h:port/"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v for a URL that is none", err)
	}
}

func TestAServiceRoleThatLacksRightsIsNamed(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := connect(t, url, "")
	s.must("do $$ begin if not exists (select from pg_roles where rolname = 'weak_service') then create role weak_service; end if; end $$", "alter role weak_service login")
	config, err := pgx.ParseConfig(url)
	ok(t, err)
	service, err := flowstate.NewService(fmt.Sprintf("postgres://weak_service@%s:%d/postgres", config.Host, config.Port))
	ok(t, err)
	t.Cleanup(service.Close)
	err = service.EnsureInstalled(t.Context(), config.Database)
	var d *pgdiag.Diagnostic
	if !errors.As(err, &d) || d.Code != "42501" || d.Hint != "GRANT CREATE ON DATABASE "+config.Database+" TO weak_service." {
		t.Errorf("got %v", err)
	}
	s.must("alter role weak_service nologin")
	err = service.Do(t.Context(), "template1", func(pgsession.Session) error { return nil })
	if !errors.As(err, &d) || d.Code != "08001" || d.Detail != `role "weak_service" is not permitted to log in.` {
		t.Errorf("got %v", err)
	}
}

// Whoever owns a database may set them there: for refreshes they hold.
func TestTheLimitsOfADatabaseHoldForRefreshesOnly(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := connect(t, url, "")
	database := s.conn.Config().Database
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout"} {
		s.must("alter database " + database + " set " + name + " = '7s'")
	}
	const limits = "select string_agg(setting, ' ' order by name) from pg_settings where name ~ '^(statement|lock|idle.*)_timeout$'"
	service := newService(t, url)
	ok(t, service.Do(t.Context(), database, func(session pgsession.Session) error {
		rows, err := session.Query(t.Context(), limits)
		if err == nil && rows[0][0].Text != "60000 0 0 0" {
			t.Errorf("those of the service are %s", rows[0][0].Text)
		}
		return err
	}))
	runner := asRunner(t, service, database, s.conn.Config().User)
	if got := runner.value(limits); got != "60000 60000 7000 7000" {
		t.Errorf("those of a refresh are %s", got)
	}
}
