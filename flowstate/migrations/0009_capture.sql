-- Change capture: what is written to a table that a flow reads, or to the
-- target of a flow, is logged by statement triggers.
--
-- One log belongs to one table: for a partition to its topmost partitioned
-- table, because a statement fires the triggers of the table that it names and
-- of no other. So every table of the tree has the triggers, with one function.
--
-- What is left of an earlier installation, whose other schemas were dropped, is
-- dropped with its triggers: nobody reads its logs any more.
do $$
begin
    if pg_catalog.to_regtype('rwproxy_log.missing') is not null then
        drop schema rwproxy_log cascade;
    end if;
end
$$;

create schema rwproxy_log;

-- The type of a column that is not there; see capture_source.
create type rwproxy_log.missing as ();

create function rwproxy.system_identifier() returns text
language sql stable
as $$
    select s.system_identifier::text from pg_catalog.pg_control_system() as s
$$;

-- incarnation tells what the numbers of transactions are of that are stored
-- here: where they came with a dump, they are those of others. The cluster's
-- identifier alone does not tell it, which one that began as a copy of another
-- shares with it; but whatever is restored from a dump has other OIDs.
create function rwproxy.incarnation() returns text
language sql stable
as $$
    select pg_catalog.format('%s/%s', rwproxy.system_identifier(), 'rwproxy.streaming_table'::regclass::oid)
$$;

create sequence rwproxy.capture_number;

create table rwproxy.capture (
    relation regclass primary key,
    number bigint not null unique,
    -- rwproxy_log.log_<number>: xid, known, own, and c<attnum> for each of
    -- columns. The first "known" of columns have their values, the rest may
    -- have had any.
    log regclass not null,
    columns smallint[] not null,
    -- An UPDATE that changes none of these is not logged; null for every column.
    reads smallint[],
    -- Whether what is logged wakes whoever listens for the flows that a change
    -- triggers; see rwproxy.arm_triggers.
    wakes boolean not null default false,
    wakes_since xid8,
    -- What the numbers of transactions are of: a log that came with a dump says
    -- nothing about those of here.
    incarnation text not null
);

-- What each flow needs logged. The view may not be committed yet.
create table rwproxy.capture_need (
    view regclass not null,
    relation regclass not null references rwproxy.capture (relation) on delete cascade,
    is_target boolean not null,
    columns smallint[] not null,
    reads smallint[],
    -- Changes that a snapshot does not see are logged if it sees this
    -- transaction, in which logging began; null if it began in the transaction
    -- that defines the flow, after which no older snapshot is used.
    installed xid8,
    -- Until the flow has a cursor, it may get one as old as this.
    since pg_snapshot not null,
    primary key (view, relation)
);

-- The refreshes that are writing, which their target's triggers look for.
create table rwproxy_log.own_write (
    xid xid8 not null,
    capture bigint not null
);

-- Of a database that publishes all its tables, so that rows can be deleted: the
-- tables of this schema have no key.
alter table rwproxy_log.own_write replica identity full;

-- capture_root is the relation whose log a relation's changes are in.
create function rwproxy.capture_root(relation oid) returns oid
language sql stable
as $$
    select coalesce(pg_catalog.pg_partition_root(relation)::oid, relation)
$$;

-- capture_tree is a relation with everything below it.
create function rwproxy.capture_tree(root oid) returns setof oid
language sql stable
as $$
    with recursive tree (oid) as (
        select root
         union
        select i.inhrelid from tree t join pg_catalog.pg_inherits i on i.inhparent = t.oid
    )
    select oid from tree
$$;

-- capture_obstacle says why a relation's changes cannot be logged by anybody,
-- and the way out: null when they can.
create function rwproxy.capture_obstacle(relation oid, out obstacle text, out hint text)
language plpgsql stable
as $$
declare
    root oid := rwproxy.capture_root(relation);
    member record;
    whose text;
