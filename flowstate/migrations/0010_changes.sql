-- What has changed since a flow's last refresh, and where that leads.

-- How the changes of a view's sources lead to the rows that can differ, as the
-- service has found out from catalogs with this fingerprint.
create table rwproxy.proof (
    view regclass primary key,
    fingerprint text not null,
    sources jsonb not null,
    detail jsonb
);

-- view_relations are the relations that a view reads, through nested views,
-- with the views.
create function rwproxy.view_relations(flow_view oid) returns setof oid
language sql stable
as $$
    with recursive reads (oid) as (
        select flow_view
         union
        select named.oid
          from reads v
          join pg_catalog.pg_rewrite r on r.ev_class = v.oid
          join pg_catalog.pg_class c on c.oid = v.oid and c.relkind = 'v'
         cross join lateral (
               select d.refobjid
                 from pg_catalog.pg_depend d
                where d.classid = 'pg_catalog.pg_rewrite'::regclass
                  and d.objid = r.oid
                  and d.refclassid = 'pg_catalog.pg_class'::regclass
                union
               -- Nothing depends on a system catalog, in pg_depend.
               select m.match[1]::oid
                 from pg_catalog.regexp_matches(r.ev_action::text, ':relid (\d+)', 'g') as m (match)
              ) as named (oid)
    )
    select v.oid
      from reads v
      join pg_catalog.pg_class c on c.oid = v.oid
     where c.relkind in ('r', 'p', 'f', 'm', 'v', 'S')
$$;

create function rwproxy.view_sources(flow_view oid) returns setof oid
language sql stable
as $$
    select v.oid
      from rwproxy.view_relations(flow_view) as v (oid)
      join pg_catalog.pg_class c on c.oid = v.oid
     where c.relkind <> 'v'
$$;

create function rwproxy.hash(facts text[]) returns text
language sql immutable
as $$
    select pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
               coalesce(pg_catalog.string_agg(fact, E'\n' order by fact collate "C"), ''), pg_catalog.getdatabaseencoding())), 'hex')
      from pg_catalog.unnest(facts) as fact
$$;

-- fingerprint is a hash of everything but rows that the result of a refresh
-- depends on, or that a proof does. Catalog rows are compared by the transaction
-- that wrote them: what was changed and changed back is told.
--
-- It is not moved by GRANT on a table, ANALYZE, VACUUM, COMMENT, by statistics
-- objects and indexes that are not unique, by other flows on the same sources,
-- and by refreshes. A GRANT on a column moves it.
create function rwproxy.fingerprint(flow_view oid, target oid) returns text
language plpgsql stable
as $$
declare
    read oid[] := array(select rwproxy.view_relations(flow_view)); -- with views
    scanned oid[] := array(
        select distinct tree.oid
          from pg_catalog.unnest(read) as r (oid)
         cross join rwproxy.capture_tree(r.oid) as tree (oid));
    written oid[] := array(select rwproxy.capture_tree(target));
    concerned oid[] := scanned || written;
    called oid[];
    hidden boolean;
    facts text[];
