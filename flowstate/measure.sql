-- What a database has to do and how far it is behind, as one JSON document for
-- the metrics. $1 is how many flows, and how many logs, are told apart.
with unfinished as (
    select r.due_at,
           case
               when r.state = 'QUEUED' then 'queued'
               when exists (
                   select
                     from rwproxy.streaming_table t
                     join rwproxy.refresh_lock l on l.target = t.target
                    where t.id = r.table_id and l.pid = r.backend_pid
                   ) then 'running'
               when r.durable then 'queued' -- its session is lost
           end as state
      from rwproxy.refresh r
     where r.state in ('QUEUED', 'RUNNING')
)
select pg_catalog.jsonb_build_object(
    'queued', (select pg_catalog.count(*) from unfinished u where u.state = 'queued'),
    'running', (select pg_catalog.count(*) from unfinished u where u.state = 'running'),
    'oldest_queued', (
        select greatest(0, extract(epoch from pg_catalog.clock_timestamp() - pg_catalog.min(u.due_at)))
          from unfinished u
         where u.state = 'queued'),
    'flow_count', (select pg_catalog.count(*) from rwproxy.streaming_table t where t.flow_name is not null),
    'flows', (
        select coalesce(pg_catalog.jsonb_agg(f.flow), '[]')
          from (
              select pg_catalog.jsonb_build_object(
                         'schema', n.nspname,
                         'table', c.relname,
                         'lag', extract(epoch from pg_catalog.clock_timestamp() - coalesce(t.last_refresh_at, t.created_at)),
                         'failed', last.state = 'FAILED',
                         'pending', pending.found) as flow
                from rwproxy.streaming_table t
                join pg_catalog.pg_class c on c.oid = t.target
                join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                left join lateral (
                     select r.state
                       from rwproxy.refresh r
                      where r.table_id = t.id and r.ended_at is not null
                      order by r.requested_at desc
                      limit 1
                     ) last on true
               cross join lateral (
                     -- A flow that has no log to compare with has nothing pending that is known;
                     -- after a dump was restored everything is.
                     select pg_catalog.bool_or(
                                t.cursor_incarnation <> rwproxy.incarnation()
                                or rwproxy.has_pending_change(k.log, t.cursor)) as found
                       from rwproxy.capture_need d
                       join rwproxy.capture k on k.relation = d.relation
                      where d.view = t.view and not d.is_target and t.cursor is not null
                     ) pending
               where t.flow_name is not null
               order by coalesce(t.last_refresh_at, t.created_at)
               limit $1
          ) f),
    'logs', (
        select coalesce(pg_catalog.jsonb_agg(l.log), '[]')
          from (
              select pg_catalog.jsonb_build_object(
                         'schema', n.nspname,
                         'table', c.relname,
                         'bytes', pg_catalog.pg_total_relation_size(k.log),
                         'rows', rwproxy.estimated_rows(k.log)) as log
                from rwproxy.capture k
                join pg_catalog.pg_class c on c.oid = k.relation
                join pg_catalog.pg_namespace n on n.oid = c.relnamespace
               order by pg_catalog.pg_relation_size(k.log) desc
               limit $1
          ) l))