begin
    for member in
        select c.*, n.nspname
          from rwproxy.capture_tree(root) as t (oid)
          join pg_catalog.pg_class c on c.oid = t.oid
          join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         order by c.oid <> root
    loop
        whose := case when member.oid = relation then 'it' else 'its partition ' || member.oid::regclass end;
        if member.relkind = 'f' then
            obstacle := whose || ' is a foreign table';
            hint := 'Copy what is needed of it into a table, and read that.';
        elsif member.relkind = 'm' then
            obstacle := whose || ' is a materialized view';
            hint := 'Read from the tables of its query, or make it a streaming table.';
        elsif member.relkind not in ('r', 'p') then
            obstacle := whose || ' is not a table';
            hint := 'Read from a table.';
        elsif member.nspname in ('pg_catalog', 'information_schema', 'rwproxy') then
            obstacle := whose || ' is a table of the system''s';
            hint := 'Copy what is needed of it into a table, and read that.';
        elsif member.relpersistence = 't' then
            obstacle := whose || ' is a temporary table';
            hint := 'Read from an ordinary table.';
        elsif member.relpersistence = 'u' then
            obstacle := whose || ' is an unlogged table, which is emptied after a crash';
            hint := pg_catalog.format('ALTER TABLE %s SET LOGGED.', member.oid::regclass);
        elsif member.relrowsecurity then
            obstacle := 'row-level security is enabled on ' || whose;
            hint := 'Read from a table without it.';
        elsif exists (select from pg_catalog.pg_subscription_rel s where s.srrelid = member.oid) then
            obstacle := 'a subscription of logical replication writes to ' || whose || ', and fires no triggers';
            hint := 'Copy what is needed of it into another table, and read that.';
        elsif exists (
            select from pg_catalog.pg_inherits i where i.inhrelid = member.oid and not member.relispartition
        ) and (member.oid = root or (select pg_catalog.count(*) from pg_catalog.pg_inherits i where i.inhrelid = member.oid) > 1)
        then
            obstacle := whose || ' inherits from another table';
            hint := 'Read from the topmost parent.';
        else
            continue;
        end if;
        return;
    end loop;
end
$$;

-- capture_refusal says why a role and rwproxy's own may not add triggers to a
-- relation, and the way out: null when they may. A member of a superuser's role
-- can become that superuser, which is not to be recommended.
create function rwproxy.capture_refusal(author name, relation oid, out obstacle text, out hint text)
language sql stable
as $$
    select case
               when not may.by_author then pg_catalog.format('role "%s" has no TRIGGER privilege on %s', author, t.oid::regclass)
               else pg_catalog.format('rwproxy''s service role "%s" is not a member of the owner of %s', current_user, t.oid::regclass)
           end,
           case
               when not may.by_author
                   then pg_catalog.format('GRANT TRIGGER ON %s TO %I.', t.oid::regclass, author)
               when o.rolsuper
                   then pg_catalog.format('ALTER TABLE %s OWNER TO a role that is no superuser, and GRANT that one TO %I.',
                       t.oid::regclass, current_user)
               else pg_catalog.format('GRANT %I TO %I.', o.rolname, current_user)
           end
      from rwproxy.capture_tree(rwproxy.capture_root(relation)) as t (oid)
      join pg_catalog.pg_class c on c.oid = t.oid
      join pg_catalog.pg_roles o on o.oid = c.relowner
     cross join lateral (
           select pg_catalog.pg_has_role(author, c.relowner, 'USAGE')
                      or pg_catalog.has_table_privilege(author, c.oid, 'TRIGGER') as by_author,
                  pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE') as by_service
           ) as may
     where not may.by_author or not may.by_service
     order by t.oid
     limit 1
$$;

-- loggable says how the values of a type are kept apart in a log: 'value' when
-- equal values are the same for every expression, 'image' when they need not be
-- (1.0 and 1.00, 30 days and a month). It is null for types that are not
-- PostgreSQL's own: the log must not be in the way of dropping them. type is not
-- a domain.
create function rwproxy.loggable(type oid) returns text
language sql stable
as $$
    select case
               when t.oid in (
                        'bool'::regtype, 'int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'oid'::regtype,
                        '"char"'::regtype, 'name'::regtype, 'text'::regtype, 'varchar'::regtype, 'date'::regtype,
                        'time'::regtype, 'timetz'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype,
                        'uuid'::regtype, 'bytea'::regtype, 'inet'::regtype, 'cidr'::regtype, 'macaddr'::regtype,
                        'macaddr8'::regtype, 'money'::regtype, 'bit'::regtype, 'varbit'::regtype)
                   then 'value'
               when t.oid in (
                        'numeric'::regtype, 'float4'::regtype, 'float8'::regtype, 'interval'::regtype,
                        'bpchar'::regtype)
                   then 'image'
               when t.typcategory = 'A' and t.typelem <> 0
                   then nullif(rwproxy.loggable(t.typelem), 'image')
           end
      from pg_catalog.pg_type t
     where t.oid = type
$$;

create function rwproxy.base_type(type oid) returns oid
language sql stable
as $$
    with recursive base (oid, typbasetype) as (
        select t.oid, t.typbasetype from pg_catalog.pg_type t where t.oid = type
         union all
        select t.oid, t.typbasetype from base b join pg_catalog.pg_type t on t.oid = b.typbasetype
    )
    select b.oid from base b where b.typbasetype = 0
