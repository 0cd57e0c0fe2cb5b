package flowstate_test

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sync/errgroup"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// asRunner opens a session of a role's runner.
func asRunner(t *testing.T, service *flowstate.Service, database, role string) *session {
	t.Helper()
	conn, err := service.ConnectRunner(t.Context(), database, role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return &session{pgsession.FromPgx(conn), t, conn}
}

// dropRunner drops what runs for a role, before the role itself is dropped.
func dropRunner(t *testing.T, super *session, role string) {
	t.Cleanup(func() {
		config := super.conn.Config()
		conn, err := pgx.ConnectConfig(context.Background(), config)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), "do $$ begin execute coalesce((select format('drop role %I', n.rolname) "+
			"from pg_roles r join pg_roles n on n.rolname = 'rwproxy_run_' || r.oid where r.rolname = '"+role+"'), ''); end $$")
		if err != nil {
			t.Error(err)
		}
	})
}

func TestARunnerHasNoMoreRightsThanItsRole(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	dropRunner(t, d.super, d.strangerName)
	service := newService(t, d.url)
	database := d.super.conn.Config().Database
	s := asRunner(t, service, database, d.strangerName)
	if got := s.value("select current_user"); got != d.strangerName {
		t.Errorf("runs as %s", got)
	}
	for _, escape := range []string{"reset role", "reset session authorization", "set role none", "discard all"} {
		s.must(escape)
		if got := s.value("select pg_has_role(oid, 'MEMBER') and rolname not in (session_user, $1) from pg_roles order by 1 desc limit 1",
			d.strangerName); got != "f" {
			t.Errorf("after %q it is a member of another role", escape)
		}
		if got := s.value("select rolsuper from pg_roles where rolname = current_user"); got != "f" {
			t.Errorf("after %q it is a superuser", escape)
		}
		for _, role := range []string{d.ownerName, d.super.conn.Config().User} {
			_, err := s.Exec(t.Context(), "set role "+role)
			refused(t, err, "42501", "permission denied to set role")
			_, err = s.Exec(t.Context(), "set session authorization "+role)
			refused(t, err, "42501", "permission denied to set session authorization")
		}
	}
}

// A function of a query runs at COMMIT too, where no function of ours is above
// it that could forbid SET ROLE.
func TestWhatRunsAtCommitHasNoMoreRightsThanItsRole(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	dropRunner(t, d.super, d.strangerName)
	service := newService(t, d.url)
	s := asRunner(t, service, d.super.conn.Config().Database, d.strangerName)
	s.must(`create table public.seen (who text)`,
		`create function public.look() returns trigger language plpgsql as $$
		 begin
		     reset role;
		     perform set_config('rwproxy_test.who', (select rolname || ' ' || rolsuper from pg_roles where rolname = current_user), false);
		     return null;
		 end $$`,
		`create constraint trigger at_commit after insert on public.seen deferrable initially deferred for each row execute function public.look()`,
		`insert into public.seen values ('')`)
	want := d.strangerName + " false"
	if got := s.value("select current_setting('rwproxy_test.who')"); got != want {
		t.Errorf("the trigger ran as %s, want %s", got, want)
	}
	s.must("drop table public.seen cascade", "drop function public.look")
}

func TestTheServiceRoleRunsAsItself(t *testing.T) {
	t.Parallel()
	url := installed(t)
	super := connect(t, url, "")
	name := super.conn.Config().User
	service := newService(t, url)
	ok(t, service.CheckRunner(t.Context(), super.conn.Config().Database, name))
	if got := asRunner(t, service, super.conn.Config().Database, name).value("select session_user"); got != name {
		t.Errorf("runs as %s", got)
	}
}

func TestARunnerThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	database := d.super.conn.Config().Database
	service := newService(t, d.url)
	refused(t, service.CheckRunner(t.Context(), database, "nobody at all"), "42704", `role "nobody at all" does not exist`)

	weakURL, err := url.Parse(d.url)
	ok(t, err)
	weakURL.User = url.User(d.strangerName)
	err = newService(t, weakURL.String()).CheckRunner(t.Context(), database, d.ownerName)
	refused(t, err, "42501", `rwproxy may not run refreshes as role "`+d.ownerName+`"`)
	var diagnostic *pgdiag.Diagnostic
	if errors.As(err, &diagnostic); diagnostic.Hint == "" {
		t.Error("no hint")
	}

	dropRunner(t, d.super, d.strangerName)
	ok(t, service.CheckRunner(t.Context(), database, d.strangerName))
	ok(t, service.CheckRunner(t.Context(), database, d.strangerName))
	runner := "rwproxy_run_" + d.super.value("select oid from pg_roles where rolname = $1", d.strangerName)
	d.super.must("grant " + d.ownerName + " to " + runner)
	_, err = service.ConnectRunner(t.Context(), database, d.strangerName)
	refused(t, err, "55000", "is not as rwproxy made it")
}

