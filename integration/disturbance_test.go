package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// disturbance is something that changes what a flow's query returns, or how its
// sources can be written, other than by plain statements on them. After each
// of its changes a refresh must be exact.
type disturbance struct {
	name    string
	sources []source // facts if nil
	setup   []string
	query   string // byDayAndKey if ""
	window  string // over the days if ""
	// changes are made past the proxy, one refresh after each.
	changes []string
	// settings are made in the refresher's session before the refresh after
	// the change of the same number.
	settings []string
}

const (
	byDayAndKey = `select d, k, count(*) as n, sum(v) as v from facts group by d, k`
	writeFacts  = `insert into facts (id, d, k, v) values (nextval('ids'), '2024-01-05', 3, 100); update facts set v = v + 1 where k = 2; delete from facts where id % 11 = 5`
)

var disturbances = []disturbance{
	// Columns.
	{name: "a column is added", changes: []string{`alter table facts add extra integer default 7`, writeFacts}},
	{name: "a column is added to a query of all", query: `select * from facts`, changes: []string{`alter table facts add extra integer default 7`, writeFacts, `update facts set extra = 8`}},
	{name: "a column is added to whole rows", query: `select f.d, f.id, f::text as image from facts f`, changes: []string{`alter table facts add extra integer default 7`, `update facts set extra = 8`, `alter table facts drop extra`, writeFacts}},
	{name: "a column is added with values of its own", changes: []string{`alter table facts add extra float8 default random()`, writeFacts}},
	{name: "an unread column is dropped", changes: []string{`alter table facts drop column n`, writeFacts}},
	{name: "an unread column is retyped", changes: []string{`alter table facts alter n type text using n || 'x'`, writeFacts}},
	{name: "a read column is renamed", changes: []string{
		`alter table facts rename v to amount`,
		`update facts set amount = 50 where k = 3; insert into facts (id, d, k, amount) values (nextval('ids'), '2024-01-06', 4, 9)`,
	}},
	{name: "two read columns change their names", changes: []string{
		`alter table facts rename k to x; alter table facts rename s to k; alter table facts rename x to s`,
		`update facts set s = 4, k = 5 where v > 6`, `update facts set k = 4`, `delete from facts where s = 3`,
	}},
	{name: "an unread column takes the place of a dropped one", changes: []string{`alter table facts drop column n; alter table facts add n integer`, `update facts set n = id`, writeFacts}},
	{name: "a column cannot be null any more, then can", setup: []string{`delete from facts where k is null or d is null; alter table facts alter d set not null, alter k set not null`}, changes: []string{
		writeFacts, `alter table facts alter d drop not null, alter k drop not null; insert into facts (id, d, k, v) values (nextval('ids'), null, null, 7)`,
		`update facts set v = 8 where d is null`, `update facts set d = null where k = 4`, `delete from facts where k is null`,
	}, query: byDayAndKey, window: `d >= '2024-01-03' or d is null`},
	{
		name: "a generated key", setup: []string{`alter table facts add day date generated always as (at::date) stored`}, query: `select day as d, count(*) as n from facts group by 1`,
		changes: []string{`update facts set at = '2024-01-05 12:00' where k = 2`, `update facts set at = null where k = 3`, `insert into facts (id, at) values (nextval('ids'), '2024-01-06')`},
	},
	{
		name: "a generated value", setup: []string{`alter table facts add twice integer generated always as (v * 2) stored`}, query: `select d, sum(twice) as v from facts group by d`,
		changes: []string{`update facts set v = v + 1 where k = 2`, `insert into facts (id, d, v) values (nextval('ids'), '2024-01-06', 3)`},
	},

	// Constraints and indexes, which a plan may lean on.
	{
		name: "a check goes", setup: []string{`delete from facts where k >= 5; alter table facts add constraint small check (k < 5)`}, query: `select k, d, v from facts where k >= 5 union all select k, d, v from facts where k = 2`,
		changes: []string{
			writeFacts, `alter table facts drop constraint small; insert into facts (id, d, k, v) values (nextval('ids'), '2024-01-05', 6, 1)`,
			`update facts set v = 2 where k = 6`, `delete from facts where k = 6`,
		},
	},
	{name: "a check comes and goes", query: `select k, d, v from facts where k >= 5`, changes: []string{
		`delete from facts where k >= 5; alter table facts add constraint small check (k < 5)`, writeFacts,
		`alter table facts drop constraint small`, `insert into facts (id, d, k, v) values (nextval('ids'), '2024-01-05', 6, 1)`,
	}},
	{name: "a check that is not valid", query: `select k, d, v from facts where k >= 5`, changes: []string{`alter table facts add constraint small check (k < 5) not valid`, `delete from facts where id % 5 = 1`}},
	{
		name: "a unique index goes", sources: sources(facts, indexed(dims, `create unique index one_id on dims (id)`)),
		query: `select f.id, f.d, f.v from facts f left join dims x on x.id = f.s`, changes: []string{
			`insert into dims (id, s) values (1, 1), (2, 2) on conflict do nothing`, `drop index one_id; insert into dims (id, s) values (1, 5), (2, 5), (3, 5), (3, 6)`, `insert into dims (id, s) values (1, 7)`, `delete from dims where id = 2`,
		},
	},
	{name: "a unique index comes and goes", sources: sources(facts, dims), query: `select f.id, f.d, f.v from facts f left join dims x on x.id = f.s`, changes: []string{
		`create unique index one_id on dims (id)`, `insert into dims (id, s) values (1, 1), (2, 2) on conflict do nothing`, writeFacts, `drop index one_id`, `insert into dims (id, s) values (1, 5), (2, 5), (3, 5), (3, 6)`,
	}},
	{name: "a query grouped by a primary key", query: `select id, d, v, count(*) as n from facts group by id`, changes: []string{writeFacts, `update facts set d = '2024-01-07' where k = 3`}},
	{
		name: "a foreign key cascades", sources: sources(facts, dims), setup: []string{
			`alter table dims add primary key (id)`, `delete from facts`,
			`insert into facts (id, d, k, s) select nextval('ids'), date '2024-01-03' + id % 4, 1, id from dims`, `alter table facts add foreign key (s) references dims (id) on delete cascade on update cascade`,
		},
		query: `select d, s, count(*) as n from facts group by d, s`, changes: []string{`delete from dims where id % 4 = 1`, `update dims set id = id + 1000 where id % 4 = 2`, `truncate dims cascade`},
	},
	{
		name: "a foreign key sets null", sources: sources(facts, dims), setup: []string{
			`alter table dims add primary key (id)`, `delete from facts`,
			`insert into facts (id, d, k, s) select nextval('ids'), date '2024-01-03' + id % 4, 1, id from dims`, `alter table facts add foreign key (s) references dims (id) on delete set null`,
		},
		query: `select f.d, f.s, x.c, f.id from facts f left join dims x on x.id = f.s`, changes: []string{`delete from dims where id % 4 = 1`, `delete from dims where id % 4 = 2`},
	},
	{name: "an index comes and goes", changes: []string{`create index by_d on facts (d)`, writeFacts, `drop index by_d`, writeFacts}},

	// The table as a whole.
	{name: "the table is renamed", changes: []string{`alter table facts rename to renamed`, `update renamed set v = 3 where k = 5`, `delete from renamed where k = 4`}},
	{name: "the table is exchanged by name", changes: []string{`create table facts_new (like facts including all); insert into facts_new select * from facts where k = 3;
		alter table facts rename to facts_old; alter table facts_new rename to facts`, writeFacts, `update facts_old set v = 3`}},
	{name: "the table's name is in the result", query: `select d, id, v, tableoid::regclass::text as origin from facts`, changes: []string{`alter table facts rename to renamed`, `update renamed set v = 3 where k = 5`}},
	{name: "the schema is renamed", query: `select d, id, v, tableoid::regclass::text as origin from facts`, changes: []string{`create schema elsewhere_{schema}; alter table facts set schema elsewhere_{schema}`, `update elsewhere_{schema}.facts set v = 3 where k = 5`, `alter table elsewhere_{schema}.facts set schema {schema}`}},
	{name: "the table is rewritten", changes: []string{`vacuum full facts`, writeFacts, `cluster facts using facts_pkey`, writeFacts}},
	{name: "the table becomes unlogged, and logged again", changes: []string{`alter table facts set unlogged`, writeFacts, `alter table facts set logged`, writeFacts}},
	{name: "row-level security comes", changes: []string{`alter table facts enable row level security`, writeFacts, `create policy few on facts using (k < 4); alter table facts force row level security`, writeFacts, `alter table facts disable row level security`, writeFacts}},
	{
		name: "a rule redirects writes", setup: []string{`create table inbox (like facts)`}, query: `select d, id, v from facts union all select d, id, v from inbox`,
		changes: []string{`create rule redirected as on insert to facts do instead insert into inbox values (new.*)`, writeFacts, `drop rule redirected on facts`, writeFacts},
	},
	{name: "a child with rows is attached", changes: []string{
		`create table child (like facts); insert into child select * from facts where k < 5; update child set id = -id, d = '2024-01-06'; alter table child inherit facts`,
		`update child set v = 9 where k = 2`, `insert into child (id, d, k, v) values (-1000, '2024-01-05', 1, 1)`, `alter table child no inherit facts`, `truncate child`,
	}},
	{
		name: "rows move into the partition that is read", sources: sources(parted), query: `select k, count(*) as n from parted_3 group by k`, window: `k >= 2`,
		changes: []string{`update parted set d = '2024-01-06' where d < '2024-01-03'`, `update parted set d = '2024-01-01' where d = '2024-01-06'`},
	},
	{name: "a child is made and dropped", changes: []string{`create table child () inherits (facts); insert into child select * from facts where k < 5`, `delete from child where k = 2`, `drop table child`}},
	{name: "the only source is emptied and filled in one transaction", changes: []string{`begin; create temp table kept on commit drop as select * from facts; truncate facts; insert into facts select * from kept where k > 2; commit`, `truncate facts; ` + writeFacts}},
	{name: "very large values", query: `select c, d, id from facts`, window: `d >= '2024-01-03'`, changes: []string{`update facts set c = repeat('long', 20000) where k = 2`, `update facts set c = repeat('long', 20001) where k = 3`, `update facts set c = 'short' where k = 2`}},
	{name: "a bulk load", changes: []string{`insert into facts (id, d, k, v) select nextval('ids'), date '2024-01-01' + n % 9, n % 50, n from generate_series(1, 3000) n`, `update facts set v = v + 1`, `delete from facts where id % 10 <> 1`}},

	// Triggers.
	{name: "triggers are off during a load", changes: []string{`alter table facts disable trigger all; ` + writeFacts + `; alter table facts enable trigger all`, writeFacts, writeFacts}},
	{name: "user triggers are off during a load", changes: []string{`alter table facts disable trigger user; ` + writeFacts + `; alter table facts enable trigger user`, writeFacts}},
	{name: "each trigger is off during a load", changes: []string{
		`do $$ declare t name; begin for t in select tgname from pg_trigger where tgrelid = 'facts'::regclass and not tgisinternal loop execute format('alter table facts disable trigger %I', t); end loop; end $$;
		` + writeFacts + `; do $$ declare t name; begin for t in select tgname from pg_trigger where tgrelid = 'facts'::regclass and not tgisinternal loop execute format('alter table facts enable always trigger %I', t); end loop; end $$`, writeFacts,
	}},
	{name: "triggers are dropped", changes: []string{
		`do $$ declare t name; begin for t in select tgname from pg_trigger where tgrelid = 'facts'::regclass and not tgisinternal loop execute format('drop trigger %I on facts', t); end loop; end $$`, writeFacts, writeFacts,
	}},
	{name: "a session writes as a replica", changes: []string{`set session_replication_role = replica; ` + writeFacts + `; reset session_replication_role`, writeFacts}},
	{name: "a user's trigger changes what is written", setup: []string{`create function moved() returns trigger language plpgsql as 'begin new.d := new.d - 1; return new; end'`}, changes: []string{
		`create trigger moved before insert or update on facts for each row execute function moved()`, writeFacts, `update facts set s = s`, `drop trigger moved on facts`, writeFacts,
	}},
	{name: "a user's trigger writes another source", sources: sources(facts, dims), setup: []string{
		`create function follow() returns trigger language plpgsql as 'begin insert into dims (id, s) values (new.id, new.k); return null; end'`,
		`create trigger follow after insert on facts for each row execute function follow()`,
	}, query: `select s, count(*) as n from dims group by s`, window: `s >= 2`, changes: []string{writeFacts, writeFacts}},

	// Views, functions, types.
	{name: "a view is redefined", setup: []string{`create view valid as select * from facts where v > 3`}, query: `select d, k, v from valid`, changes: []string{writeFacts, `create or replace view valid as select * from facts where v > 6`, writeFacts}},
	{
		name: "a view below a view is redefined", setup: []string{`create view valid as select d, k, v from facts where v > 3`, `create view better as select * from valid`}, query: `select d, k, sum(v) as v from better group by d, k`,
		changes: []string{`create or replace view valid as select d, k, v from facts where v > 6`, `create or replace view valid as select d, k, v * 2 as v from facts`, `create or replace view valid as select d, k, v from (select d, k, v from facts union all select '2024-01-05', 1, 1) f`, writeFacts},
	},
	{
		name: "a view takes in another table", sources: sources(facts, others), setup: []string{`create view all_facts as select d, k, v from facts`}, query: `select d, k, sum(v) as v from all_facts group by d, k`,
		changes: []string{`create or replace view all_facts as select d, k, v from facts union all select d, k, v from others`, `delete from others where id % 3 = 1`, `update others set v = 100 where k = 3`},
	},
	{name: "a rule of a view is its query", setup: []string{`create view valid as select d, k, v from facts where v > 3`}, query: `select d, k, v from valid`, changes: []string{`create or replace rule "_RETURN" as on select to valid do instead select d, k, v from facts where v <= 3`}},
	{
		name: "an immutable function is redefined", setup: []string{`create function scaled(integer) returns integer language sql immutable as 'select $1 * 2'`}, query: `select d, id, scaled(v) as v from facts`,
		changes: []string{writeFacts, `create or replace function scaled(integer) returns integer language sql immutable as 'select $1 * 3'`, writeFacts},
	},
	{
		name: "an immutable function of the key is redefined", setup: []string{`create function scaled(integer) returns integer language sql immutable as 'select $1 * 2'`}, query: `select scaled(k) as k, count(*) as n from facts group by 1`, window: `k > 3`,
		changes: []string{writeFacts, `create or replace function scaled(integer) returns integer language sql immutable as 'select $1 * 3'`, writeFacts},
	},
	{
		name: "an aggregate's function is redefined", setup: []string{
			`create function added(integer, integer) returns integer language sql immutable as 'select $1 + coalesce($2, 0)'`,
			`create aggregate total(integer) (sfunc = added, stype = integer, initcond = '0')`,
		}, query: `select d, total(v) as v from facts group by d`,
		changes: []string{writeFacts, `create or replace function added(integer, integer) returns integer language sql immutable as 'select $1 + 2 * coalesce($2, 0)'`, writeFacts},
	},
	{
		name: "an operator's function is redefined", setup: []string{
			`create function near(integer, integer) returns boolean language sql immutable as 'select abs($1 - $2) < 3'`,
			`create operator ~~~ (leftarg = integer, rightarg = integer, function = near)`,
		}, query: `select d, id, k from facts where k ~~~ 5`,
		changes: []string{writeFacts, `create or replace function near(integer, integer) returns boolean language sql immutable as 'select abs($1 - $2) < 2'`, writeFacts},
	},
	{
		name: "a cast's function is redefined", setup: []string{
			`create type wrapped as (n integer)`, `create function wrap(integer) returns wrapped language sql immutable as 'select row($1)::{schema}.wrapped'`,
			`create cast (integer as wrapped) with function wrap(integer)`,
		}, query: `select d, id, ((v::wrapped)).n as v from facts`,
		changes: []string{writeFacts, `create or replace function wrap(integer) returns wrapped language sql immutable as 'select row($1 + 1)::{schema}.wrapped'`, writeFacts},
	},
	{
		name: "a function in a function is redefined", setup: []string{
			`create function inner_one(integer) returns integer language sql immutable as 'select $1 * 2'`,
			`create function outer_one(integer) returns integer language sql immutable begin atomic; select inner_one($1); end`,
		}, query: `select d, id, outer_one(v) as v from facts`,
		changes: []string{writeFacts, `create or replace function inner_one(integer) returns integer language sql immutable as 'select $1 * 3'`, writeFacts},
	},
	{
		name: "a stable function's table changes", sources: sources(facts, dims), setup: []string{`create function best(integer) returns integer language sql stable as 'select max(v) from dims where s = $1'`}, query: `select d, id, best(s) as v from facts`,
		changes: []string{`update dims set v = v + 10`, `delete from dims where id % 2 = 0`, `truncate dims`},
	},
	{
		name: "a label of an enumeration is renamed", setup: []string{`create type mood as enum ('sad', 'ok')`, `alter table facts add mood mood default 'ok'`, `update facts set mood = 'sad' where k = 3`}, query: `select d, id, mood::text as mood from facts`,
		changes: []string{`alter type mood rename value 'sad' to 'blue'`, `update facts set mood = 'blue' where k = 4`},
	},
	{name: "an enumeration gets a label", setup: []string{`create type mood as enum ('sad', 'ok')`}, query: `select d, id, enum_range(null::mood)::text as moods from facts`, changes: []string{`alter type mood add value 'happy'`, writeFacts}},
	{
		name: "a domain is constrained", setup: []string{`create domain small as integer`, `alter table facts add small small default 1`}, query: `select d, small, count(*) as n from facts group by d, small`, window: `small > 0`,
		changes: []string{`update facts set small = 2 where k = 3`, `alter domain small add check (value < 10)`, `update facts set small = 3 where k = 4`, `alter domain small drop constraint small_check`, `update facts set small = 30 where k = 4`},
	},
	{name: "an attribute of a composite type comes", setup: []string{`create type pair as (a integer, b text)`, `alter table facts add pair pair default row(1, 'x')`}, query: `select d, id, pair::text as pair from facts`, changes: []string{`update facts set pair.a = 2 where k = 3`}},
	{
		name: "a text search configuration changes", setup: []string{`create text search configuration own_{schema} (copy = pg_catalog.simple)`}, query: `select d, id, to_tsvector('own_{schema}', coalesce(c, 'None') || ' runs')::text as words from facts`,
		changes: []string{`alter text search configuration own_{schema} alter mapping for asciiword with english_stem`, writeFacts},
	},

	// What a query can depend on besides its sources.
	{name: "a setting", query: `select d, id, current_setting('oracle.label', true) as label from facts`, changes: []string{`select`, `select`, writeFacts}, settings: []string{`set oracle.label = 'one'`, `set oracle.label = 'two'`}},
	{
		name: "a setting in the predicate", query: `select d, k, id, v from facts`, window: `k >= coalesce(nullif(current_setting('oracle.least', true), ''), '4')::integer`,
		changes: []string{`select`, `select`, writeFacts, `select`}, settings: []string{`set oracle.least = '6'`, `set oracle.least = '2'`, `set oracle.least = '5'`, `set oracle.least = '1'`},
	},
	{name: "the session's application", query: `select d, id, current_setting('application_name') as label from facts`, changes: []string{`select`, `select`}, settings: []string{`set application_name = 'one'`, `set application_name = 'two'`}},
	{name: "the session's work memory", query: `select d, id, current_setting('work_mem') as label from facts`, changes: []string{`select`, `select`}, settings: []string{`set work_mem = '7MB'`, `set work_mem = '8MB'`}},
	{name: "a comment", query: `select d, id, obj_description('facts'::regclass, 'pg_class') as label from facts`, changes: []string{`comment on table facts is 'one'`, `comment on table facts is 'two'`}},
	{name: "the size of a table", query: `select d, id, pg_relation_size('others_{schema}'::regclass) as size from facts`, setup: []string{`create table others_{schema} (id integer)`}, changes: []string{`insert into others_{schema} select generate_series(1, 10000)`}},
	{name: "another table as XML", query: `select d, id, table_to_xml('noted', true, false, '')::text as noted from facts`, setup: []string{`create table noted (id integer)`}, changes: []string{`insert into noted values (1)`, `delete from noted`}},
	{name: "the existence of a table", query: `select d, id, to_regclass('appears_{schema}') is not null as there from facts`, changes: []string{`create table appears_{schema} ()`, `drop table appears_{schema}`}},
	{name: "privileges", query: `select d, id, has_table_privilege('pg_monitor', 'facts', 'select') as may from facts`, changes: []string{`grant select on facts to pg_monitor`, `revoke select on facts from pg_monitor`}},
	{name: "the definition of a view", setup: []string{`create view shown as select 1 as one`}, query: `select d, id, pg_get_viewdef('shown'::regclass) as text from facts`, changes: []string{`create or replace view shown as select 2 as one`}},
	{name: "the catalog", query: `select f.d, f.id, (select count(*) from pg_class where relname = 'counted_{schema}') as n from facts f`, changes: []string{`create table counted_{schema} ()`, `drop table counted_{schema}`}},
	{name: "the information schema", query: `select f.d, f.id, (select count(*) from information_schema.tables where table_name = 'counted_{schema}') as n from facts f`, changes: []string{`create table counted_{schema} ()`, `drop table counted_{schema}`}},
	{name: "a sequence", setup: []string{`create sequence numbered`}, query: `select f.d, f.id, (select last_value from numbered) as n from facts f`, changes: []string{`select nextval('numbered'), nextval('numbered')`, `select setval('numbered', 70)`}},
	{name: "row versions", query: `select d, id, ctid::text as place from facts`, changes: []string{`update facts set s = 1 where k = 3`, `update facts set k = k`, `vacuum full facts`}},
	{name: "transactions", query: `select d, id, xmin::text as written, cmin::text as command, xmax::text as locked from facts`, changes: []string{`update facts set s = 1 where k = 3`, `begin; update facts set v = v where k = 5; rollback`, `begin; select from facts for update; commit`}},

	// Sources whose changes nobody sees.
	{name: "a materialized view", setup: []string{`create materialized view kept as select d, k, v from facts`}, query: `select d, k, sum(v) as v from kept group by d, k`, changes: []string{writeFacts, `refresh materialized view kept`, writeFacts + `; refresh materialized view kept`}},
	{name: "an unlogged table", setup: []string{`create unlogged table light as select d, k, v from facts`}, query: `select d, k, sum(v) as v from light group by d, k`, changes: []string{`update light set v = 3 where k = 4`, `truncate light`}},
	{name: "a foreign table", setup: []string{
		`create server self_{schema} foreign data wrapper postgres_fdw options (host '127.0.0.1', port '{port}', dbname '{database}')`,
		`create user mapping for current_user server self_{schema} options (user 'postgres', password_required 'false')`,
		`create foreign table far (d date, k integer, v integer) server self_{schema} options (schema_name '{schema}', table_name 'facts')`,
	}, query: `select d, k, sum(v) as v from far group by d, k`, changes: []string{writeFacts, `truncate facts`, writeFacts}},
	{name: "a foreign partition", setup: []string{
		`create server self_{schema} foreign data wrapper postgres_fdw options (host '127.0.0.1', port '{port}', dbname '{database}')`,
		`create user mapping for current_user server self_{schema} options (user 'postgres', password_required 'false')`,
		`create table mixed (d date, k integer, v integer) partition by range (d)`, `create table near_part partition of mixed for values from ('2024-01-01') to ('2024-01-05')`,
		`create table behind as select d, k, v from facts where d >= '2024-01-05'`,
		`create foreign table far partition of mixed for values from ('2024-01-05') to ('2024-02-01') server self_{schema} options (schema_name '{schema}', table_name 'behind')`,
		`insert into near_part select d, k, v from facts where d < '2024-01-05'`,
	}, query: `select d, k, sum(v) as v from mixed group by d, k`, changes: []string{`update behind set v = v + 10 where k = 3`, `update near_part set v = v + 10 where k = 3`, `truncate behind`}},
	{name: "an unlogged partition", sources: sources(parted), setup: []string{`alter table parted_2 set unlogged`}, query: `select d, k, sum(v) as v from parted group by d, k`, changes: []string{`update parted_2 set v = 9`, `update parted set v = 9 where k = 3`, `truncate parted_2`}},
}

