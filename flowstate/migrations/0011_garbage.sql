-- What is still needed, and what users see of it.

-- collect_garbage runs one step of the collection for the service, each in a
-- transaction of its own:
--
--     list      returns the relations that have a log
--     needs     forgets what was noted for views that are no flow's
--     relation  deletes from one log, or drops it with its triggers
--     history   deletes refreshes that ended long ago
--
-- What needs a lock that is not to be had fails, and is for the next time.
create function rwproxy.collect_garbage(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
begin
    perform rwproxy.require_service(caller);
    case arguments ->> 'action'
        when 'list' then
            return (
                select pg_catalog.jsonb_build_object('relations',
                           coalesce(pg_catalog.jsonb_agg(c.relation::oid::bigint order by c.number), '[]'))
                  from rwproxy.capture c);
        when 'needs' then
            perform rwproxy.forget_views();
        when 'relation' then
            perform rwproxy.collect_relation((arguments ->> 'relation')::oid);
        when 'history' then
            perform rwproxy.collect_history((arguments ->> 'days')::integer);
    end case;
    return null;
end
$$;

-- collect_history deletes refreshes that ended so many days ago, with their
-- events; of those that it has time for, the oldest. The last one of a table
-- stays, and so do definitions.
create function rwproxy.collect_history(days integer) returns void
language plpgsql
as $$
declare
    most constant integer := 5000;
    before timestamptz := pg_catalog.now() - pg_catalog.make_interval(days => days);
    old uuid[] := array(
        select r.id
          from rwproxy.refresh r
         where r.requested_at < before
           and r.ended_at < before
           and not exists (select from rwproxy.streaming_table t where t.last_refresh_id = r.id)
         order by r.requested_at
         limit most
           for update skip locked);
begin
    delete from rwproxy.event e where e.refresh_id = any (old);
    delete from rwproxy.cancellation c where c.refresh_id = any (old);
    delete from rwproxy.progress p where p.refresh_id = any (old);
    delete from rwproxy.refresh r where r.id = any (old);
    with gone as (
        delete from rwproxy.update u
         where u.ended_at < before
           and not exists (select from rwproxy.refresh r where r.update_id = u.id)
        returning u.id, u.table_id
    )
    delete from rwproxy.event e
     using gone
     where e.table_id = gone.table_id
       and e.refresh_id is null
       and e.origin ->> 'update_id' = gone.id::text;
end
$$;

-- forget_views forgets views that are no flow's. A transaction that is still
-- defining a flow holds a lock on its view. The order matters: what is noted now
-- belongs to a view that is there, or locked, or rolled back.
create function rwproxy.forget_views() returns void
language plpgsql
as $$
declare
    noted oid[] := array(
        select n.view from rwproxy.capture_need n
         union
        select p.view from rwproxy.proof p);
    locked oid[] := array(
        select l.relation
          from pg_catalog.pg_locks l
         where l.locktype = 'relation'
           and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
           and l.relation = any (noted));
    gone oid[] := array(
        select u.view
          from pg_catalog.unnest(noted) as u (view)
         where u.view <> all (locked)
           and not exists (select from rwproxy.streaming_table t where t.view = u.view));
    reader record;
begin
    delete from rwproxy.capture_need n where n.view = any (gone);
    delete from rwproxy.proof p where p.view = any (gone);
    for reader in
        select p.oid::regprocedure as function
          from pg_catalog.pg_proc p
         where p.pronamespace = 'rwproxy_log'::regnamespace
           and p.proname ^@ 'read_as_'
           and (p.proname <> 'read_as_' || p.proowner and pg_catalog.pg_has_role(p.proowner, 'USAGE')
                or not exists (
                    select
                      from rwproxy.capture_need n
                      left join pg_catalog.pg_class v on v.oid = n.view
                     where v.oid is null or v.relowner = p.proowner))
    loop
        execute 'drop function ' || reader.function;
    end loop;
end
$$;

-- collect_relation deletes the changes that every flow has taken in. A flow
-- without a cursor may be in its first refresh, whose cursor is not older than
-- what its need was noted at; so may one whose cursor came with a dump.
create function rwproxy.collect_relation(root oid) returns void
language plpgsql
as $$
declare
    most constant bigint := 200000; -- rows that a log keeps for flows that are not refreshed
    captured rwproxy.capture;
    cursors pg_snapshot[];
    stray record;
begin
    select c.* into captured from rwproxy.capture c where c.relation = root;
    if not found then
        return;
    elsif not exists (select from rwproxy.capture_need n where n.relation = root)
        or not exists (select from pg_catalog.pg_class c where c.oid = root)
    then
        perform rwproxy.drop_capture(root);
        return;
    end if;

    cursors := array(
        select coalesce(case when t.cursor_incarnation = rwproxy.incarnation() then t.cursor end, n.since)
          from rwproxy.capture_need n
          left join rwproxy.streaming_table t on t.view = n.view
         where n.relation = root);
    execute pg_catalog.format(
        'delete from %s l
          where not exists (
                select from pg_catalog.unnest($1) as c (cursor)
                 where not pg_catalog.pg_visible_in_snapshot(l.xid, c.cursor))', captured.log)
      using cursors;
    perform rwproxy.compact_log(captured, most);

    for stray in
        select g.tgname, g.tgrelid
          from pg_catalog.pg_trigger g
         where g.tgfoid = pg_catalog.format('rwproxy_log.capture_%s()', captured.number)::regprocedure
           and g.tgrelid not in (select oid from rwproxy.capture_tree(root) as t (oid))
    loop
        execute pg_catalog.format('drop trigger %I on %s', stray.tgname, stray.tgrelid::regclass);
    end loop;
    if rwproxy.capture_is_stale(captured) then
        execute pg_catalog.format('lock table %s in share row exclusive mode', root::regclass);
        perform rwproxy.install_capture(root);
    end if;
end
$$;

-- compact_log replaces what a log keeps for flows that are seldom refreshed by
-- one row that says that anything may have changed. It is newer than all of it:
-- whoever has not seen a row has not seen that one either.
create function rwproxy.compact_log(captured rwproxy.capture, most bigint) returns void
language plpgsql
as $$
declare
    held bigint;
begin
    if pg_catalog.pg_relation_size(captured.log) < 8000000 then
        return;
    end if;
    execute pg_catalog.format('select pg_catalog.count(*) from %s', captured.log) into held;
    if held > most then
        execute pg_catalog.format(
            'with replaced as (delete from %1$s returning own)
             insert into %1$s (xid, known, own)
             select pg_catalog.pg_current_xact_id(), 0, pg_catalog.bool_and(r.own) from replaced r', captured.log);
    end if;
end
$$;

-- capture_is_stale says whether less is needed than is logged.
create function rwproxy.capture_is_stale(captured rwproxy.capture) returns boolean
language plpgsql stable
as $$
begin
    captured.reads := rwproxy.needed_reads(captured.relation);
    captured.columns := rwproxy.needed_leading(captured.relation, captured.columns);
    return not exists (
        select
          from pg_catalog.pg_proc p
         where p.pronamespace = 'rwproxy_log'::regnamespace
           and p.proname = 'capture_' || captured.number
           and p.prosrc = rwproxy.capture_body(captured));
end
$$;

-- drop_capture drops a log that no flow needs, and its triggers.
create function rwproxy.drop_capture(root oid) returns void
language plpgsql
as $$
declare
    captured rwproxy.capture;
    function regprocedure;
    installed record;
begin
    select c.* into captured from rwproxy.capture c where c.relation = root for update;
    if not found
        or exists (select from pg_catalog.pg_class c where c.oid = root)
        and exists (select from rwproxy.capture_need n where n.relation = root)
    then
        return;
    end if;
    function := pg_catalog.to_regprocedure(pg_catalog.format('rwproxy_log.capture_%s()', captured.number));
    for installed in
        select g.tgname, g.tgrelid from pg_catalog.pg_trigger g where g.tgfoid = function order by g.tgrelid
    loop
        execute pg_catalog.format('drop trigger %I on %s', installed.tgname, installed.tgrelid::regclass);
    end loop;
    execute pg_catalog.format('drop function if exists rwproxy_log.capture_%s()', captured.number);
    execute pg_catalog.format('drop table if exists rwproxy_log.log_%s', captured.number);
    delete from rwproxy.capture c where c.relation = root;
end
$$;

-- source_tracking: the tables that a flow's query reads, and whether their
-- changes are recorded. It asks of catalogs what tracking_obstacle asks, as a
-- view whose reader may not execute that; but not whether the log came with a
-- dump, which holds until the next refresh.
create view rwproxy.source_tracking as
select s.view,
       s.name,
       exists (
           select
             from rwproxy.capture_need n
             join rwproxy.capture c on c.relation = n.relation
            where n.view = s.view
              and n.relation = coalesce(pg_catalog.pg_partition_root(s.relation)::oid, s.relation)
              and not exists (
                  with recursive tree (oid) as (
                      select c.relation::oid
                       union
                      select i.inhrelid from tree t join pg_catalog.pg_inherits i on i.inhparent = t.oid
                  )
                  select
                    from tree
                    join pg_catalog.pg_class m on m.oid = tree.oid
                   where m.relkind not in ('r', 'p')
                      or m.relpersistence <> 'p'
                      or m.relrowsecurity
                      or exists (select from pg_catalog.pg_subscription_rel r where r.srrelid = m.oid)
                      or (
                         select pg_catalog.count(distinct g.tgtype)
                           from pg_catalog.pg_trigger g
                           join pg_catalog.pg_proc p on p.oid = g.tgfoid
                          where g.tgrelid = m.oid
                            and g.tgenabled = 'A'
                            and p.pronamespace = (select l.relnamespace from pg_catalog.pg_class l where l.oid = c.log)
                            and p.proname = 'capture_' || c.number
                         ) < 4)
       ) as tracked
  from rwproxy.flow_source s;

create view rwproxy.flows with (security_barrier) as
select case when t.flow_statement is null then c.relname::text else t.flow_name end as flow_name,
       n.nspname::text as target_schema,
       c.relname::text as target_table,
       t.predicate,
       t.query,
       t.properties,
       t.schedule,
       -- The author, whose rights the query has.
       pg_catalog.pg_get_userbyid(coalesce(v.relowner, c.relowner))::text as owner,
       t.created_at,
       t.changed_at,
       t.last_refresh_id,
       t.last_refresh_at,
       t.last_technique,
       t.last_reason,
       nullif(s.next_run_at, 'infinity') as next_run_at,
       array(select s.name from rwproxy.source_tracking s where s.view = t.view and s.tracked order by s.name)
           as tracked_sources,
       array(select s.name from rwproxy.source_tracking s where s.view = t.view and not s.tracked order by s.name)
           as untracked_sources
  from rwproxy.streaming_table t
  join pg_catalog.pg_class c on c.oid = t.target
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  left join pg_catalog.pg_class v on v.oid = t.view
  left join rwproxy.schedule s on s.table_id = t.id
 where t.flow_name is not null
   and pg_catalog.has_table_privilege(c.oid, 'SELECT');

grant select on rwproxy.flows to public;
