-- What DESCRIBE, SHOW and event_log(TABLE(t)) read, and what ALTER STREAMING
-- TABLE writes.

alter table rwproxy.streaming_table add column cluster_by text;

-- set_clustering stores the CLUSTER BY clause of a table that the caller has
-- just created or replaced.
create function rwproxy.set_clustering(arguments jsonb) returns void
language sql
as $$
    update rwproxy.streaming_table t
       set cluster_by = arguments ->> 'cluster_by'
     where t.target = (arguments ->> 'target')::oid
$$;

-- alter_table changes what is stored of a streaming table. What it leads to is
-- decided here, where the row is locked.
create function rwproxy.alter_table(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    stored rwproxy.streaming_table := rwproxy.own_table(caller, (arguments ->> 'target')::oid);
    table_name text := (select c.relname from pg_catalog.pg_class c where c.oid = stored.target);
    keys text[] := array(select pg_catalog.jsonb_array_elements_text(arguments -> 'keys'));
    missing text;
begin
    case arguments ->> 'action'
        when 'add_schedule' then
            if stored.schedule is not null then
                raise exception using errcode = 'duplicate_object',
                    message = pg_catalog.format('streaming table "%s" already has a schedule', table_name),
                    detail = pg_catalog.format('It is %s.', stored.schedule),
                    hint = 'Use ALTER STREAMING TABLE ... ALTER SCHEDULE ... to replace it.';
            end if;
            stored.schedule := arguments ->> 'schedule';
        when 'alter_schedule', 'drop_schedule' then
            if stored.schedule is null then
                raise exception using errcode = 'undefined_object',
                    message = pg_catalog.format('streaming table "%s" has no schedule', table_name),
                    hint = 'Use ALTER STREAMING TABLE ... ADD SCHEDULE ... to give it one.';
            end if;
            stored.schedule := arguments ->> 'schedule';
        when 'set_properties' then
            stored.properties := stored.properties || (arguments -> 'properties');
        when 'unset_properties' then
            select pg_catalog.string_agg(pg_catalog.quote_literal(key), ', ') into missing
              from pg_catalog.unnest(keys) as key
             where not stored.properties ? key;
            if missing is not null and not (arguments ->> 'if_exists')::boolean then
                raise exception using errcode = '42K0J',
                    message = pg_catalog.format('streaming table "%s" has no table property %s', table_name, missing),
                    detail = 'UNSET_NONEXISTENT_PROPERTIES',
                    hint = 'Use UNSET TBLPROPERTIES IF EXISTS (...), or see SHOW TBLPROPERTIES.';
            end if;
            stored.properties := stored.properties - keys;
    end case;
    update rwproxy.streaming_table t
       set schedule = stored.schedule,
           properties = stored.properties,
           changed_at = pg_catalog.clock_timestamp()
     where t.id = stored.id;
end
$$;

-- A streaming table with or without a flow, as its readers and its owner see it.
create view rwproxy.streaming_tables with (security_barrier) as
select t.id as table_id,
       n.nspname::text as target_schema,
       c.relname::text as target_table,
       pg_catalog.pg_get_userbyid(c.relowner)::text as owner,
       t.properties,
       t.partition_by,
       t.cluster_by,
       t.schedule,
       t.flow_name,
       t.flow_comment,
       t.predicate,
       t.query,
       t.settings,
       t.created_at,
       t.changed_at
  from rwproxy.streaming_table t
  join pg_catalog.pg_class c on c.oid = t.target
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where pg_catalog.has_table_privilege(c.oid, 'SELECT')
    or pg_catalog.pg_has_role(c.relowner, 'USAGE');

grant select on rwproxy.streaming_tables to public;

-- is_streaming_table tells everybody which relations are streaming tables: a
-- role that may not read one is told so, rather than that there is none.
create function rwproxy.is_streaming_table(relation oid) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from rwproxy.streaming_table t where t.target = relation)
$$;

-- readable_table returns a streaming table that the caller may read. Like the
-- two functions below it runs with the caller's rights.
create function rwproxy.readable_table(relation oid) returns rwproxy.streaming_tables
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    readable rwproxy.streaming_tables;
begin
    if relation is null then
        raise exception using errcode = 'undefined_table', message = 'relation does not exist';
    elsif not rwproxy.is_streaming_table(relation) then
        raise exception using errcode = 'wrong_object_type',
            message = format('"%s" is not a streaming table', relation::regclass);
    end if;
    select t.* into readable
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      join rwproxy.streaming_tables t on t.target_schema = n.nspname and t.target_table = c.relname
     where c.oid = relation;
    if not found then
        raise exception using errcode = 'insufficient_privilege',
            message = format('permission denied for table %s', (select c.relname from pg_class c where c.oid = relation));
    end if;
    return readable;
end
$$;

-- event_log is the table function of Databricks, for the owner of a table.
create function rwproxy.event_log(streaming_table regclass) returns setof rwproxy.event_log
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    about rwproxy.streaming_tables := rwproxy.readable_table(streaming_table);
begin
    if not pg_has_role(about.owner, 'USAGE') then
        raise exception using errcode = 'insufficient_privilege',
            message = format('must be owner of table %s', about.target_table);
    end if;
    return query
        select e.*
          from rwproxy.event_log e
         where e.origin ->> 'flow_id' = about.table_id::text
         order by e.sequence;