func TestARefreshIsExactAfterADisturbance(t *testing.T) {
	t.Parallel()
	seed := number(t, seedVariable, rand.Uint64())
	t.Logf("%s=%d", seedVariable, seed)
	d := newDatabase(t)
	connect(t, d.direct).exec(`create extension postgres_fdw schema public`)
	for i, disturbed := range disturbances {
		t.Run(disturbed.name, func(t *testing.T) {
			t.Parallel()
			disturbed.play(t, d, fmt.Sprintf("disturbed_%d", i), seed)
		})
	}
}

// play makes the flow and the changes in a schema of its own.
func (b disturbance) play(t *testing.T, d database, schema string, seed uint64) {
	t.Helper()
	named := strings.NewReplacer("{schema}", schema, "{database}", d.name, "{port}", fmt.Sprint(server.Port()))
	sh := shape{name: b.name, sources: b.sources, query: named.Replace(b.query), windows: []string{b.window}, ofSession: b.settings != nil}
	if sh.sources == nil {
		sh.sources = sources(facts)
	}
	if sh.query == "" {
		sh.query = byDayAndKey
	}
	if b.window == "" {
		sh.windows = overDays[:1]
	}
	for _, sql := range append([]string{`create sequence ids start 100000`}, b.setup...) {
		sh.setup = append(sh.setup, named.Replace(sql))
	}
	o := newOracle(t, d, sh, schema, seed, server.Major())
	// A renamed column changes the text of the query, not the view.
	o.shape.query = `select * from ` + o.refresher.value(`select view::regclass from rwproxy.streaming_table where target = 'target'::regclass`)
	exact := func() {
		t.Helper()
		if wrong := o.replaced(`refresh streaming table target`, o.window, o.window); wrong != "" {
			o.fatalf("%s", wrong)
		}
	}
	exact()
	for i, change := range b.changes {
		o.do("", o.writers[0].session, named.Replace(change))
		if i < len(b.settings) {
			o.do("", o.refresher, named.Replace(b.settings[i]))
		}
		exact()
	}
	exact()
}
