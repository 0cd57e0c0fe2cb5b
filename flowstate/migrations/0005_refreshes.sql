-- The life of a refresh: start, plan, finish or fail.
--
-- While it runs, its session holds an advisory lock with the two keys
-- 1920430194 ("rwpr") and the target's OID: the refresh whose session no longer
-- holds it has ended, however it did.

-- refresh_lock: the backends that hold the refresh lock of a table.
create view rwproxy.refresh_lock as
select l.objid as target, l.pid
  from pg_catalog.pg_locks l
 where l.locktype = 'advisory'
   and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
   and l.classid = 1920430194
   and l.objsubid = 2
   and l.granted;

-- record_refresh writes the row of a refresh, and what is asked for as the
-- first events of its update.
create function rwproxy.record_refresh(refresh rwproxy.refresh) returns rwproxy.refresh
language plpgsql
as $$
begin
    refresh.update_id := coalesce(refresh.update_id, refresh.id);
    refresh.durable := coalesce(refresh.durable, false);
    refresh.after := coalesce(refresh.after, '{}');
    refresh.attempt := coalesce(refresh.attempt, 0);
    insert into rwproxy.refresh select refresh.*;
    if refresh.update_id = refresh.id then
        perform rwproxy.add_refresh_event(refresh,
            pg_catalog.format('Update %s started by %s.', refresh.id, refresh.requested_by),
            pg_catalog.jsonb_build_object('create_update', pg_catalog.jsonb_build_object(
                'run_as', refresh.requested_by, 'cause', refresh.cause)));
    end if;
    perform rwproxy.add_update_progress(refresh, case refresh.state when 'QUEUED' then 'QUEUED' else 'CREATED' end);
    perform rwproxy.add_flow_progress(refresh, 'QUEUED');
    return refresh;
end
$$;

-- begin_refresh writes the row of a refresh that has begun, and its first
-- events.
create function rwproxy.begin_refresh(refresh rwproxy.refresh) returns void
language plpgsql
as $$
begin
    refresh := rwproxy.record_refresh(refresh);
    perform rwproxy.add_update_progress(refresh, 'INITIALIZING');
    perform rwproxy.add_flow_progress(refresh, 'STARTING');
end
$$;

-- event_error is an error as an event has it.
create function rwproxy.event_error(message text, code text, fatal boolean default true) returns jsonb
language sql immutable
as $$
    select pg_catalog.jsonb_build_object(
        'fatal', fatal,
        'exceptions', pg_catalog.jsonb_build_array(
            pg_catalog.jsonb_build_object('class_name', code, 'message', message)))
$$;

-- end_refresh ends a refresh that did not complete, and those that were to come
-- after it.
create function rwproxy.end_refresh(
    refresh rwproxy.refresh, final_state text, message text, code text, flow_status text default null
) returns void
language plpgsql
as $$
declare
    severity text := case when final_state = 'CANCELED' then 'WARN' else 'ERROR' end;
    exceptions jsonb := rwproxy.event_error(message, code);
begin
    update rwproxy.refresh r
       set state = final_state,
           error = message,
           ended_at = pg_catalog.clock_timestamp()
     where r.id = refresh.id;
    delete from rwproxy.cancellation c where c.refresh_id = refresh.id;
    perform rwproxy.add_flow_progress(refresh,
        coalesce(flow_status, case when final_state = 'CANCELED' then 'STOPPED' else 'FAILED' end),
        null, severity, exceptions);
    perform rwproxy.add_update_progress(refresh, final_state, severity, exceptions);
    perform rwproxy.skip_dependents(refresh, final_state);
end
$$;

