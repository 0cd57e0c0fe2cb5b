-- How far a refresh has come, and what a database has to do.

-- note_progress writes down how far a refresh has come, or, without a step,
-- forgets it with whatever refreshes have left that were cut off.
create function rwproxy.note_progress(caller name, arguments jsonb) returns void
language plpgsql
as $$
begin
    perform rwproxy.require_service(caller);
    if arguments ->> 'step' is null then
        delete from rwproxy.progress p
         where p.refresh_id = (arguments ->> 'id')::uuid
            or not exists (select from rwproxy.refresh r where r.id = p.refresh_id and r.state = 'RUNNING');
        return;
    end if;
    insert into rwproxy.progress as p (refresh_id, step, rows, estimated)
    values ((arguments ->> 'id')::uuid, arguments ->> 'step', (arguments ->> 'rows')::bigint,
            (arguments ->> 'estimated')::boolean)
        on conflict (refresh_id) do update
       set step = excluded.step,
           rows = excluded.rows,
           estimated = excluded.estimated,
           updated_at = excluded.updated_at;
end
$$;

-- estimated_rows is how many rows a table's files may hold, those of open
-- transactions included: by the size of a row when it was last looked at, or of
-- its columns' types. Who waits for the table's lock makes it wait for nobody.
create function rwproxy.estimated_rows(target oid) returns bigint
language sql volatile
set lock_timeout = '100ms'
as $$
    select coalesce(pg_catalog.sum(pg_catalog.floor(
               pg_catalog.pg_relation_size(c.oid)
               / case
                     when c.reltuples > 0 and c.relpages > 0
                         then c.relpages * pg_catalog.current_setting('block_size')::double precision / c.reltuples
                     else 28 + (
                         select coalesce(pg_catalog.sum(case when a.attlen > 0 then a.attlen else 32 end), 0)
                           from pg_catalog.pg_attribute a
                          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)
                 end)), 0)::bigint
      from rwproxy.capture_tree(target) as t (oid)
      join pg_catalog.pg_class c on c.oid = t.oid
     where c.relkind = 'r'
$$;

-- has_pending_change says whether a log holds anything that a cursor does not
-- see. One that is too large to be read in passing does: what all flows have
-- taken in is deleted after each refresh.
create function rwproxy.has_pending_change(log regclass, cursor pg_snapshot) returns boolean
language plpgsql stable
as $$
declare
    readable constant bigint := 8000000; -- bytes
    pending boolean;
begin
    if pg_catalog.pg_relation_size(log) > readable then
        return true;
    end if;
    execute pg_catalog.format(
        'select exists (select from %s l where not pg_catalog.pg_visible_in_snapshot(l.xid, $1))', log)
       into pending using cursor;
    return pending;
end
$$;