$$;

-- capture_columns are the columns of a relation in the order of their names as
-- given, without those that are not there; with loggable, without those that
-- cannot be logged either.
create function rwproxy.capture_columns(relation oid, names text[], loggable boolean) returns smallint[]
language sql stable
as $$
    select coalesce(pg_catalog.array_agg(a.attnum order by given.position), '{}')
      from (
            select u.name, pg_catalog.min(u.position) as position
              from pg_catalog.unnest(names) with ordinality as u (name, position)
             group by u.name
           ) as given
      join pg_catalog.pg_attribute a on a.attrelid = relation and a.attname = given.name
     where a.attnum > 0
       and not a.attisdropped
       and (not loggable or a.attgenerated <> 'v' and rwproxy.loggable(rwproxy.base_type(a.atttypid)) is not null)
$$;

-- capture_branch is the part of capture_body for one kind of statement: it
-- returns from the function unless anything may have changed.
create function rwproxy.capture_branch(
    operation text, rows text, log text, depth integer, columns text[], plain text[], distinguished text[],
    fits text, missing text, names text[], changed text, changed_one text, wake text
) returns text
language plpgsql stable
as $$
declare
    few constant integer := 16;
    sample constant integer := 20000;
    -- Keeps the log of one statement at about 1 MB. As many as a refresh can do
    -- with: see MaxKeys.
    many constant integer := 16000;

    branch text;
    source text := coalesce(changed, (
        select pg_catalog.format('select %s from %s t', pg_catalog.string_agg(pg_catalog.format('t.%s as %s', p, c), ', '), rows)
          from rows from (pg_catalog.unnest(plain), pg_catalog.unnest(columns)) as u (p, c)));
    list text;