-- start_refresh begins a refresh, one that was queued if an id is given. The
-- caller's session holds the lock, so that every earlier refresh of the table
-- that still says RUNNING has lost its session.
create function rwproxy.start_refresh(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    relation record;
    stored rwproxy.streaming_table;
    lost rwproxy.refresh;
    started rwproxy.refresh;
begin
    perform rwproxy.require_writer(caller, (arguments ->> 'target')::oid);
    select c.oid, c.relname, n.nspname, pg_catalog.pg_get_userbyid(c.relowner) as owner into strict relation
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = (arguments ->> 'target')::oid;
    select t.* into stored from rwproxy.streaming_table t where t.target = relation.oid;
    if not found or rwproxy.is_stray(stored, rwproxy.incarnation()) then
        raise exception using errcode = 'wrong_object_type',
            message = pg_catalog.format('"%s" is not a streaming table', relation.relname);
    elsif stored.flow_name is null then
        raise exception using errcode = 'feature_not_supported',
            message = pg_catalog.format('streaming table "%s" has no flow', relation.relname),
            detail = 'PIPELINE_DATASET_WITHOUT_FLOW',
            hint = 'Add one with CREATE FLOW ... AS INSERT INTO ... BY NAME REPLACE WHERE ....';
    elsif not exists (
        select from rwproxy.refresh_lock l where l.target = relation.oid and l.pid = pg_catalog.pg_backend_pid()
    ) then
        raise exception using errcode = 'object_not_in_prerequisite_state',
            message = pg_catalog.format('this session does not hold the refresh lock of table "%s"', relation.relname);
    end if;
    for lost in
        select r.* from rwproxy.refresh r where r.table_id = stored.id and r.state = 'RUNNING' for update
    loop
        perform rwproxy.lose_refresh(lost);
    end loop;
    if arguments ? 'id' then
        return rwproxy.start_queued(caller, stored, (arguments ->> 'id')::uuid);
    end if;
    started.id := pg_catalog.gen_random_uuid();
    started.table_id := stored.id;
    started.flow_name := stored.flow_name;
    started.target_schema := relation.nspname;
    started.target_table := relation.relname;
    started.owner := relation.owner;
    started.cause := arguments ->> 'cause';
    started.kind := arguments ->> 'kind';
    started.state := 'RUNNING';
    started.requested_by := caller;
    started.requested_at := pg_catalog.clock_timestamp();
    started.started_at := started.requested_at;
    started.backend_pid := pg_catalog.pg_backend_pid();
    perform rwproxy.begin_refresh(started);
    return pg_catalog.jsonb_build_object('id', started.id);
end
$$;

-- own_refresh returns the refresh that this session runs for the caller.
create function rwproxy.own_refresh(caller name, refresh_id uuid) returns rwproxy.refresh
language plpgsql
as $$
declare
    running rwproxy.refresh;
begin
    select r.* into running
      from rwproxy.refresh r
     where r.id = refresh_id
       and r.backend_pid = pg_catalog.pg_backend_pid()
       and r.requested_by = caller
       for update;
    if not found then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('permission denied for refresh %s', refresh_id);
    elsif running.state <> 'RUNNING' then
        raise exception using errcode = 'object_not_in_prerequisite_state',
            message = pg_catalog.format('refresh %s is %s', refresh_id, running.state);
    elsif exists (select from rwproxy.cancellation c where c.refresh_id = running.id) then
        raise exception using errcode = 'query_canceled',
            message = pg_catalog.format('refresh %s was canceled', refresh_id);
    end if;
    return running;
end
$$;

-- technique_information: what was weighed, as the event log has it. Against a
-- narrower write than that of the whole window speak the issues given, or else
-- the reason of the full recompute.
create function rwproxy.technique_information(technique text, reason text, issues jsonb) returns jsonb
language sql stable
as $$
    select pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
               'maintenance_type', considered.maintenance_type,
               'is_chosen', considered.technique = technique_information.technique,
               'is_applicable', considered.technique = technique_information.technique
                   or considered.technique = 'FULL_RECOMPUTE',
               'cost', null,
               'incrementalization_issues', case considered.technique
                   when 'INCREMENTAL' then against.list
                   else '[]'
               end) order by considered.maintenance_type)
      from (values
               ('FULL_RECOMPUTE', 'MAINTENANCE_TYPE_COMPLETE_REPLACE_WHERE'),
               ('INCREMENTAL', 'MAINTENANCE_TYPE_REPLACE_WHERE_NARROWED'),
               ('NO_OP', 'MAINTENANCE_TYPE_NO_OP')
           ) as considered (technique, maintenance_type)
     cross join (
           select coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
                      'issue_type', issue ->> 'issue_type',
                      'prevent_incrementalization', true,
                      'table_information', case
                          when issue ? 'table'
                              then pg_catalog.jsonb_build_object('table_name', issue ->> 'table')
                      end,
                      'column_name', issue ->> 'column',
                      'function_name', issue ->> 'function')) order by position), '[]') as list
             from pg_catalog.jsonb_array_elements(case
                      when issues <> '[]' then issues
                      when reason is not null
                          then pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object('issue_type', reason))
                      else '[]'
                  end) with ordinality as u (issue, position)
           ) as against
     where considered.technique <> 'NO_OP' or technique_information.technique = 'NO_OP'
