package jobs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// install installs rwproxy's schemas as an instance without jobs would.
func install(t *testing.T, url string) {
	t.Helper()
	s := connect(t, url)
	defer s.conn.Close(t.Context()) // else the database could not be dropped
	if err := flowstate.Install(t.Context(), s.conn); err != nil {
		t.Fatal(err)
	}
}

func databaseOf(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config.Database
}

func TestDatabasesThatHoldFlowsAreServedAndNoOthers(t *testing.T) {
	with, without := pgtest.Database(t), pgtest.Database(t)
	install(t, with)
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 1)
	i.listens(databaseOf(t, with))
	if i.serves(databaseOf(t, without)) {
		t.Error("a database without flows is served")
	}
	// The session that listens is at rest.
	s := connect(t, with)
	s.until(`select state || ' ' || coalesce(xact_start::text, 'no transaction') || ' ' || coalesce(backend_xmin::text, 'no snapshot')
		from pg_stat_activity where application_name = 'rwproxy' and datname = current_database()`, "idle no transaction no snapshot")
	if got := strings.Join(i.Databases(), " "); got != databaseOf(t, with) {
		t.Errorf("it says that it serves %s", got)
	}
}

func TestADatabaseIsServedByAllInstancesAsSoonAsOneHasInstalledTheSchemas(t *testing.T) {
	server := pgtest.Server(t).URL("postgres")
	first, second := newInstance(t, server, 1), newInstance(t, server, 1)
	admin := connect(t, server)
	eventually(t, "both look for databases", func() bool {
		return admin.value(`select count(*) from pg_stat_activity where query ~ 'pg_database' and state = 'idle' and application_name = 'rwproxy'`) == "2"
	})
	url := pgtest.Database(t)
	if err := first.Service.EnsureInstalled(t.Context(), databaseOf(t, url)); err != nil {
		t.Fatal(err)
	}
	first.listens(databaseOf(t, url))
	second.listens(databaseOf(t, url))
}

func TestASchemaThatIsOlderIsBroughtUpToDateAndANewerOneIsLeftAlone(t *testing.T) {
	older, newer := pgtest.Database(t), pgtest.Database(t)
	o, n := connect(t, older), connect(t, newer)
	// What the first version left, before there was anything else.
	o.must(`create schema rwproxy`, `create table rwproxy.schema_version (version integer primary key, installed_at timestamptz default now())`,
		`create table rwproxy.compat_version (hash text primary key)`)
	install(t, newer)
	n.must(`insert into rwproxy.schema_version (version) values (10000)`)
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 1)
	o.until(`select max(version) > 1 from rwproxy.schema_version`, "t")
	i.listens(databaseOf(t, older))
	eventually(t, "the newer one is left alone", func() bool {
		return i.logged.FilterMessage("database not served").Len() == 1 && !i.serves(databaseOf(t, newer))
	})
	if got := i.Unserved(); !slices.Equal(got, []string{databaseOf(t, newer)}) {
		t.Errorf("%q are said to hold flows and not to be served", got)
	}
	poke(i.discovery)
	poke(i.discovery)
	o.must(`select pg_notify('rwproxy', 'installed')`) // is looked at again, and is still one's own
	i.listens(databaseOf(t, older))
	if got := i.logged.FilterMessage("database not served").Len(); got != 1 {
		t.Errorf("that is said %d times", got)
	}
}

func TestASchemaThatBecomesNewerIsLeftAlone(t *testing.T) {
	url := pgtest.Database(t)
	install(t, url)
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 1)
	i.listens(databaseOf(t, url))
	s := connect(t, url)
	s.until(listening(databaseOf(t, url)), "1")
	s.must(`begin`, `insert into rwproxy.schema_version (version) values (10000)`, `select pg_notify('rwproxy', 'installed')`, `commit`)
	eventually(t, "it is no longer served", func() bool { return !i.serves(databaseOf(t, url)) })
	s.until(`select count(*) `+ours(databaseOf(t, url)), "0")
}

func TestADatabaseThatIsServedCanBeDroppedRenamedAndCopied(t *testing.T) {
	server := pgtest.Server(t).URL("postgres")
	admin := connect(t, server)
	i := newInstance(t, server, 1)
	terminate := func(database string) {
		t.Helper()
		admin.must(`select pg_terminate_backend(pid) ` + ours(database))
	}
	create := func(database string) {
		t.Helper()
		admin.must(`drop database if exists `+database+` with (force)`, `create database `+database+` template template0`)
		install(t, in(t, server, database))
		poke(i.discovery)
		i.listens(database)
		admin.until(listening(database), "1")
	}
	ended := func(database string) {
		t.Helper()
		eventually(t, database+" is no longer served", func() bool { return !i.serves(database) })
	}

	create("dropped_with_force")
	admin.must(`drop database dropped_with_force with (force)`)
	ended("dropped_with_force")

	create("dropped")
	terminate("dropped")
	admin.must(`drop database dropped`)
	ended("dropped")

	create("original")
	terminate("original")
	admin.must(`create database copied template original`)
	// Copying may have taken longer than the database is left alone.
	eventually(t, "it can be renamed", func() bool {
		terminate("original")
		_, err := admin.conn.Exec(t.Context(), `alter database original rename to renamed`)
		return err == nil
	})
	ended("original")
	poke(i.discovery)
	i.listens("copied")
	i.listens("renamed")

	admin.must(`alter database copied allow_connections false`)
	poke(i.discovery)
	ended("copied")
	admin.until(`select count(*) `+ours("copied"), "0")
	admin.must(`drop database copied`, `drop database renamed with (force)`)
	ended("renamed")
}

func TestADatabaseThatDoesNotLetTheServiceInIsReportedOnce(t *testing.T) {
	url := pgtest.Database(t)
	server := pgtest.Server(t).URL("postgres")
	admin, name := connect(t, server), databaseOf(t, url)
	admin.must(`create role weak_service login`, `grant create on database `+name+` to weak_service`)
	t.Cleanup(func() {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, `drop owned by weak_service cascade; drop role weak_service`); err != nil {
			t.Error(err)
		}
	})
	weak := strings.Replace(in(t, server, "postgres"), "postgres@", "weak_service@", 1)
	install(t, strings.Replace(url, "postgres@", "weak_service@", 1))
	admin.must(`revoke connect on database ` + name + ` from public`)
	i := newInstance(t, weak, 1)
	const looks = `select max(query_start) from pg_stat_activity where query ~ 'pg_database' and application_name = 'rwproxy'`
	for range 4 {
		before := admin.value(looks)
		poke(i.discovery)
		eventually(t, "it looks again", func() bool { return admin.value(looks) != before })
	}
	if got := i.logged.FilterMessage("database not served").Len(); got != 1 {
		t.Errorf("it is said %d times that the database is not served", got)
	}
	if got := i.Unserved(); len(got) > 0 {
		t.Errorf("%q are said to hold flows: nobody can tell", got)
	}
	admin.must(`grant connect on database ` + name + ` to public`)
	poke(i.discovery)
	i.listens(name)
}
