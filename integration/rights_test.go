package integration

import (
	"net/url"
	"strings"
	"testing"
)

// role makes a role that may log in, named after the database it is for.
func (s *session) role(d database, name string) string {
	s.t.Helper()
	role := d.name + "_" + name
	s.exec(`create role ` + role + ` login`)
	s.t.Cleanup(func() {
		// Runs before the database is dropped, with everything the role has there.
		admin := connect(s.t, d.direct)
		admin.exec(`reassign owned by `+role+` to postgres`, `drop owned by `+role+` cascade`, `drop role `+role)
		admin.close()
	})
	return role
}

// as opens a session of a role.
func (s *session) as(d database, role string) *session {
	s.t.Helper()
	u, err := url.Parse(d.url)
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.User(role)
	other := connect(s.t, u.String())
	other.protocol = s.protocol
	return other
}

func TestCreatingNeedsTheRightToCreateInTheSchema(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.exec(createOrders, insertOrders, `create schema closed`, `grant usage on schema closed to `+role, `grant select on orders to `+role)
		limited := s.as(d, role)
		e := limited.fails("42501", strings.Replace(createTotals, "totals", "closed.totals", 1))
		if e.Message != "permission denied for schema closed" {
			t.Errorf("message %q", e.Message)
		}
		if left := s.flowObjects("totals"); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
}

func TestCreatingNeedsTheRightToReadTheSource(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.exec(createOrders, insertOrders, `grant create on schema public to `+role)
		limited := s.as(d, role)
		e := limited.fails("42501", createTotals)
		if e.Message != "permission denied for table orders" {
			t.Errorf("message %q", e.Message)
		}
		if left := s.flowObjects("totals"); left != "" {
			t.Errorf("left behind: %s", left)
		}
		s.exec(`grant select on orders to ` + role)
		limited.exec(createTotals)
		limited.want(readTotals, afterCreate...)
		limited.want(`select owner from rwproxy.flows`, role)
		limited.want(`select tableowner from pg_tables where tablename = 'totals'`, role)
		s.exec(`insert into orders values (4, current_date, 1)`)
		limited.exec(`refresh streaming table totals`)
		limited.want(readTotals, "-1|1|20.00", "0|2|31.00")
		// What the author may no longer read, the flow may no longer read.
		s.exec(`revoke select on orders from ` + role)
		limited.fails("42501", `refresh streaming table totals`)
		limited.want(readTotals, "-1|1|20.00", "0|2|31.00")
	})
}