begin
    called := array(
        select distinct called.oid::oid
          from pg_catalog.pg_rewrite r
         cross join pg_catalog.regexp_matches(
                   r.ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') as m (match)
         cross join lateral (select m.match[1]) as called (oid)
         where r.ev_class = any (read)
         union
        select transition.oid
          from pg_catalog.pg_rewrite r
         cross join pg_catalog.regexp_matches(r.ev_action::text, ':aggfnoid (\d+)', 'g') as m (match)
          join pg_catalog.pg_aggregate a on a.aggfnoid = m.match[1]::oid
         cross join pg_catalog.unnest(array[a.aggtransfn::oid, a.aggfinalfn::oid]) as transition (oid)
         where r.ev_class = any (read)
         union
        select g.tgfoid
          from pg_catalog.pg_trigger g
         where g.tgrelid = any (written) and not g.tgisinternal
         union
        -- Of the predicate only the text is stored: what it may call is what it
        -- has the name of.
        select p.oid
          from rwproxy.streaming_table t
          join pg_catalog.pg_proc p on pg_catalog.strpos(pg_catalog.lower(t.condition), pg_catalog.lower(p.proname::text)) > 0
         where t.target = fingerprint.target and p.oid >= 16384
         union
        select o.oprcode
          from rwproxy.streaming_table t
          join pg_catalog.pg_operator o on pg_catalog.strpos(t.condition, o.oprname::text) > 0
         where t.target = fingerprint.target and o.oid >= 16384);
    -- What the bodies of SQL functions call, where they are not strings.
    called := array(
        with recursive every (oid) as (
            select pg_catalog.unnest(called)
             union
            select d.refobjid
              from every e
              join pg_catalog.pg_depend d
                on d.classid = 'pg_catalog.pg_proc'::regclass
               and d.objid = e.oid
               and d.refclassid = 'pg_catalog.pg_proc'::regclass
        )
        select e.oid from every e);
    -- What a body that is a string calls is hidden: it may be any function.
    hidden := exists (
        select
          from pg_catalog.pg_proc p
          join pg_catalog.pg_language l on l.oid = p.prolang
         where p.oid = any (called)
           and p.prosqlbody is null
           and l.lanname not in ('internal', 'c')
           and p.prokind <> 'a'
           and p.pronamespace not in (
                   'pg_catalog'::regnamespace, 'rwproxy_compat'::regnamespace, 'rwproxy_log'::regnamespace));
    facts := array(
        select pg_catalog.format('relation %s %s %s %s %s %s', c.oid, c.oid::regclass, c.relkind, c.relpersistence,
                   c.relrowsecurity, c.relforcerowsecurity)
          from pg_catalog.pg_class c
         where c.oid = any (concerned)
         union all
        select pg_catalog.format('column %s %s %s', a.attrelid, a.attnum, a.xmin)
          from pg_catalog.pg_attribute a
         where a.attrelid = any (concerned) and a.attnum > 0
         union all
        select pg_catalog.format('inheritance %s %s %s', i.inhrelid, i.inhparent, i.xmin)
          from pg_catalog.pg_inherits i
         where i.inhrelid = any (concerned) or i.inhparent = any (concerned)
         union all
        select pg_catalog.format('constraint %s %s', k.oid, k.xmin)
          from pg_catalog.pg_constraint k
         where k.conrelid = any (concerned)
         union all
        select pg_catalog.format('index %s %s %s %s', i.indrelid, pg_catalog.pg_get_indexdef(i.indexrelid), i.indisvalid,
                   i.indimmediate)
          from pg_catalog.pg_index i
         where i.indrelid = any (concerned) and i.indisunique
         union all
        select pg_catalog.format('rule %s %s %s', r.oid, r.xmin, r.ev_enabled)
          from pg_catalog.pg_rewrite r
         where r.ev_class = any (concerned)
         union all
        select pg_catalog.format('function %s %s', p.oid, p.xmin)
          from pg_catalog.pg_proc p
         where (p.oid = any (called) or hidden)
           and p.pronamespace not in (
                   'pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'rwproxy'::regnamespace,
                   'rwproxy_log'::regnamespace)
         union all
        select pg_catalog.format('trigger %s %s %s', g.oid, g.xmin, g.tgenabled)
          from pg_catalog.pg_trigger g
         where not g.tgisinternal
           and (g.tgrelid = any (written)
                or g.tgrelid = any (scanned) and exists (
                    select
                      from pg_catalog.pg_proc p
                     where p.oid = g.tgfoid and p.pronamespace = 'rwproxy_log'::regnamespace))
         union all
        select pg_catalog.format('attribute %s %s %s', f.attrelid, f.attnum, f.xmin)
          from pg_catalog.pg_attribute a
          join pg_catalog.pg_type t on t.oid = rwproxy.base_type(a.atttypid)
          left join pg_catalog.pg_type e on e.oid = t.typelem
          join pg_catalog.pg_attribute f on f.attrelid = coalesce(nullif(t.typrelid, 0), e.typrelid)
         where a.attrelid = any (concerned) and a.attnum > 0 and f.attnum > 0
         union all
        select pg_catalog.format('label %s %s', l.oid, l.xmin)
          from pg_catalog.pg_enum l
         where l.enumtypid in (
               select coalesce(nullif(t.typelem, 0), t.oid)
                 from pg_catalog.pg_attribute a
                 join pg_catalog.pg_type t on t.oid = rwproxy.base_type(a.atttypid)
                where a.attrelid = any (concerned) and a.attnum > 0)
         union all
        select pg_catalog.format('text search configuration %s %s', x.mapcfg, x.xmin)
          from pg_catalog.pg_depend d
          join pg_catalog.pg_rewrite r on r.oid = d.objid and r.ev_class = any (read)
          join pg_catalog.pg_ts_config_map x on x.mapcfg = d.refobjid
         where d.classid = 'pg_catalog.pg_rewrite'::regclass
           and d.refclassid = 'pg_catalog.pg_ts_config'::regclass
         union all
        select 'server ' || pg_catalog.current_setting('server_version_num'));
    -- The files of the tables apart: a rewrite may have changed rows, but it is
    -- a definition that TRUNCATE leaves alone.
    return rwproxy.hash(facts) || '.' || rwproxy.hash(array(
        select pg_catalog.format('%s %s', c.oid, pg_catalog.pg_relation_filenode(c.oid))
          from pg_catalog.pg_class c
         where c.oid = any (concerned)));
end
$$;

-- current_cursor is the snapshot of the statement that calls it, but does not
-- see its own transaction: what that is still to write has the same number as
-- what it has written.
create function rwproxy.current_cursor() returns pg_snapshot
language sql stable
as $$
    select case
               when own.xid < pg_catalog.pg_snapshot_xmax(now.snapshot)
                   then (
                       select pg_catalog.format('%s:%s:%s',
                                  least(own.xid, pg_catalog.pg_snapshot_xmin(now.snapshot)),
                                  pg_catalog.pg_snapshot_xmax(now.snapshot),
                                  pg_catalog.string_agg(running.xid::text, ',' order by running.xid))::pg_snapshot
                         from (
                               select pg_catalog.pg_snapshot_xip(now.snapshot)
                                union
                               select own.xid
                              ) as running (xid))
               else now.snapshot
           end
      from (select pg_catalog.pg_current_snapshot()) as now (snapshot)
     cross join (select pg_catalog.pg_current_xact_id_if_assigned()) as own (xid)
$$;

-- set_cursor notes what a refresh is going to take in. The order matters where
-- each statement has a snapshot of its own: a definition that changes in
-- between is told by the next refresh.
create function rwproxy.set_cursor(refresh_id uuid, stored rwproxy.streaming_table) returns void
language plpgsql
as $$
declare
    fingerprint text := rwproxy.fingerprint(stored.view, stored.target);
begin
    update rwproxy.refresh r
       set cursor = rwproxy.current_cursor(),
           cursor_fingerprint = fingerprint
     where r.id = refresh_id;
end
$$;

-- capture_hindrance says why changes of a relation cannot be logged for a flow
-- as things are, and the way out: null when they can.
create function rwproxy.capture_hindrance(flow_view oid, relation oid, out obstacle text, out hint text)
language sql stable
as $$
    select coalesce(o.obstacle, r.obstacle),
           case
               when o.obstacle is null then r.hint
               else o.hint
           end
      from rwproxy.capture_obstacle(relation) o
     cross join rwproxy.capture_refusal(
           (select pg_catalog.pg_get_userbyid(v.relowner) from pg_catalog.pg_class v where v.oid = flow_view), relation) r
$$;

-- tracking_obstacle says why not every change of a relation since a cursor is
-- logged for a flow: null when it is. Without a cursor it is about the changes
-- from now on.
create function rwproxy.tracking_obstacle(flow_view oid, relation oid, since pg_snapshot) returns text
language plpgsql stable
as $$
declare
    obstacle text := (rwproxy.capture_obstacle(relation)).obstacle;
    need rwproxy.capture_need;
begin
    if obstacle is not null then
        return obstacle;
    end if;
    select n.* into need
      from rwproxy.capture_need n
     where n.view = flow_view and n.relation = rwproxy.capture_root(tracking_obstacle.relation);
    return case
        when not found
            then coalesce((rwproxy.capture_hindrance(flow_view, relation)).obstacle, 'its changes are not recorded')
        when not rwproxy.captured(need.relation) then 'its triggers are not those that record changes'
        when not pg_catalog.pg_visible_in_snapshot(need.installed, since)
            then 'its changes were not recorded at the last refresh'
    end;
end
$$;

-- unrecorded says whether changes of a relation are not logged for a flow,
-- although nothing about the relation is in the way.
create function rwproxy.unrecorded(flow_view oid, relation oid) returns boolean
language sql stable
as $$
    select (rwproxy.capture_obstacle(relation)).obstacle is null
       and not exists (
           select from rwproxy.capture_need n
            where n.view = flow_view
              and n.relation = rwproxy.capture_root(unrecorded.relation)
              and rwproxy.captured(n.relation))
$$;

-- log_depth is how many leading columns of a log must be known for columns of a
-- relation to be, null when one of them is not logged.
create function rwproxy.log_depth(captured rwproxy.capture, attnums smallint[]) returns integer
language sql stable
as $$
    select case
               when pg_catalog.count(*) = pg_catalog.count(p.position) then coalesce(pg_catalog.max(p.position), 0)
           end
      from pg_catalog.unnest(attnums) as u (attnum)
     cross join lateral (select pg_catalog.array_position(captured.columns, u.attnum)) as p (position)
$$;

-- store_proof is the service's alone: what it stores is SQL that runs with its
-- rights.
create function rwproxy.store_proof(caller name, arguments jsonb) returns void
language plpgsql
as $$
begin
    perform rwproxy.require_service(caller);
    insert into rwproxy.proof (view, fingerprint, sources, detail)
    values ((arguments ->> 'view')::oid, arguments ->> 'fingerprint', arguments -> 'sources', arguments -> 'detail')
        on conflict (view) do update
       set fingerprint = excluded.fingerprint,
           sources = excluded.sources,
           detail = excluded.detail;
end
$$;

-- ensure_reader creates the function that runs queries with a role's rights.
--
-- A route that looks up rows of tables cannot run with rwproxy's own: planning a
-- query calls functions in the indexes, constraints and statistics of its
-- tables, and a name in it may have come to mean another table. With the rights
-- of the flow's author it does what the flow's query does. The author owns the
-- function and has no right to reach it.
--
-- One of another role was restored from a dump, where its owner had the OID.
create function rwproxy.ensure_reader(author oid) returns void
language plpgsql
as $$
declare
    name text := pg_catalog.format('rwproxy_log.read_as_%s', author);
    its_owner oid;
begin
    if not pg_catalog.pg_has_role(current_user, author, 'USAGE') then
        return;
    end if;
    for attempt in 1..2 loop
        select p.proowner into its_owner
          from pg_catalog.pg_proc p
         where p.oid = pg_catalog.to_regprocedure(name || '(text, integer)');
        if its_owner = author or not pg_catalog.pg_has_role(current_user, its_owner, 'USAGE') then
            return;
        end if;
        perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(name, 0));
    end loop;
    if its_owner is not null then
        execute pg_catalog.format('drop function %s', name);
    end if;
    execute pg_catalog.format(
        'create function %s(query text, row_limit integer) returns jsonb
         language plpgsql security definer set search_path = pg_catalog, pg_temp
         as %L', name, $body$
declare
    tuples jsonb;
begin
    execute 'select coalesce(jsonb_agg(concat(r)), ''[]'') from (select * from (' || query || ') as q limit $1 + 1) as r'
       into tuples using row_limit;
    return tuples;
end
$body$);
    execute pg_catalog.format('revoke execute on function %s from public', name);
    execute pg_catalog.format('grant execute on function %s to current_user', name);
    -- Only who may create in a schema can be given a function in it.
    execute pg_catalog.format('grant create on schema rwproxy_log to %I', pg_catalog.pg_get_userbyid(author));
    execute pg_catalog.format('alter function %s owner to %I', name, pg_catalog.pg_get_userbyid(author));
    execute pg_catalog.format('revoke create on schema rwproxy_log from %I', pg_catalog.pg_get_userbyid(author));