$$;

-- plan_refresh writes down what a refresh is going to do, and why.
create function rwproxy.plan_refresh(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    running rwproxy.refresh := rwproxy.own_refresh(caller, (arguments ->> 'id')::uuid);
    stored rwproxy.streaming_table;
    techniques jsonb;
begin
    select t.* into strict stored from rwproxy.streaming_table t where t.id = running.table_id;
    update rwproxy.refresh r
       set technique = arguments ->> 'technique',
           reason = arguments ->> 'reason',
           window_predicate = arguments ->> 'window_predicate',
           window_volatile = case running.kind
                                 when 'override' then (arguments ->> 'override_differs')::boolean
                                 else stored.condition_volatile
                             end,
           applied_predicate = arguments ->> 'applied_predicate',
           definition_version = stored.definition_version
     where r.id = running.id
    returning r.* into running;
    -- Set already if the changes were read.
    if running.cursor is null then
        perform rwproxy.set_cursor(running.id, stored);
    end if;
    if running.technique <> 'NO_OP' then
        insert into rwproxy_log.own_write (xid, capture)
        select pg_catalog.pg_current_xact_id(), c.number
          from rwproxy.capture c
         where c.relation = rwproxy.capture_root(stored.target);
    end if;
    techniques := rwproxy.technique_information(running.technique, running.reason,
        coalesce(arguments -> 'issues', '[]'));
    perform rwproxy.add_refresh_event(running,
        pg_catalog.format('Flow ''%s'' has been planned to be executed as %s.', running.flow_name,
            (select pg_catalog.replace(technique ->> 'maintenance_type', 'MAINTENANCE_TYPE_', '')
               from pg_catalog.jsonb_array_elements(techniques) as technique
              where (technique ->> 'is_chosen')::boolean)),
        pg_catalog.jsonb_build_object('planning_information', pg_catalog.jsonb_build_object(
            'technique_information', techniques,
            'source_table_information', (
                select coalesce(pg_catalog.jsonb_agg(
                           pg_catalog.jsonb_build_object('table_name', s.name) order by s.name), '[]')
                  from rwproxy.flow_source s
                 where s.view = stored.view),
            'target_table_information', pg_catalog.jsonb_build_object(
                'table_name', running.target_schema || '.' || running.target_table))));
    if running.kind = 'full' then
        perform rwproxy.add_update_progress(running, 'RESETTING');
    end if;
    perform rwproxy.add_update_progress(running, 'RUNNING');
    perform rwproxy.add_flow_progress(running, 'RUNNING');
end
$$;

-- finish_refresh completes a planned refresh. An override leaves what the next
-- refresh of the flow's own window is compared with, but for a predicate that may
-- have deleted other rows than it has inserted.
create function rwproxy.finish_refresh(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    running rwproxy.refresh := rwproxy.own_refresh(caller, (arguments ->> 'id')::uuid);
begin
    if running.technique is null then
        raise exception using errcode = 'object_not_in_prerequisite_state',
            message = pg_catalog.format('refresh %s has no plan', running.id);
    end if;
    update rwproxy.refresh r
       set state = 'COMPLETED',
           rows_deleted = (arguments ->> 'rows_deleted')::bigint,
           rows_inserted = (arguments ->> 'rows_inserted')::bigint,
           ended_at = pg_catalog.clock_timestamp()
     where r.id = running.id
    returning r.* into running;
    delete from rwproxy_log.own_write w where w.xid = pg_catalog.pg_current_xact_id();
    update rwproxy.streaming_table t
       set last_refresh_id = running.id,
           last_refresh_at = running.ended_at,
           last_technique = running.technique,
           last_reason = running.reason
     where t.id = running.table_id;
    if running.kind <> 'override' then
        update rwproxy.streaming_table t
           set last_window = running.window_predicate,
               last_window_volatile = running.window_volatile,
               last_definition_version = running.definition_version,
               cursor = running.cursor,
               cursor_fingerprint = running.cursor_fingerprint,
               cursor_incarnation = rwproxy.incarnation()
         where t.id = running.table_id;
    elsif running.window_volatile then
        -- It may have left rows of the window twice, or none of them.
        update rwproxy.streaming_table t set last_window_volatile = true where t.id = running.table_id;
    end if;
    perform rwproxy.add_flow_progress(running, 'COMPLETED', pg_catalog.jsonb_build_object(
        'num_output_rows', running.rows_inserted,
        'num_deleted_rows', running.rows_deleted,
        'executor_time_ms', pg_catalog.round(1000 * extract(epoch from running.ended_at - running.started_at))));
    perform rwproxy.add_update_progress(running, 'COMPLETED');
end
$$;

-- fail_refresh records that a refresh failed, also one whose row was rolled
-- back with its transaction, and one whose table was: what is known of that one
-- is what the caller says, and only the caller's role and the service see it. A
-- refresh that has ended stays as it ended. One that runs by itself is queued
-- again if it is to be tried again; when several proxies could not begin one
-- attempt of it, the first to say so counts.
create function rwproxy.fail_refresh(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    trusted boolean := rwproxy.is_service(caller);
    failed rwproxy.refresh;
    known record;
    canceled_by text;
begin
    select r.* into failed from rwproxy.refresh r where r.id = (arguments ->> 'id')::uuid for update;
    if not found then
        failed.id := coalesce((arguments ->> 'id')::uuid, pg_catalog.gen_random_uuid());
        failed.requested_by := case when trusted then arguments ->> 'requested_by' else caller::text end;
        select t.id, t.flow_name, c.relname, n.nspname, pg_catalog.pg_get_userbyid(c.relowner) as owner into known
          from rwproxy.streaming_table t
          join pg_catalog.pg_class c on c.oid = t.target
          join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where t.target = (arguments ->> 'target')::oid;
        if found and not trusted then
            perform rwproxy.require_writer(caller, (arguments ->> 'target')::oid);
        end if;
        failed.table_id := coalesce(known.id, pg_catalog.gen_random_uuid());
        failed.flow_name := coalesce(known.flow_name, arguments ->> 'flow_name');
        failed.target_schema := coalesce(known.nspname, arguments ->> 'schema');
        failed.target_table := coalesce(known.relname, arguments ->> 'name');
        failed.owner := coalesce(known.owner, failed.requested_by);
        failed.cause := arguments ->> 'cause';
        failed.kind := arguments ->> 'kind';
        failed.state := 'RUNNING';
        failed.requested_at := (arguments ->> 'started_at')::timestamptz;
        failed.started_at := failed.requested_at;
        perform rwproxy.begin_refresh(failed);
    elsif not trusted and failed.requested_by <> caller then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('permission denied for refresh %s', failed.id);
    elsif failed.state not in ('QUEUED', 'RUNNING')
        or (arguments ->> 'attempt')::integer <> failed.attempt
    then
        return;
    elsif failed.state = 'RUNNING' and exists (
        select from rwproxy.refresh_lock l
          join rwproxy.streaming_table t on t.target = l.target
         where t.id = failed.table_id
           and l.pid = failed.backend_pid
           and l.pid <> pg_catalog.pg_backend_pid()
    ) then
        raise exception using errcode = 'object_in_use',
            message = pg_catalog.format('refresh %s runs in another session', failed.id);
    end if;
    select c.requested_by into canceled_by from rwproxy.cancellation c where c.refresh_id = failed.id;
    if canceled_by is null and failed.durable and arguments ? 'retry_in_ms' then
        perform rwproxy.queue_again(failed, (arguments ->> 'retry_in_ms')::bigint * interval '1 millisecond',
            arguments ->> 'error', arguments ->> 'error_code');
        return;
    end if;
    -- The plan was rolled back with the rows it was for.
    update rwproxy.refresh r
       set technique = arguments ->> 'technique',
           reason = arguments ->> 'reason',
           window_predicate = arguments ->> 'window_predicate',
           applied_predicate = arguments ->> 'applied_predicate',
           error_detail = arguments ->> 'error_detail',
           error_hint = arguments ->> 'error_hint'
     where r.id = failed.id;
    if canceled_by is not null then
        perform rwproxy.end_canceled(failed, canceled_by);
        return;
    end if;
    perform rwproxy.end_refresh(failed,
        case when arguments ->> 'state' = 'CANCELED' then 'CANCELED' else 'FAILED' end,
        arguments ->> 'error', arguments ->> 'error_code');
end
$$;
