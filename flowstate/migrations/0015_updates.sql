-- Requests for several refreshes at once, and the end of any of them on request.

insert into rwproxy.database (system) values (rwproxy.system_identifier());

-- identify_database gives a copy of a database an identity of its own. A
-- database that was restored on another server keeps the one it had.
create function rwproxy.identify_database() returns void
language sql
as $$
    update rwproxy.database d
       set id = case d.system when rwproxy.system_identifier() then pg_catalog.gen_random_uuid() else d.id end,
           oid = own.oid,
           system = rwproxy.system_identifier()
      from pg_catalog.pg_database own
     where own.datname = pg_catalog.current_database()
       and (d.oid, d.system) is distinct from (own.oid, rwproxy.system_identifier())
$$;

-- add_group_event writes an event of an update of several refreshes.
create function rwproxy.add_group_event(
    grouped rwproxy.update, message text, details jsonb, level text default 'INFO', error jsonb default null
) returns void
language sql
as $$
    select rwproxy.add_event((grouped).table_id, null, null, null, (grouped).owner, message, details, level, error,
        (grouped).id)
$$;

create function rwproxy.add_group_progress(
    update_id uuid, reached text, level text default 'INFO', exceptions jsonb default null
) returns void
language sql
as $$
    select rwproxy.add_group_event(u, pg_catalog.format('Update %s is %s.', u.id, reached),
        pg_catalog.jsonb_build_object('update_progress', pg_catalog.jsonb_build_object('state', reached)),
        level, exceptions)
      from rwproxy.update u
     where u.id = update_id
$$;

-- start_update queues the refreshes of one request, each after those of its
-- list, which stand before it. One that only asks whether they could be done has
-- its answer already. One update of a database runs at a time.
create function rwproxy.start_update(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    asked jsonb := arguments -> 'parameters';
    started rwproxy.update;
    wanted jsonb;
    relation record;
    ids uuid[] := '{}';
    queued rwproxy.refresh;
begin
    perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('rwproxy update', 0));
    perform rwproxy.settle_update(u.id) from rwproxy.update u where u.ended_at is null;
    if exists (select from rwproxy.update u where u.ended_at is null) then
        raise exception using errcode = 'object_in_use',
            message = 'another update of the API is active in this database',
            hint = 'Wait until it has ended, or stop it.';
    end if;
    started.id := pg_catalog.gen_random_uuid();
    started.cause := arguments ->> 'cause';
    started.requested_by := caller;
    started.requested_at := pg_catalog.clock_timestamp();
    -- Every reader of the view reads them: of these types.
    started.parameters := pg_catalog.jsonb_build_object(
        'full_refresh', coalesce((asked ->> 'full_refresh')::boolean, false),
        'refresh_selection', array(select pg_catalog.jsonb_array_elements_text(asked -> 'refresh_selection')),
        'full_refresh_selection', array(select pg_catalog.jsonb_array_elements_text(asked -> 'full_refresh_selection')),
        'replace_where_overrides', coalesce(asked -> 'replace_where_overrides', '[]'),
        'validate_only', coalesce((asked ->> 'validate_only')::boolean, false));
    for wanted in select value from pg_catalog.jsonb_array_elements(arguments -> 'refreshes') loop
        perform rwproxy.require_writer(caller, (wanted ->> 'target')::oid);
    end loop;
    select t.id, pg_catalog.pg_get_userbyid(c.relowner)::text as owner into strict relation
      from rwproxy.streaming_table t
      join pg_catalog.pg_class c on c.oid = t.target
     where t.target = (arguments -> 'refreshes' -> 0 ->> 'target')::oid;
    started.table_id := relation.id;
    started.owner := relation.owner;
    insert into rwproxy.update select started.*;
    perform rwproxy.add_group_event(started,
        pg_catalog.format('Update %s started by %s.', started.id, caller),
        pg_catalog.jsonb_build_object('create_update', pg_catalog.jsonb_build_object(
            'run_as', caller, 'cause', started.cause)));
    perform rwproxy.add_group_progress(started.id, 'QUEUED');
    if (started.parameters ->> 'validate_only')::boolean then
        perform rwproxy.end_update(started.id,
            case when arguments ? 'error' then 'FAILED' else 'COMPLETED' end,
            arguments ->> 'error', arguments ->> 'error_code');
        return pg_catalog.jsonb_build_object('id', started.id);
    end if;
    for wanted in
        select value from pg_catalog.jsonb_array_elements(arguments -> 'refreshes') with ordinality order by ordinality
    loop
        ids := ids || rwproxy.enqueue(
            (select t.id from rwproxy.streaming_table t where t.target = (wanted ->> 'target')::oid),
            'api', caller, wanted ->> 'kind',
            pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
                'where', wanted -> 'where', 'settings', wanted -> 'settings')),
            started.id,
            array(select ids[1 + place::integer]
                    from pg_catalog.jsonb_array_elements_text(wanted -> 'after') as place));
        if (wanted ->> 'not_reset')::boolean then
            select r.* into strict queued from rwproxy.refresh r where r.id = ids[pg_catalog.cardinality(ids)];
            perform rwproxy.add_refresh_event(queued,
                pg_catalog.format('Table ''%s.%s'' is not reset: its table property pipelines.reset.allowed is false.',
                    queued.target_schema, queued.target_table),
                pg_catalog.jsonb_build_object('flow_progress', pg_catalog.jsonb_build_object('status', 'QUEUED')),
                'WARN');
        end if;
    end loop;
    return pg_catalog.jsonb_build_object('id', started.id);