end
$$;

-- reader returns the function that runs queries with the rights of a view's
-- owner, null if there is none.
create function rwproxy.reader(flow_view oid) returns regproc
language sql stable
as $$
    select p.oid::regproc
      from pg_catalog.pg_class v
      join pg_catalog.pg_proc p
        on p.pronamespace = 'rwproxy_log'::regnamespace
       and p.proname = 'read_as_' || v.relowner
       and p.proowner = v.relowner
       and p.prosecdef
     where v.oid = flow_view
$$;

-- log_rows returns the rows of a log since a cursor as a relation in SQL, null
-- if they are very many. Its columns are c and the number that the column has in
-- a relation, whose root has the log: a partition's numbers can be others.
create function rwproxy.log_rows(
    captured rwproxy.capture, relation oid, attnums smallint[], depth integer, since pg_snapshot
) returns text
language plpgsql
as $$
declare
    most constant integer := 20000;
    list text; -- one row's values, as an expression
    names text;
    types text;
    tuples text[];
begin
    select pg_catalog.string_agg(pg_catalog.format(
               'pg_catalog.quote_nullable(case when l.c%s is not null then pg_catalog.concat(l.c%1$s) end) || %L',
               here.attnum, pg_catalog.format('::%I.%I', n.nspname, t.typname)), ' || '', '' || ' order by here.attnum),
           pg_catalog.string_agg('c' || there.attnum, ', ' order by here.attnum),
           pg_catalog.string_agg(pg_catalog.format('null::%I.%I as c%s', n.nspname, t.typname, there.attnum), ', '
               order by here.attnum)
      into list, names, types
      from pg_catalog.pg_attribute here
      join pg_catalog.pg_attribute there on there.attrelid = log_rows.relation and there.attname = here.attname
      join pg_catalog.pg_type t on t.oid = rwproxy.base_type(here.atttypid)
      join pg_catalog.pg_namespace n on n.oid = t.typnamespace
     where here.attrelid = captured.relation and here.attnum = any (attnums);
    execute pg_catalog.format(
        'select array(
                    select distinct ''('' || %s || '')''
                      from %s l
                     where l.known >= $1 and not pg_catalog.pg_visible_in_snapshot(l.xid, $2)
                     limit $3 + 1)', list, captured.log)
       into tuples using depth, since, most;
    return case
        when pg_catalog.cardinality(tuples) = 0 then pg_catalog.format('(select %s where false)', types)
        when pg_catalog.cardinality(tuples) <= most
            then pg_catalog.format('(select * from (values %s) as log (%s))',
                     pg_catalog.array_to_string(tuples, ', '), names)
    end;