begin
    branch := pg_catalog.format($branch$
    when %s then
        select count(*), coalesce(bool_and(s.fits), true)
          into capture.affected, capture.fits
          from (
                select %s as fits
                  from %s t%s
                 limit %s
               ) as s;
        if capture.affected = 0 then
            return null;
        end if;
%s$branch$, pg_catalog.quote_literal(operation), coalesce(fits, 'true'), rows,
        (select E'\n                 cross join (select ' || missing || ') m'), few + 1,
        case when pg_catalog.current_setting('server_version_num')::integer >= 180000 and names is not null
            then pg_catalog.format($check$
        if exists (
            select from pg_attribute a
             where a.attrelid = TG_RELID and a.attgenerated = 'v' and a.attname = any (%L))
        then
            capture.fits := false;
        end if;
$check$, names)
        end);
    if depth = 0 then
        if changed is not null then
            branch := branch || pg_catalog.format($branch$
        if capture.fits and not exists (%s) then
            return null;
        end if;
$branch$, changed);
        end if;
        return branch || wake;
    end if;
    branch := branch || wake;

    list := pg_catalog.array_to_string(columns, ', ');
    branch := branch || E'\n        if capture.fits then\n';
    if changed_one is not null then
        branch := branch || pg_catalog.format($branch$
            if capture.affected = 1 then
                insert into %s (xid, known, own, %s)
                select pg_current_xact_id(), %s, capture.own, r.*
                  from (%s) as r;
                return null;
            end if;
$branch$, log, list, depth, changed_one);
    end if;
    branch := branch || pg_catalog.format($branch$
            if capture.affected <= %s then
                insert into %s (xid, known, own, %s)
                select pg_current_xact_id(), %s, capture.own, r.*
                  from (%s) as r;
                return null;
            end if;
$branch$, few, log, list, depth, source);
    for known in reverse depth..1 loop
        branch := branch || pg_catalog.format($branch$
            if (
                select count(*)
                  from (select distinct %1$s from (%2$s limit %3$s) as r limit %4$s + 1) as d
               ) <= %4$s
            then
                with d%5$s as materialized (select distinct %1$s from (%2$s) as r),
                     n%5$s as (select count(*) > %4$s as many from d%5$s)%6$s
                insert into %7$s (xid, known, own, %8$s)%9$s;
                return null;
            end if;
$branch$,
            pg_catalog.array_to_string(distinguished[:known], ', '), source, sample, many, known,
            -- From the distinct values of more columns those of fewer, if they
            -- are too many.
            (select pg_catalog.string_agg(pg_catalog.format(',
                     d%1$s as materialized (select distinct %2$s from d%3$s where (select n.many from n%3$s n)),
                     n%1$s as (select count(*) > %4$s as many from d%1$s)',
                        level, pg_catalog.array_to_string(distinguished[:level], ', '), level + 1, many),
                        '' order by level desc)
               from pg_catalog.generate_series(1, known - 1) as level),
            log, pg_catalog.array_to_string(columns[:known], ', '),
            (select pg_catalog.string_agg(pg_catalog.format('
                select pg_current_xact_id(), %1$s, capture.own, %2$s
                  from d%1$s
                 where not (select n.many from n%1$s n)
                 union all', level, pg_catalog.array_to_string(columns[:level] || pg_catalog.array_fill('null'::text, array[known - level]), ', ')), '' order by level desc)
               from pg_catalog.generate_series(1, known) as level)
            || pg_catalog.format('
                select pg_current_xact_id(), 0, capture.own, %s
                  from n1 n
                 where n.many', pg_catalog.array_to_string(pg_catalog.array_fill('null'::text, array[known]), ', ')));
    end loop;
    return branch || E'        end if;\n';
end
$$;

-- capture_body is the body of the trigger function of a capture.
--
-- A write must never fail because of us, whatever became of the columns since:
-- they may be renamed, dropped or of another type. So the function first asks
-- whether they fit, in a way that holds without looking into any catalog and
-- fails for no table: in
--
--     (select case when false then "day" end from (select t.*) x)
--
-- "day" is the column of the changed rows if there is one, else that of the
-- relation m further out, whose type no column has; only its type is asked for.
-- If they do not fit, it logs that anything may have changed. Postgres parses
-- the statements after that only when they are run. A virtual column, which
-- PostgreSQL 18 has and refuses to read here, is the one thing to be looked up.
--
-- A statement of few rows logs their values plainly: DISTINCT costs more than
-- all the rest. One of many logs the distinct values, or those of fewer leading
-- columns when there are too many. A look at some of the rows tells most of the
-- columns that are too many by themselves, so that the rows are read once.
--
-- An UPDATE logs the rows that are different in what flows read. Which old row
-- became which new one does not matter: rows that are equal pair by pair are
-- equal as a whole. Images are compared, not values: not every type has an
-- equality, and equal values can be different (1.0 and 1.00).
create function rwproxy.capture_body(captured rwproxy.capture) returns text
language plpgsql stable
as $$
declare
    log text := pg_catalog.format('rwproxy_log.log_%s', captured.number);
    depth integer := pg_catalog.cardinality(captured.columns);
    is_target boolean := exists (
        select from rwproxy.capture_need n where n.relation = captured.relation and n.is_target);
    is_source boolean := exists (
        select from rwproxy.capture_need n where n.relation = captured.relation and not n.is_target);
    columns text[]; -- of the log
    quoted text[]; -- of the relation
    plain text[]; -- the values of quoted; text by its bytes
    distinguished text[]; -- what keeps the values of a column apart
    fits text;
    missing text;
    names text[]; -- of the columns in reads and quoted
    reads text[]; -- of the relation, quoted
    body text;
    changed text;
    changed_one text;
    -- Transactions that notify commit one after the other, so whoever listens has
    -- a lock with these keys while it looks by itself. And a write must not fail,
    -- as a transaction does that has notified and is prepared, and every one when
    -- the queue of notifications is full.
    wake text := case
        when captured.wakes then $wake$
        if current_setting('max_prepared_transactions') = '0' and pg_notification_queue_usage() < 0.5 then
            if pg_try_advisory_lock_shared(1920430194, -1) then
                perform pg_advisory_unlock_shared(1920430194, -1);
                perform pg_notify('rwproxy', '');
            end if;
        end if;
$wake$
        else ''
    end;
begin
    select pg_catalog.array_agg('c' || a.attnum order by u.position),
           pg_catalog.array_agg(pg_catalog.quote_ident(a.attname) order by u.position),
           pg_catalog.array_agg(pg_catalog.quote_ident(a.attname)
               || case when a.attcollation <> 0 then ' collate "C"' else '' end order by u.position),
           pg_catalog.array_agg('c' || a.attnum
               || case rwproxy.base_type(a.atttypid)
                      when 'numeric'::regtype then pg_catalog.format(', numeric_send(c%s)', a.attnum)
                      when 'float4'::regtype then pg_catalog.format(', float4send(c%s)', a.attnum)
                      when 'float8'::regtype then pg_catalog.format(', float8send(c%s)', a.attnum)
                      when 'interval'::regtype then pg_catalog.format(', interval_send(c%s)', a.attnum)
                      when 'bpchar'::regtype then pg_catalog.format(', concat(c%s) collate "C"', a.attnum)
                      else ''
                  end order by u.position)
      into columns, quoted, plain, distinguished
      from pg_catalog.unnest(captured.columns) with ordinality as u (attnum, position)
      join pg_catalog.pg_attribute a on a.attrelid = captured.relation and a.attnum = u.attnum;

    select pg_catalog.string_agg(
               case
                   when a.attnum = any (captured.columns)
                       then pg_catalog.format('pg_typeof((select case when false then %I end from (select t.*) x))::oid = %s',
                           a.attname, rwproxy.base_type(a.atttypid))
                   else pg_catalog.format('pg_typeof((select case when false then %I end from (select t.*) x)) <> ''rwproxy_log.missing''::regtype',
                           a.attname)
               end, E'\n                 and ' order by a.attnum),
           pg_catalog.string_agg(pg_catalog.format('null::rwproxy_log.missing as %I', a.attname), ', ' order by a.attnum),
           pg_catalog.array_agg(a.attname::text order by a.attnum),
           pg_catalog.array_agg(pg_catalog.quote_ident(a.attname) order by a.attnum)
      into fits, missing, names, reads
      from pg_catalog.pg_attribute a
     where a.attrelid = captured.relation
       and a.attnum > 0
       and not a.attisdropped
       and case
               -- Every column but the virtual ones, which follow from others.
               when captured.reads is null then a.attgenerated <> 'v'
               else a.attnum = any (captured.columns || captured.reads)
           end;

    -- The rows of an UPDATE, old and new, that are not equal pair by pair.
    changed := pg_catalog.format(
        'select v.*
                  from (select row_number() over () as i, row(%1$s) as image%2$s from rwproxy_old t) o
                  full join (select row_number() over () as i, row(%1$s) as image%2$s from rwproxy_new t) n using (i)
                 cross join lateral (values %3$s
                 where (o.image *= n.image) is not true',
        't.' || pg_catalog.array_to_string(reads, ', t.'),
        (select pg_catalog.string_agg(pg_catalog.format(', t.%s as %s', p, c), '')
           from rows from (pg_catalog.unnest(plain), pg_catalog.unnest(columns)) as u (p, c)),
        case when depth = 0 then '(1)) as v (c)'
             else pg_catalog.format('(o.%s), (n.%s)) as v (%s)',
                      pg_catalog.array_to_string(columns, ', o.'),
                      pg_catalog.array_to_string(columns, ', n.'),
                      pg_catalog.array_to_string(columns, ', '))
        end);
    changed_one := pg_catalog.format(
        'select v.*
                  from rwproxy_old o
                 cross join rwproxy_new n
                 cross join lateral (values %s
                 where row(%s)::record *<> row(%s)::record',
        case when depth = 0 then '(1)) as v (c)'
             else pg_catalog.format('(o.%s), (n.%s)) as v (%s)',
                      pg_catalog.array_to_string(quoted, ', o.'),
                      pg_catalog.array_to_string(quoted, ', n.'),
                      pg_catalog.array_to_string(columns, ', '))
        end,
        'o.' || pg_catalog.array_to_string(reads, ', o.'),
        'n.' || pg_catalog.array_to_string(reads, ', n.'));

    body := pg_catalog.format($body$
#variable_conflict use_column
<<capture>>
declare
    own boolean := %s;
    affected bigint;
    fits boolean;
begin
%s    case TG_OP
$body$,
        case when is_target then pg_catalog.format(
            'pg_trigger_depth() = 1 and exists (
        select from rwproxy_log.own_write w where w.xid = pg_current_xact_id() and w.capture = %s)', captured.number)
            else 'false' end,
        case when is_target and not is_source then
            E'    if capture.own then\n        return null;\n    end if;\n'
            else '' end);
    body := body
        || rwproxy.capture_branch('INSERT', 'rwproxy_new', log, depth, columns, plain, distinguished, fits, missing, names, null, null, wake)
        || rwproxy.capture_branch('DELETE', 'rwproxy_old', log, depth, columns, plain, distinguished, fits, missing, names, null, null, wake)
        || rwproxy.capture_branch('UPDATE', 'rwproxy_new', log, depth, columns, plain, distinguished, fits, missing, names, changed, changed_one, wake)
        || pg_catalog.format($body$
    when 'TRUNCATE' then
        null;%s
    end case;
    insert into %s (xid, known, own) values (pg_current_xact_id(), 0, capture.own);
    return null;
end
$body$, pg_catalog.rtrim(wake, E'\n'), log);
    return body;
end
$$;

-- needed_reads are the columns that flows read of a root; null for every column.
create function rwproxy.needed_reads(root oid) returns smallint[]
language sql stable
as $$
    select case
               when pg_catalog.bool_or(n.reads is null) then null
               else array(
                   select distinct u.attnum
                     from rwproxy.capture_need every
                    cross join pg_catalog.unnest(every.reads || every.columns) as u (attnum)
                     join pg_catalog.pg_attribute a on a.attrelid = root and a.attnum = u.attnum and not a.attisdropped
                    where every.relation = root
                    order by u.attnum)
           end
      from rwproxy.capture_need n
     where n.relation = root
$$;

-- needed_leading are the leading ones of a log's columns, to the last that a
-- flow needs.
create function rwproxy.needed_leading(root oid, logged smallint[]) returns smallint[]
language sql stable
as $$
    select logged[:coalesce(pg_catalog.max(pg_catalog.array_position(logged, u.attnum)), 0)]
      from rwproxy.capture_need n
     cross join pg_catalog.unnest(n.columns) as u (attnum)
     where n.relation = root
$$;

-- replace_capture_function brings the trigger function of a capture up to date.
create function rwproxy.replace_capture_function(captured rwproxy.capture) returns void
language plpgsql
as $$
declare
    body text := rwproxy.capture_body(captured);
begin
    if not exists (
        select from pg_catalog.pg_proc p
         where p.pronamespace = 'rwproxy_log'::regnamespace
           and p.proname = 'capture_' || captured.number
           and p.prosrc = body)
    then
        execute pg_catalog.format(
            'create or replace function rwproxy_log.capture_%s() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as %L',
            captured.number, body);
        execute pg_catalog.format('revoke execute on function rwproxy_log.capture_%s() from public', captured.number);
    end if;
end
$$;

-- install_capture brings the log, the function and the triggers of a root up to
-- what the needs of the flows add up to. The relation is locked against
-- writers: those that the old function served have committed, those to come use
-- the new one.
create function rwproxy.install_capture(root oid) returns void
language plpgsql
as $$
declare
    captured rwproxy.capture;
    gone smallint[];
    kept smallint[];
    member oid;
    added smallint;
    event record;
begin
    select c.* into captured from rwproxy.capture c where c.relation = root for update;

    -- Columns that were dropped or got another type.
    gone := array(
        select u.attnum
          from pg_catalog.unnest(captured.columns) as u (attnum)
          left join pg_catalog.pg_attribute a on a.attrelid = root and a.attnum = u.attnum and not a.attisdropped
          left join pg_catalog.pg_attribute l on l.attrelid = captured.log and l.attname = 'c' || u.attnum
         where l.atttypid is distinct from rwproxy.base_type(a.atttypid));
    if gone <> '{}' then
        execute pg_catalog.format('update %s set known = 0', captured.log);
    end if;
    kept := rwproxy.needed_leading(root, array(
        select u.attnum
          from pg_catalog.unnest(captured.columns) with ordinality as u (attnum, position)
         where u.attnum <> all (gone)
         order by u.position));
    foreach added in array captured.columns loop
        if added <> all (kept) then
            execute pg_catalog.format('alter table %s drop column if exists c%s', captured.log, added);
        end if;
    end loop;
    captured.columns := kept;

    for added in
        select u.attnum
          from rwproxy.capture_need n
         cross join pg_catalog.unnest(n.columns) with ordinality as u (attnum, position)
          join pg_catalog.pg_attribute a on a.attrelid = root and a.attnum = u.attnum and not a.attisdropped
         where n.relation = root
           and u.attnum <> all (captured.columns)
         group by u.attnum
         order by pg_catalog.min(u.position), u.attnum
    loop
        execute pg_catalog.format('alter table %s add column c%s %I.%I', captured.log, added, n.nspname, t.typname)
           from pg_catalog.pg_attribute a
           join pg_catalog.pg_type t on t.oid = rwproxy.base_type(a.atttypid)
           join pg_catalog.pg_namespace n on n.oid = t.typnamespace
          where a.attrelid = root and a.attnum = added;
        captured.columns := captured.columns || added;
    end loop;
    captured.reads := rwproxy.needed_reads(root);
    update rwproxy.capture c
       set columns = captured.columns,
           reads = captured.reads
     where c.relation = root;

    perform rwproxy.replace_capture_function(captured);

    for member in select oid from rwproxy.capture_tree(root) as t (oid) loop
        for event in
            select e.type, e.name as event, e.tables, t.tgenabled,
                   t.oid is null as absent,
                   coalesce(t.tgname, pg_catalog.format('rwproxy_%s_%s', captured.number, e.name)) as name
              from (values
                       ('insert', 4, 'referencing new table as rwproxy_new'),
                       ('delete', 8, 'referencing old table as rwproxy_old'),
                       ('update', 16, 'referencing old table as rwproxy_old new table as rwproxy_new'),
                       ('truncate', 32, '')
                   ) as e (name, type, tables)
              left join pg_catalog.pg_trigger t
                on t.tgrelid = member
               and t.tgfoid = pg_catalog.format('rwproxy_log.capture_%s()', captured.number)::regprocedure
               and t.tgtype = e.type
        loop
            if event.absent then
                execute pg_catalog.format(
                    'create trigger %I after %s on %s %s for each statement execute function rwproxy_log.capture_%s()',
                    event.name, event.event, member::regclass, event.tables, captured.number);
            end if;
            if event.tgenabled is distinct from 'A' then
                execute pg_catalog.format('alter table only %s enable always trigger %I', member::regclass, event.name);
            end if;
        end loop;
    end loop;
end
$$;

-- captured says whether every table below a root has its triggers, all of them
-- fire whatever the session's role in replication, and the log has not come with a
-- dump.
create function rwproxy.captured(root oid) returns boolean
language sql stable
as $$
    select not exists (
        select
          from rwproxy.capture_tree(root) as t (oid)
         where (
               select pg_catalog.count(distinct g.tgtype)
                 from pg_catalog.pg_trigger g
                where g.tgrelid = t.oid
                  and g.tgfoid = p.oid
                  and g.tgenabled = 'A'
               ) < 4)
      from rwproxy.capture c
      join pg_catalog.pg_proc p on p.pronamespace = 'rwproxy_log'::regnamespace and p.proname = 'capture_' || c.number
     where c.relation = root
       and c.incarnation = rwproxy.incarnation()
$$;

-- need_columns are what a flow needs of a relation, as columns of its root.
create function rwproxy.need_columns(relation oid, names jsonb, loggable boolean) returns smallint[]
language sql stable
as $$
    select rwproxy.capture_columns(rwproxy.capture_root(relation),
        array(select pg_catalog.jsonb_array_elements_text(names)), loggable)
$$;

-- predicate_columns are the columns of a target that are logged: all that the
-- predicate reads, or none, for it is evaluated over all of them.
create function rwproxy.predicate_columns(target oid, names jsonb) returns smallint[]
language sql stable
as $$
    select case
               when every.columns = logged.columns then logged.columns
               else '{}'
           end
      from rwproxy.need_columns(target, names, false) as every (columns)
     cross join rwproxy.need_columns(target, names, true) as logged (columns)
$$;

-- renew_log begins a log anew that was restored from a dump: its transactions
-- have the numbers of others here. The relation is locked against writers.
create function rwproxy.renew_log(root oid) returns void
language plpgsql
as $$
declare
    renewed rwproxy.capture;
begin
    update rwproxy.capture c
       set incarnation = rwproxy.incarnation(),
           wakes_since = null
     where c.relation = root and c.incarnation <> rwproxy.incarnation()
    returning c.* into renewed;
    if found then
        execute pg_catalog.format('delete from %s', renewed.log);
        update rwproxy.capture_need n
           set installed = pg_catalog.pg_current_xact_id(),
               since = pg_catalog.pg_current_snapshot()
         where n.relation = root;
    end if;
end
$$;

-- need_capture notes what a flow needs, and sees to it that it is logged. It
-- returns false where there was nothing to do.
create function rwproxy.need_capture(flow_view oid, wanted rwproxy.capture_need) returns boolean
language plpgsql
as $$
declare
    before rwproxy.capture_need;
    captured rwproxy.capture;
    root oid := wanted.relation;
begin
    -- The values of a virtual column are those of others, which are not known
    -- here.
    if exists (
        select from pg_catalog.pg_attribute a
         where a.attrelid = root and a.attnum = any (wanted.reads) and a.attgenerated = 'v')
    then
        wanted.reads := null;
    end if;
    select n.* into before from rwproxy.capture_need n where n.view = flow_view and n.relation = root;
    if found
        and before.is_target = wanted.is_target
        and before.columns = wanted.columns
        and before.reads is not distinct from wanted.reads
        and rwproxy.captured(root)
        and exists (
            select
              from rwproxy.capture c
              join pg_catalog.pg_proc p on p.pronamespace = 'rwproxy_log'::regnamespace and p.proname = 'capture_' || c.number
             where c.relation = root
               and p.prosrc = rwproxy.capture_body(c))
    then
        return false;
    end if;

    execute pg_catalog.format('lock table %s in share row exclusive mode', root::regclass);
    if not exists (select from rwproxy.capture c where c.relation = root) then
        captured.number := pg_catalog.nextval('rwproxy.capture_number');
        execute pg_catalog.format(
            'create table rwproxy_log.log_%s (xid xid8 not null, known smallint not null, own boolean not null)',
            captured.number);
        execute pg_catalog.format('alter table rwproxy_log.log_%s replica identity full', captured.number);
        insert into rwproxy.capture (relation, number, log, columns, reads, incarnation)
        values (root, captured.number, pg_catalog.format('rwproxy_log.log_%s', captured.number)::regclass, '{}', '{}',
                rwproxy.incarnation());
    end if;
    perform rwproxy.renew_log(root);
    insert into rwproxy.capture_need (view, relation, is_target, columns, reads, installed, since)
    values (flow_view, root, wanted.is_target, wanted.columns, wanted.reads, wanted.installed,
            pg_catalog.pg_current_snapshot())
        on conflict (view, relation) do update
       set is_target = excluded.is_target,
           columns = excluded.columns,
           reads = excluded.reads,
           installed = excluded.installed,
           since = excluded.since;
    perform rwproxy.install_capture(root);
    return true;
end
$$;

-- ensure_capture is what the service asks for each source of a flow.
create function rwproxy.ensure_capture(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    relation oid := (arguments ->> 'relation')::oid;
    refusal record;
    wanted rwproxy.capture_need;
begin
    perform rwproxy.require_service(caller);
    if not exists (select from pg_catalog.pg_class c where c.oid = relation) then
        return pg_catalog.jsonb_build_object(
            'obstacle', 'it was created in a transaction that has not committed',
            'hint', 'The first refresh after the commit records its changes.');
    end if;
    select * into refusal from rwproxy.capture_obstacle(relation);
    if refusal.obstacle is null then
        select * into refusal from rwproxy.capture_refusal((arguments ->> 'author')::name, relation);
    end if;
    wanted.relation := rwproxy.capture_root(relation);
    if refusal.obstacle is null and exists (
        select
          from rwproxy.capture_tree(wanted.relation) as t (oid)
          join pg_catalog.pg_locks l on l.relation = t.oid
         where l.locktype = 'relation'
           and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
           and l.pid = (arguments ->> 'client_pid')::integer
           and l.granted
           and l.mode not in ('AccessShareLock', 'RowShareLock'))
    then
        -- It would wait for the client, and the client for it.
        refusal.obstacle := 'the transaction that is open has written to it';
        refusal.hint := 'The first refresh after the commit records its changes.';
    end if;
    if refusal.obstacle is not null then
        return pg_catalog.jsonb_build_object(
            'name', relation::regclass, 'obstacle', refusal.obstacle, 'hint', refusal.hint);
    end if;
    wanted.is_target := exists (
        select from rwproxy.streaming_table t
         where t.view = (arguments ->> 'view')::oid and t.target = relation);
    if wanted.is_target then
        wanted.columns := rwproxy.predicate_columns(relation, arguments -> 'columns');
    else
        wanted.columns := rwproxy.need_columns(relation, arguments -> 'columns', true);
        -- A partition gets and loses rows by columns that nobody reads.
        wanted.reads := case
            when arguments ? 'reads' and wanted.relation = relation then rwproxy.need_columns(relation, arguments -> 'reads', false)
        end;
    end if;
    wanted.installed := pg_catalog.pg_current_xact_id();
    perform rwproxy.ensure_reader(r.oid) from pg_catalog.pg_roles r where r.rolname = arguments ->> 'author';
    perform rwproxy.need_capture((arguments ->> 'view')::oid, wanted);
    return pg_catalog.jsonb_build_object('name', relation::regclass);
end
$$;

-- capture_target has what others than refreshes write to a flow's target logged,
-- in the transaction that defines the flow. It does without where it may not.
create function rwproxy.capture_target(flow_view oid, target oid, columns jsonb) returns void
language plpgsql
as $$
declare
    wanted rwproxy.capture_need;
begin
    if (rwproxy.capture_obstacle(target)).obstacle is not null
        or exists (
            select
              from rwproxy.capture_tree(rwproxy.capture_root(target)) as t (oid)
              join pg_catalog.pg_class c on c.oid = t.oid
             where not pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE'))
    then
        return;
    end if;
    wanted.relation := rwproxy.capture_root(target);
    wanted.is_target := true;
    wanted.columns := rwproxy.predicate_columns(target, columns);
    wanted.installed := case
        when pg_catalog.current_setting('transaction_isolation') not in ('read committed', 'read uncommitted')
            then pg_catalog.pg_current_xact_id()
    end;
    perform rwproxy.need_capture(flow_view, wanted);
exception when object_in_use then
    -- Deferred checks of the transaction are pending on the table; a refresh
    -- after it tries again.
    null;
end
$$;
