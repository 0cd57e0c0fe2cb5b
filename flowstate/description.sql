-- The streaming table $1, a relation, for those who may read it, and its last
-- refreshes.
select t.target_schema,
       t.target_table,
       t.owner,
       t.created_at,
       pg_catalog.obj_description(c.oid, 'pg_class'),
       t.properties,
       pg_catalog.to_jsonb(t.partition_by),
       t.cluster_by,
       t.schedule,
       t.flow_name,
       t.flow_comment,
       t.predicate,
       t.query,
       t.settings,
       completed.ended_at,
       completed.technique,
       latest.refresh_id,
       latest.state,
       pg_catalog.pg_has_role(c.relowner, 'USAGE'),
       (select f.next_run_at
          from rwproxy.flows f
         where f.target_schema = t.target_schema and f.target_table = t.target_table)
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join rwproxy.streaming_tables t on t.target_schema = n.nspname and t.target_table = c.relname
  left join lateral (
       select r.ended_at, r.technique
         from rwproxy.refreshes r
        where r.target_schema = t.target_schema
          and r.target_table = t.target_table
          and r.requested_at >= t.created_at
          and r.state = 'COMPLETED'
        order by r.ended_at desc
        limit 1) completed on true
  left join lateral (
       select r.refresh_id, r.state
         from rwproxy.refreshes r
        where r.target_schema = t.target_schema
          and r.target_table = t.target_table
          and r.requested_at >= t.created_at
        order by r.requested_at desc
        limit 1) latest on true
 where c.oid = $1::pg_catalog.oid
