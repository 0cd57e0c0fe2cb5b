-- What users read. The names and columns are an interface. A role sees what
-- belongs to tables that it may SELECT; of a table that is gone, the members of
-- the role that owned it see the history. The views are security barriers: a
-- function in a user's WHERE must not see rows that the user does not.

create view rwproxy.refreshes with (security_barrier) as
select r.id as refresh_id,
       r.flow_name,
       coalesce(n.nspname::text, r.target_schema) as target_schema,
       coalesce(c.relname::text, r.target_table) as target_table,
       r.cause,
       r.kind,
       r.technique,
       r.reason,
       -- Until it is planned, what was asked for.
       coalesce(r.window_predicate, r.request ->> 'where') as window_predicate,
       -- A narrowed one names keys of source rows, also of those that the flow's
       -- query leaves out. Whoever may refresh is told.
       case
           when r.technique is distinct from 'INCREMENTAL'
               or pg_catalog.has_table_privilege(t.target, 'INSERT') and pg_catalog.has_table_privilege(t.target, 'DELETE')
               then r.applied_predicate
       end as applied_predicate,
       r.rows_deleted,
       r.rows_inserted,
       case
           when not session.lost then r.state
           when r.durable then 'QUEUED'
           else 'FAILED'
       end as state,
       case
           when r.state = 'RUNNING' and not session.lost then (
               select pg_catalog.concat_ws(', ',
                          p.step,
                          case when p.estimated then 'about ' else '' end || p.rows || ' rows',
                          pg_catalog.to_char(
                              pg_catalog.make_interval(
                                  secs => pg_catalog.floor(extract(epoch from pg_catalog.clock_timestamp() - r.started_at))::double precision),
                              'HH24:MI:SS'))
                 from rwproxy.progress p
                where p.refresh_id = r.id
                  and p.updated_at >= r.started_at)
       end as progress,
       r.requested_by,
       r.requested_at,
       r.started_at,
       r.ended_at,
       case when session.lost then 'the session running it ended' else r.error end as error,
       r.error_detail,
       r.error_hint,
       r.update_id,
       r.attempt,
       r.due_at
  from rwproxy.refresh r
  left join rwproxy.streaming_table t on t.id = r.table_id
  left join pg_catalog.pg_class c on c.oid = t.target
  left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 cross join lateral (
     select r.state = 'RUNNING'
        and not exists (
            select from rwproxy.refresh_lock l where l.target = t.target and l.pid = r.backend_pid
        ) as lost
 ) session
 where case
           when t.id is not null then pg_catalog.has_table_privilege(t.target, 'SELECT')
           else exists (
               select from pg_catalog.pg_roles o
                where o.rolname = r.owner and pg_catalog.pg_has_role(o.oid, 'USAGE'))
       end;

create view rwproxy.event_log with (security_barrier) as
select e.id,
       e.sequence,
       e.origin,
       e.at as timestamp,
       e.message,
       e.level,
       'STABLE' as maturity_level,
       e.error,
       e.details,
       e.event_type
  from rwproxy.event e
  left join rwproxy.streaming_table t on t.id = e.table_id
 where case
           when t.id is not null then pg_catalog.has_table_privilege(t.target, 'SELECT')
           else exists (
               select from pg_catalog.pg_roles o
                where o.rolname = e.owner and pg_catalog.pg_has_role(o.oid, 'USAGE'))
       end;

grant select on rwproxy.refreshes, rwproxy.event_log to public;
