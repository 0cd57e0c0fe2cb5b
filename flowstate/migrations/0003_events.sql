-- Events are written with the names of the time: the table may not outlive them.

-- add_event writes one event. details is an object with one key, the event's
-- type. The update is the refresh itself unless it is named.
create function rwproxy.add_event(
    table_id uuid,
    refresh_id uuid,
    flow_name text,
    dataset_name text,
    owner text,
    message text,
    details jsonb,
    level text default 'INFO',
    error jsonb default null,
    update_id uuid default null
) returns void
language sql
as $$
    insert into rwproxy.event (table_id, refresh_id, owner, event_type, level, message, origin, details, error)
    values (table_id,
            refresh_id,
            owner,
            (select key from pg_catalog.jsonb_object_keys(details) as key),
            level,
            message,
            pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
                'update_id', coalesce(update_id, refresh_id),
                'flow_id', table_id,
                'flow_name', flow_name,
                'dataset_name', dataset_name)),
            details,
            error)
$$;

create function rwproxy.add_refresh_event(
    refresh rwproxy.refresh, message text, details jsonb, level text default 'INFO', error jsonb default null
) returns void
language sql
as $$
    select rwproxy.add_event(
        (refresh).table_id, (refresh).id, (refresh).flow_name,
        (refresh).target_schema || '.' || (refresh).target_table,
        (refresh).owner, message, details, level, error, (refresh).update_id)
$$;

-- add_update_progress is for the update that consists of this refresh; one of
-- several has its own (0012_queue.sql).
create function rwproxy.add_update_progress(
    refresh rwproxy.refresh, state text, level text default 'INFO', error jsonb default null
) returns void
language sql
as $$
    select rwproxy.add_refresh_event(refresh,
        pg_catalog.format('Update %s is %s.', (refresh).id, state),
        pg_catalog.jsonb_build_object('update_progress', pg_catalog.jsonb_build_object('state', state)),
        level, error)
     where (refresh).update_id = (refresh).id
$$;

create function rwproxy.add_flow_progress(
    refresh rwproxy.refresh, status text, metrics jsonb default null, level text default 'INFO',
    error jsonb default null
) returns void
language sql
as $$
    select rwproxy.add_refresh_event(refresh,
        pg_catalog.format('Flow ''%s'' %s.', (refresh).flow_name, case
            when status in ('COMPLETED', 'FAILED', 'STOPPED') then 'has ' || status
            when status = 'SKIPPED' then 'SKIPPED due to upstream failure(s)'
            else 'is ' || status
        end),
        pg_catalog.jsonb_build_object('flow_progress',
            pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object('status', status, 'metrics', metrics))),
        level, error)
$$;

-- flow_source: the tables a flow's view reads, through nested views.
create view rwproxy.flow_source as
with recursive reads (view, relation) as (
    select t.view::oid, t.view::oid
      from rwproxy.streaming_table t
     where t.view is not null
     union
    select reads.view, d.refobjid
      from reads
      join pg_catalog.pg_class c on c.oid = reads.relation and c.relkind = 'v'
      join pg_catalog.pg_rewrite r on r.ev_class = reads.relation
      join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
       and d.objid = r.oid
       and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
)
select reads.view, n.nspname || '.' || c.relname as name, c.oid as relation
  from reads
  join pg_catalog.pg_class c on c.oid = reads.relation and c.relkind in ('r', 'p', 'f', 'm')
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace;

create function rwproxy.add_flow_definition(streaming_table uuid) returns void
language sql
as $$
    select rwproxy.add_event(t.id, null, t.flow_name, n.nspname || '.' || c.relname,
        pg_catalog.pg_get_userbyid(c.relowner),
        pg_catalog.format('Flow ''%s'' defined as REPLACE_WHERE.', t.flow_name),
        pg_catalog.jsonb_build_object('flow_definition', pg_catalog.jsonb_build_object(
            'input_datasets', (
                select coalesce(pg_catalog.jsonb_agg(s.name order by s.name), '[]')
                  from rwproxy.flow_source s
                 where s.view = t.view),
            'output_dataset', n.nspname || '.' || c.relname,
            'schema', (
                select pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                           'name', a.attname,
                           'data_type', pg_catalog.format_type(a.atttypid, a.atttypmod)) order by a.attnum)
                  from pg_catalog.pg_attribute a
                 where a.attrelid = t.target and a.attnum > 0 and not a.attisdropped),
            'flow_type', 'REPLACE_WHERE',
            'comment', t.flow_comment,
            'language', 'SQL',
            'once', false)))
      from rwproxy.streaming_table t
      join pg_catalog.pg_class c on c.oid = t.target
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where t.id = streaming_table and t.flow_name is not null
$$;