end
$$;

-- table_history is the answer to DESCRIBE HISTORY: a version for each completed
-- refresh of the table, with the columns of Databricks.
create function rwproxy.table_history(streaming_table regclass) returns table (
    version bigint,
    "timestamp" timestamptz,
    "userId" text,
    "userName" text,
    operation text,
    "operationParameters" jsonb,
    job text,
    notebook text,
    "clusterId" text,
    "readVersion" bigint,
    "isolationLevel" text,
    "isBlindAppend" boolean,
    "operationMetrics" jsonb,
    "userMetadata" text,
    "engineInfo" text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    about rwproxy.streaming_tables := rwproxy.readable_table(streaming_table);
begin
    return query
        select past.version,
               past.ended_at,
               null::text,
               past.requested_by,
               'REFRESH',
               jsonb_strip_nulls(jsonb_build_object(
                   'kind', past.kind,
                   'technique', past.technique,
                   'reason', past.reason,
                   'predicate', past.window_predicate)),
               null::text,
               null::text,
               null::text,
               nullif(past.version - 1, -1),
               null::text,
               false,
               jsonb_build_object(
                   'numDeletedRows', past.rows_deleted,
                   'numOutputRows', past.rows_inserted,
                   'executionTimeMs', round(1000 * extract(epoch from past.ended_at - past.started_at))),
               past.refresh_id::text,
               'rwproxy'
          from (
                select r.*, row_number() over (order by r.ended_at, r.refresh_id) - 1 as version
                  from rwproxy.refreshes r
                 where r.target_schema = about.target_schema
                   and r.target_table = about.target_table
                   and r.requested_at >= about.created_at
                   and r.state = 'COMPLETED'
               ) as past
         order by past.version desc;
end
$$;

-- Compiling costs more than these statements do.
create or replace function rwproxy.run_step() returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
    case new.step
        when 'lookup' then new.result := rwproxy.lookup(new.caller, new.arguments);
        when 'sweep' then perform rwproxy.sweep();
        when 'create_table' then
            perform rwproxy.create_table(new.caller, new.arguments);
            perform rwproxy.set_clustering(new.arguments);
            perform rwproxy.follow_schedule(new.arguments, true);
        when 'replace_table' then
            perform rwproxy.replace_table(new.caller, new.arguments);
            perform rwproxy.set_clustering(new.arguments);
            perform rwproxy.follow_schedule(new.arguments, true);
        when 'alter_table' then
            perform rwproxy.alter_table(new.caller, new.arguments);
            perform rwproxy.follow_schedule(new.arguments, false);
        when 'add_flow' then
            perform rwproxy.add_flow(new.caller, new.arguments);
            perform rwproxy.follow_schedule(new.arguments, true);
        when 'drop_table' then perform rwproxy.drop_table(new.caller, new.arguments);
        when 'start_refresh' then new.result := rwproxy.start_refresh(new.caller, new.arguments);
        when 'read_changes' then new.result := rwproxy.read_changes(new.caller, new.arguments);
        when 'plan_refresh' then perform rwproxy.plan_refresh(new.caller, new.arguments);
        when 'finish_refresh' then perform rwproxy.finish_refresh(new.caller, new.arguments);
        when 'fail_refresh' then perform rwproxy.fail_refresh(new.caller, new.arguments);
        when 'enqueue_refresh' then new.result := rwproxy.enqueue_refresh(new.caller, new.arguments);
        when 'start_update' then new.result := rwproxy.start_update(new.caller, new.arguments);
        when 'settle_update' then perform rwproxy.settle_update((new.arguments ->> 'id')::uuid);
        when 'cancel_refresh' then new.result := rwproxy.cancel_refresh(new.caller, new.arguments);
        when 'read_queue' then new.result := rwproxy.read_queue(new.caller, new.arguments);
        when 'requeue_lost' then new.result := rwproxy.requeue_lost(new.caller);
        when 'read_schedules' then new.result := rwproxy.read_schedules(new.caller, new.arguments);
        when 'run_schedules' then perform rwproxy.run_schedules(new.caller, new.arguments);
        when 'run_triggers' then new.result := rwproxy.run_triggers(new.caller, new.arguments);
        when 'note_progress' then perform rwproxy.note_progress(new.caller, new.arguments);
        when 'ensure_capture' then new.result := rwproxy.ensure_capture(new.caller, new.arguments);
        when 'store_proof' then perform rwproxy.store_proof(new.caller, new.arguments);
        when 'collect_garbage' then new.result := rwproxy.collect_garbage(new.caller, new.arguments);
        else
            raise exception using errcode = 'invalid_parameter_value',
                message = pg_catalog.format('there is no step "%s"', new.step);
    end case;
    -- Never null, so that a session in which triggers do not fire
    -- (session_replication_role) is told from a step without a result.
    new.result := coalesce(new.result, '{}');
    return new;
end
$$;