end
$$;

create function rwproxy.end_update(update_id uuid, final_state text, message text, code text) returns void
language plpgsql
as $$
begin
    update rwproxy.update u
       set state = final_state,
           error = message,
           ended_at = pg_catalog.clock_timestamp()
     where u.id = update_id;
    perform rwproxy.add_group_progress(update_id, final_state,
        case final_state when 'FAILED' then 'ERROR' when 'CANCELED' then 'WARN' else 'INFO' end,
        case when message is not null then rwproxy.event_error(message, code) end);
end
$$;

-- settle_update ends an update whose refreshes have ended. That cannot be seen
-- by the transaction that ends the last one: its snapshot may be older than the
-- end of the others. Anyone may ask for it, for it is so already.
create function rwproxy.settle_update(update_id uuid) returns void
language plpgsql
as $$
declare
    first_error text;
    states text[];
begin
    -- An open transaction that has asked for the same, or for a cancellation, holds
    -- up nobody: whoever reads the queue next settles it.
    perform from rwproxy.update u where u.id = update_id and u.ended_at is null for update skip locked;
    if not found then
        return;
    end if;
    states := array(select r.state from rwproxy.refresh r where r.update_id = settle_update.update_id);
    if states && '{QUEUED,RUNNING}' then
        return;
    end if;
    select r.error into first_error
      from rwproxy.refresh r
     where r.update_id = settle_update.update_id and r.error is not null
     order by r.state = 'FAILED' desc, r.ended_at
     limit 1;
    perform rwproxy.end_update(update_id,
        case
            when 'FAILED' = any (states) then 'FAILED'
            when 'CANCELED' = any (states) then 'CANCELED'
            else 'COMPLETED'
        end,
        first_error, '55000');
end
$$;

