package flowstate_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

func TestManyProxiesInstallAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	errs := make([]error, 8)
	var group sync.WaitGroup
	for i := range errs {
		s := connect(t, url, "")
		group.Go(func() { errs[i] = flowstate.Install(t.Context(), s.conn) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	s := connect(t, url, "")
	if got := s.value("select count(*) = max(version) and count(*) > 0 from rwproxy.schema_version"); got != "t" {
		t.Error("the versions are not 1 to the last")
	}
}

func TestInstallingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.dailyTable()
	const catalog = `
		select string_agg(c.oid || ' ' || c.xmin, ',' order by c.oid)
		  from (select oid, xmin from pg_class union all select oid, xmin from pg_proc
		        union all select oid, xmin from pg_namespace) c`
	before := s.value(catalog)
	ok(t, flowstate.Install(t.Context(), s.conn))
	if s.value(catalog) != before {
		t.Error("the catalog changed")
	}
}

func TestInstallingFromAnEarlierVersionKeepsFlows(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s := connect(t, url, "")
	oid := s.dailyTable()
	s.must("delete from rwproxy.schema_version where version = (select max(version) from rwproxy.schema_version)",
		"drop view rwproxy.updates",
		"drop function rwproxy.identify_database, rwproxy.add_group_event, rwproxy.add_group_progress, rwproxy.start_update, "+
			"rwproxy.end_update, rwproxy.settle_update, rwproxy.cancel_refresh(name, jsonb), rwproxy.cancel_refresh(uuid), "+
			"rwproxy.require_canceler, rwproxy.signal_refresh",
		"delete from rwproxy.database",
		"delete from rwproxy.compat_version")
	ok(t, flowstate.Install(t.Context(), s.conn))
	if got := s.lookup("daily"); got.OID != oid || got.Table == nil {
		t.Errorf("got %+v", got)
	}
	if got := s.value("select count(*) from rwproxy.compat_version"); got != "1" {
		t.Errorf("%s versions of the compat functions are recorded", got)
	}
	stranger := connect(t, url, newRole(t, url, "stranger"))
	_, err := stranger.Exec(t.Context(), "select rwproxy.identify_database()")
	if got := pgdiag.Code(err); got != "42501" {
		t.Errorf("calling a function of the new version: %v, want 42501", err)
	}
}

func TestANewerSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.must("insert into rwproxy.schema_version (version) values (9999)")
	err := flowstate.Install(t.Context(), s.conn)
	refused(t, err, "55000", "schema rwproxy is of version 9999")
}

func TestARoleThatIsNoSuperuserInstalls(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	super := connect(t, url, "")
	service, author := newRole(t, url, "service"), newRole(t, url, "author")
	s := connect(t, url, service)
	err := flowstate.Install(t.Context(), s.conn)
	refused(t, err, "42501", "permission denied for database")

	super.must("grant create on database "+s.conn.Config().Database+" to "+service, "create schema hers authorization "+author)
	ok(t, flowstate.Install(t.Context(), s.conn))
	owners := super.rows(`
		select distinct pg_get_userbyid(owner) from (
		       select relowner from pg_class where relnamespace in ('rwproxy'::regnamespace, 'rwproxy_compat'::regnamespace)
		       union all select proowner from pg_proc where pronamespace in ('rwproxy'::regnamespace, 'rwproxy_compat'::regnamespace)
		       union all select nspowner from pg_namespace where nspname like 'rwproxy%') as things (owner)`)
	if len(owners) != 1 || owners[0] != service {
		t.Errorf("owned by %v, want %s", owners, service)
	}

	// The service role has no rights whatever on what the author works with.
	a := connect(t, url, author)
	a.must("set search_path = hers")
	a.must("create table orders (day date, amount int)", "create table daily (day date, amount bigint)")
	table := flowstate.StreamingTable{Target: dailyName, Settings: settings, Flow: a.flow("daily")}
	table.Target.Schema = "hers"
	ok(t, flowstate.Create(t.Context(), a, table))
	oid := a.lookup("daily").OID
	a.refresh(oid, flowstate.KindWindow, "true")
	a.must("drop schema hers cascade")
	ok(t, flowstate.Sweep(t.Context(), a))
	if got := super.value("select count(*) from rwproxy.streaming_table"); got != "0" {
		t.Error("the sweep left the flow")
	}
}

func TestASchemaThatSomebodyElseMadeIsRefused(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"rwproxy", "rwproxy_flows", "rwproxy_compat", "rwproxy_log"} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			super := connect(t, url, "")
			super.must("create schema " + schema + " authorization " + newRole(t, url, "squatter"))
			refused(t, flowstate.Install(t.Context(), super.conn), "42501", "is owned by role")
		})
	}
}

func TestServiceKnowsWhetherADatabaseIsReady(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := connect(t, url, "")
	database := s.conn.Config().Database
	service := newService(t, url)
	check := func(want bool) {
		t.Helper()
		got, err := service.Installed(t.Context(), s, database)
		if err != nil || got != want {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
	}
	check(false)
	ok(t, service.EnsureInstalled(t.Context(), database))
	check(true)

	s.must("drop schema rwproxy, rwproxy_flows, rwproxy_compat cascade")
	check(false)
	s.must("create schema rwproxy authorization " + newRole(t, url, "squatter"))
	check(false)
	s.must("drop schema rwproxy")
	ok(t, flowstate.Install(t.Context(), s.conn)) // by another proxy
	check(true)
	s.must("insert into rwproxy.schema_version (version) values (9999)")
	check(true) // upgraded under a running proxy
	fresh := newService(t, url)
	if got, err := fresh.Installed(t.Context(), s, database); got || err != nil {
		t.Errorf("a newer schema is usable for an older proxy: %v, %v", got, err)
	}
}

func newService(t *testing.T, url string) *flowstate.Service {
	t.Helper()
	service, err := flowstate.NewService(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	return service
}

func TestAStandbyIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	data := pgtest.TempDir(t)
	server, err := embedded.Start(t.Context(), embedded.Config{DataDir: data, Trust: true, Settings: map[string]string{"fsync": "off"}})
	ok(t, err)
	defer func() { ok(t, server.Stop(context.Background())) }()
	primary := connect(t, server.URL("postgres"), "")
	ok(t, flowstate.Install(t.Context(), primary.conn))
	primary.must("copy (select) to program 'touch standby.signal'")
	ok(t, server.Restart(t.Context()))
	standby := connect(t, server.URL("postgres"), "")
	for what, err := range map[string]error{
		"install": flowstate.Install(t.Context(), standby.conn), "uninstall": flowstate.Uninstall(t.Context(), standby.conn),
	} {
		t.Run(what, func(t *testing.T) { refused(t, err, "25006", "cannot execute statements of rwproxy during recovery") })
	}
}