func TestRefreshingNeedsTheRightToWriteTheTarget(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.createTotals()
		s.exec(`insert into orders values (4, current_date, 1)`)
		limited := s.as(d, role)
		for _, grant := range []string{"select", "insert", "delete"} {
			for _, statement := range []string{
				`refresh streaming table totals`, `refresh streaming table totals full`, `refresh streaming table totals where day = current_date`,
			} {
				e := limited.fails("42501", statement)
				if e.Message != "permission denied for table totals" {
					t.Errorf("message %q", e.Message)
				}
			}
			s.exec(`grant ` + grant + ` on totals to ` + role)
		}
		s.want(readTotals, afterCreate...)
		// What is left is the right to run the flow's query, which the error's hint
		// names. The query reads the source with its author's rights.
		e := limited.fails("42501", `refresh streaming table totals`)
		_, view, found := strings.Cut(e.Hint, "GRANT SELECT ON ")
		if !found {
			t.Fatalf("message %q, hint %q", e.Message, e.Hint)
		}
		s.exec(`grant select on ` + strings.TrimSuffix(view, ".") + ` to ` + role)
		limited.exec(`refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
		s.want(`select requested_by from rwproxy.refreshes order by requested_at desc limit 1`, role)
		limited.fails("42501", `select * from orders`)
	})
}

func TestAnOverrideRunsWithTheRightsOfWhoWroteIt(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.createTotals()
		s.exec(`grant select, insert, delete on totals to `+role, `grant create on schema public to `+role,
			`grant select on `+s.view("totals")+` to `+role)
		limited := s.as(d, role)
		limited.exec(`create function whoami() returns text language sql as 'select current_user::text'`)
		limited.exec(`refresh streaming table totals where public.whoami() <> '` + role + `'`)
		s.want(readTotals, afterCreate...)
		limited.exec(`refresh streaming table totals where public.whoami() = '` + role + `' and day = current_date - 2`)
		s.want(readTotals, "-2|1|10.00", "-1|1|20.00", "0|1|30.00")
	})
}

func TestOnlyTheOwnerChangesAFlow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role, member := s.role(d, "limited"), s.role(d, "member")
		s.createTotals()
		s.exec(`create streaming table waiting (day date)`,
			`grant all on totals, waiting, orders to `+role, `grant create on schema public to `+role)
		limited := s.as(d, role)
		for _, statement := range []string{
			`create or refresh streaming table totals ` + totalsFlow,
			`create flow mine as insert into waiting by name replace where day = current_date select day from orders`,
			`drop table totals`,
			`drop streaming table totals cascade`,
		} {
			e := limited.fails("42501", statement)
			if !strings.HasPrefix(e.Message, "must be owner of table ") {
				t.Errorf("%s\nmessage %q", statement, e.Message)
			}
		}
		s.want(`select flow_name from rwproxy.flows`, "totals")
		s.want(readTotals, afterCreate...)
		// A member of the owner's role is as good as the owner.
		s.exec(`alter table totals owner to `+role, `grant `+role+` to `+member)
		s.as(d, member).exec(`create or refresh streaming table totals `+totalsFlow, `drop table totals`)
		s.want(`select count(*) from rwproxy.flows where flow_name = 'totals'`, "0")
	})
}

func TestSetRoleCounts(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.createTotals()
		s.exec(`set role ` + role)
		s.fails("42501", `refresh streaming table totals`)
		s.fails("42501", strings.Replace(createTotals, "totals", "other", 1))
		s.want(`select current_user`, role)
		s.exec(`reset role`, `refresh streaming table totals`)
		s.exec(`grant select on orders to `+role, `grant create on schema public to `+role, `begin`, `set local role `+role,
			strings.Replace(createTotals, "totals", "other", 1), `commit`)
		s.want(`select owner from rwproxy.flows where flow_name = 'other'`, role)
	})
}

func TestARoleSeesTheFlowsOfTablesItMayRead(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.createTotals()
		s.exec(strings.Replace(createTotals, "totals", "shown", 1), `grant select on shown to `+role)
		limited := s.as(d, role)
		limited.want(`select flow_name from rwproxy.flows`, "shown")
		limited.want(`select distinct target_table from rwproxy.refreshes`, "shown")
		limited.want(`select count(*) > 0, bool_and(message not like '%totals%') from rwproxy.event_log`, "t|t")
		s.exec(`revoke select on shown from ` + role)
		limited.want(`select (select count(*) from rwproxy.flows) + (select count(*) from rwproxy.refreshes) + (select count(*) from rwproxy.event_log)`, "0")
	})
}

func TestAReaderIsNotToldWhichKeysHaveChanged(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.exec(`create table orders (customer text, region text, amount integer)`,
			`insert into orders select case when n % 2 = 0 then 'here' else 'secret' end || n, case when n % 2 = 0 then 'EU' else 'US' end, n from generate_series(1, 1000) n`,
			`create streaming table eu flow replace where true by name select customer, sum(amount) as amount from orders where region = 'EU' group by customer`,
			`grant select on eu to `+role,
			`update orders set amount = 0 where customer = 'secret7'`, `refresh streaming table eu`)
		applied := `select technique, applied_predicate like '%secret7%' from rwproxy.refreshes order by requested_at desc limit 1`
		s.want(applied, "INCREMENTAL|t")
		limited := s.as(d, role)
		limited.want(applied, "INCREMENTAL|NULL")
		limited.want(`select count(*) from rwproxy.refreshes where technique = 'FULL_RECOMPUTE' and applied_predicate is null`, "0")
	})
}

func TestStateIsWrittenByRwproxyOnly(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.createTotals()
		limited := s.as(d, role)
		limited.want(`select count(*) from pg_class where relnamespace = 'rwproxy'::regnamespace and relkind in ('r', 'p', 'v', 'S')
			and (has_table_privilege(oid, 'insert') or has_table_privilege(oid, 'update') or has_table_privilege(oid, 'delete') or has_table_privilege(oid, 'truncate'))`, "0")
		limited.want(`select relname from pg_class where relnamespace = 'rwproxy'::regnamespace and relkind in ('r', 'p') and has_table_privilege(oid, 'select')`,
			"schema_version")
		limited.want(`select count(*) from pg_proc where pronamespace = 'rwproxy'::regnamespace and prosecdef
			and not coalesce(array_to_string(proconfig, ',') like '%search_path=%', false)`, "0")
		limited.fails("42501", `create table rwproxy.mine (a integer)`)
		limited.fails("42501", `create function rwproxy_compat.nvl(text, text) returns text language sql as 'select null::text'`)
	})
}

func TestTheServiceRoleNeedsNoSuperuser(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	admin := connect(t, d.direct)
	owner, author := admin.role(d, "service"), admin.role(d, "author")
	admin.exec(`alter database `+d.name+` owner to `+owner, `grant create on schema public to `+author)
	u, err := url.Parse(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(owner)
	p := ownProxy(t, u.String())
	through := database{name: d.name, url: p.url(d.direct), direct: d.direct, zone: d.zone}
	s := admin.as(through, author)
	s.createTotals()
	s.want(readTotals, afterCreate...)
	s.exec(`insert into orders values (4, current_date, 1)`, `refresh streaming table totals`)
	s.fails("42703", `refresh streaming table totals where missing = 1`)
	s.want(readTotals, "-1|1|20.00", "0|2|31.00")
	s.exec(`drop table totals`)
	if left := admin.flowObjects("totals"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