end
$$;

-- route_query returns the query of a route with the logs in it; null when what
-- it needs is not known of every change. For rwproxy's own rights the logs are
-- the tables, and $1 is the cursor; for those of an author, who may not read
-- them, their rows.
create function rwproxy.route_query(route jsonb, since pg_snapshot, for_author boolean) returns text
language plpgsql
as $$
declare
    need record;
    log record;
    part jsonb;
    statement text := '';
    logs jsonb := '{}';
    rows_of text;
    unknown boolean;
begin
    for need in
        select (n.need ->> 'relation')::oid as relation, n.need -> 'columns' as columns
          from pg_catalog.jsonb_array_elements(route -> 'needs') as n (need)
    loop
        select c as captured, c.log, rwproxy.log_depth(c, attnums.list) as depth, attnums.list as attnums,
               pg_catalog.cardinality(attnums.list) = pg_catalog.jsonb_array_length(need.columns) as whole
          into log
          from rwproxy.capture c
         cross join rwproxy.need_columns(need.relation, need.columns, true) as attnums (list)
         where c.relation = rwproxy.capture_root(need.relation);
        if not found or log.depth is null or not log.whole then
            return null;
        end if;
        execute pg_catalog.format(
            'select exists (select from %s l where l.known < $2 and not pg_catalog.pg_visible_in_snapshot(l.xid, $1))',
            log.log)
           into unknown using since, log.depth;
        if unknown then
            return null;
        end if;
        if for_author then
            rows_of := rwproxy.log_rows(log.captured, need.relation, log.attnums, log.depth, since);
            if rows_of is null then
                return null;
            end if;
            logs := logs || pg_catalog.jsonb_build_object(need.relation, rows_of);
            continue;
        end if;
        logs := logs || pg_catalog.jsonb_build_object(need.relation, (
            select pg_catalog.format(
                       '(select %s from %s l where l.known >= %s and not pg_catalog.pg_visible_in_snapshot(l.xid, $1))',
                       pg_catalog.string_agg(pg_catalog.format('l.c%s as c%s', here.attnum, there.attnum), ', '),
                       log.log, log.depth)
              from pg_catalog.pg_attribute here
              join pg_catalog.pg_attribute there on there.attname = here.attname and there.attrelid = need.relation
             where here.attrelid = rwproxy.capture_root(need.relation)
               and here.attnum = any (log.attnums)));
    end loop;
    for part in select p.part from pg_catalog.jsonb_array_elements(route -> 'parts') as p (part) loop
        statement := statement || case pg_catalog.jsonb_typeof(part)
            when 'string' then part #>> '{}'
            else logs ->> (part #>> '{}')
        end;
    end loop;
    return statement;
end
$$;

-- source_changes is what has happened to one relation.
create function rwproxy.source_changes(flow_view oid, relation oid, since pg_snapshot) returns jsonb
language plpgsql
as $$
declare
    obstacle text := rwproxy.tracking_obstacle(flow_view, relation, since);
    log regclass := (
        select c.log from rwproxy.capture c where c.relation = rwproxy.capture_root(source_changes.relation));
    logged bigint := 0;
begin
    if since is not null and log is not null then
        execute pg_catalog.format(
            'select pg_catalog.count(*) from %s l where not pg_catalog.pg_visible_in_snapshot(l.xid, $1)', log)
           into logged using since;
    end if;
    return pg_catalog.jsonb_build_object(
        'oid', relation::bigint,
        'name', relation::regclass,
        'obstacle', obstacle,
        'hint', case when obstacle is not null then (rwproxy.capture_hindrance(flow_view, relation)).hint end,
        'unrecorded', obstacle is not null and rwproxy.unrecorded(flow_view, relation),
        'rows', logged,
        'route', -1,
        'keys', '[]'::jsonb);
end
$$;

-- narrowed_changes adds the keys that the first usable route leads to.
create function rwproxy.narrowed_changes(changes jsonb, since pg_snapshot, proved rwproxy.proof, key_limit integer)
returns jsonb
language plpgsql
as $$
declare
    routes jsonb;
    reader regproc;
    reading boolean;
    query text;
    tuples jsonb;
begin
    if (changes ->> 'rows')::bigint = 0 or changes ->> 'obstacle' is not null then
        return changes;
    end if;
    reader := rwproxy.reader(proved.view);
    routes := coalesce((
        select s.source -> 'routes'
          from pg_catalog.jsonb_array_elements(proved.sources) as s (source)
         where s.source -> 'relation' = changes -> 'oid'), '[]');
    for i in 0..pg_catalog.jsonb_array_length(routes) - 1 loop
        -- Not by the names in it, which can have come to mean others since.
        reading := not coalesce((routes -> i ->> 'logs_only')::boolean, false);
        continue when reading and reader is null;
        query := rwproxy.route_query(routes -> i, since, reading);
        continue when query is null;
        if reading then
            execute pg_catalog.format('select %s($1, $2)', reader) into tuples using query, key_limit;
        else
            execute 'select coalesce(pg_catalog.jsonb_agg(pg_catalog.concat(r)), ''[]'') from (select * from ('
                || query || ') as q limit $2 + 1) as r'
               into tuples using since, key_limit;
        end if;
        if pg_catalog.jsonb_array_length(tuples) <= key_limit then
            return changes || pg_catalog.jsonb_build_object('route', i, 'keys', tuples);
        end if;
    end loop;
    return changes;
end
$$;

-- external_changes is what others than refreshes have written to a target: the
-- distinct values of the predicate's columns as a relation in SQL, with the
-- caller's rights to be read.
create function rwproxy.external_changes(
    need rwproxy.capture_need, since pg_snapshot, row_limit integer, out relation text, out unknown boolean
)
language plpgsql
as $$
declare
    captured rwproxy.capture;
    depth integer;
    total bigint;
    list text; -- one row's values, as an expression
    names text;
    tuples text[];
begin
    select c.* into strict captured from rwproxy.capture c where c.relation = need.relation;
    depth := rwproxy.log_depth(captured, need.columns);
    execute pg_catalog.format(
        'select coalesce(pg_catalog.bool_or(%L or l.known < $2), false), pg_catalog.count(*)
           from %s l
          where not l.own and not pg_catalog.pg_visible_in_snapshot(l.xid, $1)', depth = 0, captured.log)
       into unknown, total using since, depth;
    if unknown or total = 0 then
        return;
    end if;
    select pg_catalog.string_agg(pg_catalog.format(
               'pg_catalog.quote_nullable(case when l.c%s is not null then pg_catalog.concat(l.c%1$s) end) || %L',
               a.attnum,
               pg_catalog.format('::%I.%I', n.nspname, t.typname)
                   || case
                          when a.attcollation <> 0
                              then pg_catalog.format(' collate %I.%I', cn.nspname, co.collname)
                          else ''
                      end), ' || '', '' || ' order by a.attnum),
           pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' order by a.attnum)
      into list, names
      from pg_catalog.pg_attribute a
      join pg_catalog.pg_type t on t.oid = rwproxy.base_type(a.atttypid)
      join pg_catalog.pg_namespace n on n.oid = t.typnamespace
      left join pg_catalog.pg_collation co on co.oid = a.attcollation
      left join pg_catalog.pg_namespace cn on cn.oid = co.collnamespace
     where a.attrelid = need.relation and a.attnum = any (need.columns);
    execute pg_catalog.format(
        'select array(
                    select distinct ''('' || %s || '')''
                      from %s l
                     where not l.own and not pg_catalog.pg_visible_in_snapshot(l.xid, $1)
                     limit $2 + 1)', list, captured.log)
       into tuples using since, row_limit;
    if pg_catalog.cardinality(tuples) > row_limit then
        unknown := true;
        return;
    end if;
    relation := pg_catalog.format('(select * from (values %s) as external (%s))',
        pg_catalog.array_to_string(tuples, ', '), names);
end
$$;

-- read_changes: everything that has changed for a flow since its cursor. With an
-- id it sets the cursor of that refresh, before anything is read.
create function rwproxy.read_changes(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    stored rwproxy.streaming_table;
    running rwproxy.refresh;
    definitions text; -- their fingerprint
    since pg_snapshot;
    proved rwproxy.proof;
    need rwproxy.capture_need;
    external record;
    target_obstacle text;
    sources jsonb;
    changes jsonb;
    digits text := pg_catalog.current_setting('extra_float_digits');
    key_limit integer := (arguments ->> 'limit')::integer;
begin
    perform rwproxy.require_writer(caller, (arguments ->> 'target')::oid);
    select t.* into stored from rwproxy.streaming_table t where t.target = (arguments ->> 'target')::oid;
    if stored.view is null then
        raise exception using errcode = 'wrong_object_type',
            message = pg_catalog.format('"%s" has no flow', (arguments ->> 'target')::oid::regclass);
    end if;
    if arguments ? 'id' then
        running := rwproxy.own_refresh(caller, (arguments ->> 'id')::uuid);
        if running.table_id <> stored.id then
            raise exception using errcode = 'insufficient_privilege',
                message = pg_catalog.format('permission denied for refresh %s', running.id);
        end if;
        perform rwproxy.set_cursor(running.id, stored);
    end if;
    if stored.cursor_incarnation = rwproxy.incarnation() then
        since := stored.cursor;
    end if;

    -- Every digit: the keys are compared with what is stored.
    perform pg_catalog.set_config('extra_float_digits', '3', true);
    sources := (
        select pg_catalog.jsonb_agg(rwproxy.source_changes(stored.view, s.oid, since) order by s.oid)
          from rwproxy.view_sources(stored.view) as s (oid));
    definitions := rwproxy.fingerprint(stored.view, stored.target);
    select p.* into proved
      from rwproxy.proof p
     where p.view = stored.view and p.fingerprint = definitions;
    if found then
        sources := (
            select pg_catalog.jsonb_agg(rwproxy.narrowed_changes(s.source, since, proved, key_limit) order by s.position)
              from pg_catalog.jsonb_array_elements(sources) with ordinality as s (source, position));
    end if;
    select n.* into need
      from rwproxy.capture_need n
     where n.view = stored.view and n.relation = rwproxy.capture_root(stored.target) and n.is_target;
    if found and since is not null then
        select * into external from rwproxy.external_changes(need, since, key_limit);
    else
        select null as relation, false as unknown into external;
    end if;
    perform pg_catalog.set_config('extra_float_digits', digits, true);

    target_obstacle := coalesce(
        rwproxy.tracking_obstacle(stored.view, stored.target, since),
        case when need.view is null then 'its changes are not recorded' end);
    changes := pg_catalog.jsonb_build_object(
        'has_cursor', stored.cursor is not null,
        'cluster_changed', stored.cursor is not null and since is null,
        'fingerprint', definitions,
        'cursor_fingerprint', coalesce(stored.cursor_fingerprint, ''),
        'proof', proved.detail,
        'sources', coalesce(sources, '[]'),
        'target_obstacle', target_obstacle,
        'target_hint', case
            when target_obstacle is not null then (rwproxy.capture_hindrance(stored.view, stored.target)).hint
        end,
        'external', coalesce(external.relation, ''),
        'external_unknown', external.unknown,
        'target_unrecorded', rwproxy.unrecorded(stored.view, stored.target));
    if pg_catalog.pg_client_encoding() not in ('UTF8', 'SQL_ASCII') and changes::text ~ '[^\x01-\x7f]' then
        -- The answer would be in that encoding, and JSON is read as UTF-8.
        changes := changes || pg_catalog.jsonb_build_object(
            'proof', null,
            'external', '',
            'external_unknown', true,
            'target_obstacle', 'the client''s encoding is not UTF8',
            'target_hint', null,
            'sources', (
                select pg_catalog.jsonb_agg(s.source || pg_catalog.jsonb_build_object(
                           'name', s.source ->> 'oid',
                           'obstacle', 'the client''s encoding is not UTF8',
                           'hint', null,
                           'route', -1,
                           'keys', '[]'::jsonb))
                  from pg_catalog.jsonb_array_elements(changes -> 'sources') as s (source)));
    end if;
    return pg_catalog.jsonb_build_object('changes', changes);
end
$$;