// The password of a runner follows the service's own. The server's log, which
// has every statement, never has it.
func TestARunnerLogsInWithAPassword(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.DebugLevel)
	postgres, err := embedded.Start(t.Context(), embedded.Config{
		DataDir:  pgtest.TempDir(t),
		HBA:      []string{"host all all 127.0.0.1/32 scram-sha-256"},
		Settings: map[string]string{"log_statement": "all"},
		Logger:   zap.New(core),
	})
	ok(t, err)
	t.Cleanup(func() { ok(t, postgres.Stop(context.Background())) })
	super := connect(t, "postgres:///postgres?user=postgres&host="+postgres.SocketDir()+"&port="+strconv.Itoa(postgres.Port()), "")
	super.must("create role requester")
	for _, password := range []string{"first secret", "second secret"} {
		super.must("alter role postgres password " + rewrite.QuoteLiteral(password))
		u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: "127.0.0.1:" + strconv.Itoa(postgres.Port()), Path: "/postgres"}
		for range 2 {
			s := asRunner(t, newService(t, u.String()), "postgres", "requester")
			if got := s.value("select current_user"); got != "requester" {
				t.Errorf("runs as %s", got)
			}
			secret := s.conn.Config().Password
			if secret == "" || secret == password {
				t.Errorf("the password of the runner is %q", secret)
			}
			if inLog(logged, secret) {
				t.Error("the server's log has the password of the runner")
			}
		}
		if !inLog(logged, "password 'SCRAM-SHA-256$4096:") {
			t.Error("the server's log has no statement that sets a password")
		}
		super.must("alter role rwproxy_run_" + super.value("select oid from pg_roles where rolname = 'requester'") + " nologin")
		_, err := newService(t, u.String()).ConnectRunner(t.Context(), "postgres", "requester")
		refused(t, err, "55000", "is not as rwproxy made it")
		super.must("alter role rwproxy_run_" + super.value("select oid from pg_roles where rolname = 'requester'") + " login")
	}
}

// Databases have no lock in common.
func TestARunnerIsMadeFromSeveralDatabasesAtOnce(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	dropRunner(t, d.super, d.strangerName)
	databases := []string{d.super.conn.Config().Database, connect(t, installed(t), "").conn.Config().Database, "postgres"}
	service := newService(t, d.url)
	var group errgroup.Group
	for i := range 12 {
		group.Go(func() error {
			return service.CheckRunner(context.Background(), databases[i%len(databases)], d.strangerName)
		})
	}
	ok(t, group.Wait())
}

func TestRunnersAreDropped(t *testing.T) {
	t.Parallel()
	postgres, err := embedded.Start(t.Context(), embedded.Config{DataDir: pgtest.TempDir(t), Trust: true})
	ok(t, err)
	t.Cleanup(func() { ok(t, postgres.Stop(context.Background())) })
	super := connect(t, postgres.URL("postgres"), "")
	super.must("create role requester", "create role other login", "create role rwproxy_run_other")
	service := newService(t, postgres.URL("postgres"))
	ok(t, service.CheckRunner(t.Context(), "postgres", "requester"))
	const runners = "select count(*) from pg_roles where rolname ~ '^rwproxy_run_'"
	ok(t, flowstate.DropRunners(t.Context(), connect(t, postgres.URL("postgres"), "other").conn))
	if got := super.value(runners); got != "2" {
		t.Errorf("a role without rights leaves %s roles", got)
	}
	ok(t, flowstate.DropRunners(t.Context(), super.conn))
	if got := super.value(runners); got != "1" {
		t.Errorf("%s roles are left", got)
	}
	asRunner(t, service, "postgres", "requester")
}

func inLog(logged *observer.ObservedLogs, text string) bool {
	for _, e := range logged.All() {
		for _, field := range e.Context {
			if line, ok := field.Interface.([]byte); ok && strings.Contains(string(line), text) {
				return true
			}
		}
	}
	return false
}

func TestAServerNoticesSoonThatAJobsProxyIsGone(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	dropRunner(t, d.super, d.strangerName)
	s := asRunner(t, newService(t, d.url), d.super.conn.Config().Database, d.strangerName)
	got := s.value(`select string_agg(name || ' ' || setting, ', ' order by name) from pg_settings
		where name ~ '^tcp_keepalives|^idle_' or name = 'client_connection_check_interval'`)
	want := "client_connection_check_interval 1000, idle_in_transaction_session_timeout 60000, idle_session_timeout 60000, " +
		"tcp_keepalives_count 4, tcp_keepalives_idle 10, tcp_keepalives_interval 5"
	if got != want {
		t.Errorf("the settings are %s", got)
	}
}