-- cancel_refresh, the step, ends a refresh, or all of an update's, that waits,
-- and has one that runs canceled. The last asked for comes first, so that none
-- is skipped for want of another. What the schema's owner may not signal it
-- returns.
create function rwproxy.cancel_refresh(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    wanted uuid := (arguments ->> 'id')::uuid;
    candidate uuid;
    refresh rwproxy.refresh;
    canceled boolean := false;
    unsignaled integer[] := '{}';
begin
    for refresh in
        select r.* from rwproxy.refresh r where r.id = wanted or r.update_id = wanted
    loop
        perform rwproxy.require_canceler(caller, refresh);
    end loop;
    for candidate in
        select r.id
          from rwproxy.refresh r
         where (r.id = wanted or r.update_id = wanted) and r.state in ('QUEUED', 'RUNNING')
         order by r.requested_at desc, r.id
    loop
        select r.* into refresh from rwproxy.refresh r where r.id = candidate and r.state = 'QUEUED' for update;
        if found then
            perform rwproxy.end_canceled(refresh, caller);
            canceled := true;
            continue;
        end if;
        select r.* into refresh from rwproxy.refresh r where r.id = candidate;
        continue when refresh.state <> 'RUNNING';
        canceled := true;
        insert into rwproxy.cancellation (refresh_id, requested_by)
        values (candidate, caller)
            on conflict do nothing;
        begin
            perform rwproxy.signal_refresh(refresh);
        exception when insufficient_privilege then
            unsignaled := unsignaled || refresh.backend_pid;
        end;
        -- Whoever ran it did not see yet why it was interrupted.
        select r.* into refresh from rwproxy.refresh r where r.id = candidate and r.state = 'QUEUED' for update;
        if found then
            perform rwproxy.end_canceled(refresh, caller);
        end if;
        update rwproxy.refresh r set error = 'canceled by ' || caller where r.id = candidate and r.state = 'CANCELED';
    end loop;
    delete from rwproxy.cancellation c
     where exists (
         select from rwproxy.refresh r where r.id = c.refresh_id and r.state not in ('QUEUED', 'RUNNING'));
    perform rwproxy.settle_update(u.id)
       from rwproxy.update u
      where u.ended_at is null
        and u.id in (select r.update_id from rwproxy.refresh r where r.id = wanted or r.update_id = wanted);
    return pg_catalog.jsonb_build_object('canceled', canceled, 'unsignaled', unsignaled);
end
$$;

-- require_canceler refuses everybody but the members of the role that asked for
-- the refresh, of the table's owner and of the service.
create function rwproxy.require_canceler(caller name, refresh rwproxy.refresh) returns void
language plpgsql stable
as $$
begin
    if refresh.requested_by <> caller
        and not rwproxy.is_service(caller)
        and not exists (
            select from pg_catalog.pg_roles o
             where pg_catalog.pg_has_role(caller, o.oid, 'USAGE')
               and (o.oid = refresh.requester and o.rolname = refresh.requested_by
                   or o.oid = (
                       select c.relowner
                         from rwproxy.streaming_table t
                         join pg_catalog.pg_class c on c.oid = t.target
                        where t.id = refresh.table_id)))
    then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('permission denied for refresh %s', refresh.id),
            hint = 'The role that asked for it, the owner of its table and superusers may cancel it.';
    end if;
end
$$;

-- signal_refresh interrupts the statement that a refresh is at. Between two
-- statements an interrupt has no effect, so it is sent again.
create function rwproxy.signal_refresh(refresh rwproxy.refresh) returns void
language plpgsql
as $$
begin
    for attempt in 1..5 loop
        exit when rwproxy.session_lost(refresh)
            or not exists (select from rwproxy.refresh r where r.id = refresh.id and r.state = 'RUNNING');
        perform pg_catalog.pg_cancel_backend(refresh.backend_pid);
        perform pg_catalog.pg_sleep(0.1);
    end loop;
end
$$;

-- cancel_refresh ends a refresh that is queued or running, of any client's, or
-- all of an update's: false if there is none. It runs with the caller's rights.
-- A refusal is raised again here: where it comes from is of no use to the caller.
create function rwproxy.cancel_refresh(update_id uuid) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    outcome jsonb;
    refusal text;
    way_out text;
begin
    begin
        insert into rwproxy.request (step, arguments)
        values ('cancel_refresh', jsonb_build_object('id', update_id))
        returning result into outcome;
    exception when insufficient_privilege then
        get stacked diagnostics refusal = message_text, way_out = pg_exception_hint;
        raise exception using errcode = 'insufficient_privilege', message = refusal, hint = way_out;
    end;
    if outcome is null then
        raise exception using errcode = 'object_not_in_prerequisite_state',
            message = 'the triggers of schema rwproxy do not fire in this session',
            hint = 'Set session_replication_role to origin.';
    end if;
    begin
        perform pg_cancel_backend(pid::integer) from jsonb_array_elements_text(outcome -> 'unsignaled') as pid;
    exception when insufficient_privilege then
        raise exception using errcode = 'insufficient_privilege',
            message = format('permission denied to cancel the session that runs refresh %s', update_id),
            detail = 'Neither you nor rwproxy''s service role may signal it.',
            hint = case
                when exists (
                    select from jsonb_array_elements_text(outcome -> 'unsignaled') as u (pid)
                      join pg_stat_activity a on a.pid = u.pid::integer
                      join pg_roles r on r.oid = a.usesysid
                     where r.rolsuper)
                    then 'A superuser runs it, and only a superuser may cancel it.'
                else format('GRANT pg_signal_backend TO %I.', (
                    select pg_get_userbyid(n.nspowner) from pg_namespace n where n.nspname = 'rwproxy'))
            end;
    end;
    return (outcome ->> 'canceled')::boolean;
end
$$;

-- An update as users read it: a refresh, or all that one request asked for. A
-- role sees what is of tables that it may SELECT.
create view rwproxy.updates with (security_barrier) as
select coalesce(u.id, r.update_id) as update_id,
       coalesce(u.cause, r.cause) as cause,
       coalesce(u.state, r.state) as state,
       coalesce((u.parameters ->> 'full_refresh')::boolean, r.all_full) as full_refresh,
       array(select pg_catalog.jsonb_array_elements_text(u.parameters -> 'refresh_selection')) as refresh_selection,
       array(select pg_catalog.jsonb_array_elements_text(u.parameters -> 'full_refresh_selection'))
           as full_refresh_selection,
       coalesce((u.parameters ->> 'validate_only')::boolean, false) as validate_only,
       coalesce(u.requested_by, r.requested_by) as requested_by,
       coalesce(u.requested_at, r.requested_at) as requested_at,
       coalesce(u.started_at, r.started_at) as started_at,
       coalesce(u.ended_at, r.ended_at) as ended_at,
       coalesce(u.error, r.error) as error,
       coalesce(r.refresh_ids, '{}') as refresh_ids
  from (
        select r.update_id,
               pg_catalog.min(r.cause) as cause,
               case
                   when pg_catalog.bool_and(r.state = 'QUEUED') then 'QUEUED'
                   when pg_catalog.bool_or(r.state in ('QUEUED', 'RUNNING')) then 'RUNNING'
                   when pg_catalog.bool_or(r.state = 'FAILED') then 'FAILED'
                   when pg_catalog.bool_or(r.state = 'CANCELED') then 'CANCELED'
                   else 'COMPLETED'
               end as state,
               pg_catalog.bool_and(r.kind = 'full') as all_full,
               pg_catalog.min(r.requested_by) as requested_by,
               pg_catalog.min(r.requested_at) as requested_at,
               pg_catalog.min(r.started_at) as started_at,
               case when pg_catalog.bool_and(r.ended_at is not null) then pg_catalog.max(r.ended_at) end as ended_at,
               pg_catalog.min(r.error) as error,
               pg_catalog.array_agg(r.refresh_id order by r.requested_at, r.refresh_id) as refresh_ids
          from rwproxy.refreshes r
         group by r.update_id
       ) as r
  full join (
        select u.*
          from rwproxy.update u
          left join rwproxy.streaming_table t on t.id = u.table_id
         where case
                   when t.id is not null then pg_catalog.has_table_privilege(t.target, 'SELECT')
                   else exists (
                       select from pg_catalog.pg_roles o
                        where o.rolname = u.owner and pg_catalog.pg_has_role(o.oid, 'USAGE'))
               end
       ) as u on u.id = r.update_id;

grant select on rwproxy.updates to public;
