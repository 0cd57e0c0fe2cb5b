-- The queue: refreshes that run by themselves. A row in state QUEUED is all
-- there is of one; it commits with what asked for it, and becomes COMPLETED in
-- the transaction that writes the table. Whoever is to look at the queue listens
-- on the channel rwproxy.

-- enqueue queues a refresh of a streaming table as a role, and returns its id.
-- What one transaction of a schedule or trigger enqueues is of one time: see
-- held_back.
create function rwproxy.enqueue(
    streaming_table uuid,
    cause text,
    requested_by text,
    kind text,
    request jsonb,
    update_id uuid default null,
    after uuid[] default '{}'
) returns uuid
language plpgsql
as $$
declare
    known record;
    queued rwproxy.refresh;
begin
    select t.flow_name, n.nspname, c.relname, pg_catalog.pg_get_userbyid(c.relowner) as owner into known
      from rwproxy.streaming_table t
      join pg_catalog.pg_class c on c.oid = t.target
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where t.id = streaming_table;
    if not found then
        raise exception using errcode = 'undefined_table', message = 'relation does not exist';
    elsif known.flow_name is null then
        raise exception using errcode = 'feature_not_supported',
            message = pg_catalog.format('streaming table "%s" has no flow', known.relname),
            detail = 'PIPELINE_DATASET_WITHOUT_FLOW';
    end if;
    queued.requester := (select r.oid from pg_catalog.pg_roles r where r.rolname = enqueue.requested_by);
    if queued.requester is null then
        raise exception using errcode = 'undefined_object',
            message = pg_catalog.format('role "%s" does not exist', requested_by);
    end if;
    queued.id := pg_catalog.gen_random_uuid();
    queued.update_id := update_id;
    queued.table_id := streaming_table;
    queued.flow_name := known.flow_name;
    queued.target_schema := known.nspname;
    queued.target_table := known.relname;
    queued.owner := known.owner;
    queued.cause := cause;
    queued.kind := kind;
    queued.request := request;
    queued.after := after;
    queued.durable := true;
    queued.state := 'QUEUED';
    queued.requested_by := requested_by;
    queued.requested_at := case
        when cause in ('schedule', 'trigger') then pg_catalog.now()
        else pg_catalog.clock_timestamp()
    end;
    queued.due_at := queued.requested_at;
    perform rwproxy.record_refresh(queued);
    perform pg_catalog.pg_notify('rwproxy', '');
    return queued.id;
end
$$;

-- enqueue_refresh is REFRESH … ASYNC. Whoever looks at the queue reads all of it.
create function rwproxy.enqueue_refresh(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    most constant integer := 10000; -- that a role has asked for
    relation oid := (arguments ->> 'target')::oid;
    stored_id uuid;
begin
    perform rwproxy.require_writer(caller, relation);
    select t.id into stored_id from rwproxy.streaming_table t where t.target = relation;
    if most <= (
        select pg_catalog.count(*)
          from rwproxy.refresh r
         where r.state = 'QUEUED' and r.requested_by = caller and r.cause = 'statement')
    then
        raise exception using errcode = 'configuration_limit_exceeded',
            message = pg_catalog.format('too many refreshes of role "%s" are queued', caller),
            detail = pg_catalog.format('There may be %s in a database.', most),
            hint = 'Wait until some have run, or cancel them with rwproxy.cancel_refresh.';
    end if;
    return pg_catalog.jsonb_build_object('id', rwproxy.enqueue(stored_id, 'statement', caller, arguments ->> 'kind',
        pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
            'where', arguments -> 'where', 'settings', arguments -> 'settings'))));
end
$$;

-- start_queued begins a queued refresh of a table: nothing is returned for one
-- that is queued no longer.
create function rwproxy.start_queued(caller name, stored rwproxy.streaming_table, refresh_id uuid) returns jsonb
language plpgsql
as $$
declare
    started rwproxy.refresh;
begin
    select r.* into started from rwproxy.refresh r where r.id = refresh_id for update;
    if not found or started.requested_by <> caller then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('permission denied for refresh %s', refresh_id);
    elsif started.state <> 'QUEUED'
        or started.table_id <> stored.id
        or exists (select from rwproxy.refresh r where r.id = any (started.after) and r.state <> 'COMPLETED')
    then
        return null;
    end if;
    update rwproxy.refresh r
       set state = 'RUNNING',
           flow_name = stored.flow_name,
           started_at = pg_catalog.clock_timestamp(),
           error = null,
           backend_pid = pg_catalog.pg_backend_pid()
     where r.id = refresh_id
    returning r.* into started;
    update rwproxy.update u
       set started_at = started.started_at
     where u.id = started.update_id
       and u.started_at is null;
    if found then
        perform rwproxy.add_group_progress(started.update_id, 'INITIALIZING');
        perform rwproxy.add_group_progress(started.update_id, 'RUNNING');
    end if;
    perform rwproxy.add_update_progress(started, 'INITIALIZING');
    perform rwproxy.add_flow_progress(started, 'STARTING');
    return pg_catalog.jsonb_build_object('id', refresh_id, 'where', started.request -> 'where',
        'settings', coalesce(started.request -> 'settings', '{}'));
end
$$;

-- queue_again has a refresh that failed tried again after a while. Others may
-- have to wait for it, so the while is bounded.
create function rwproxy.queue_again(refresh rwproxy.refresh, delay interval, message text, code text) returns void
language plpgsql
as $$
begin
    update rwproxy.refresh r
       set state = 'QUEUED',
           attempt = r.attempt + 1,
           due_at = pg_catalog.clock_timestamp() + least(delay, interval '5 minutes'),
           started_at = null,
           backend_pid = null,
           technique = null,
           reason = null,
           window_predicate = null,
           applied_predicate = null,
           cursor = null,
           error = message
     where r.id = refresh.id;
    perform rwproxy.add_flow_progress(refresh, 'FAILED', null, 'WARN', rwproxy.event_error(message, code, false));
    perform rwproxy.add_flow_progress(refresh, 'QUEUED');
    perform rwproxy.add_update_progress(refresh, 'WAITING_FOR_RESOURCES');
    perform pg_catalog.pg_notify('rwproxy', '');
end
$$;

create function rwproxy.end_canceled(refresh rwproxy.refresh, canceled_by text) returns void
language sql
as $$
    select rwproxy.end_refresh(refresh, 'CANCELED', 'canceled by ' || canceled_by, '57014')
$$;

-- lose_refresh is about a refresh whose session ended before it did. One that
-- runs by itself is tried again, but not for ever: it may be what ends the
-- session, or the server.
create function rwproxy.lose_refresh(lost rwproxy.refresh) returns void
language plpgsql
as $$
declare
    message constant text := 'the session running it ended';
    canceled_by text;
begin
    select c.requested_by into canceled_by from rwproxy.cancellation c where c.refresh_id = lost.id;
    if canceled_by is not null then
        perform rwproxy.end_canceled(lost, canceled_by);
    elsif lost.durable and lost.attempt < 9 then
        perform rwproxy.queue_again(lost,
            least(pg_catalog.power(2, lost.attempt), 60) * interval '1 second', message, '08006');
    else
        perform rwproxy.end_refresh(lost, 'FAILED', message, '08006');
    end if;
end
$$;

-- requeue_lost queues the refreshes again whose session is lost. The lock is
-- looked at when the row is locked: a session that ends a refresh changes the
-- row first.
create function rwproxy.requeue_lost(caller name) returns jsonb
language plpgsql
as $$
declare
    candidate uuid;
    lost rwproxy.refresh;
    number bigint := 0;
begin
    perform rwproxy.require_service(caller);
    for candidate in
        select r.id
          from rwproxy.refresh r
         where r.state = 'RUNNING' and r.durable and rwproxy.session_lost(r)
         order by r.requested_at
    loop
        select r.* into lost
          from rwproxy.refresh r
         where r.id = candidate and r.state = 'RUNNING'
           for update skip locked;
        if found and rwproxy.session_lost(lost) then
            perform rwproxy.lose_refresh(lost);
            number := number + 1;
        end if;
    end loop;
    return pg_catalog.jsonb_build_object('number', number);
end
$$;

-- session_lost reports that a refresh says RUNNING and is not.
create function rwproxy.session_lost(running rwproxy.refresh) returns boolean
language sql stable
as $$
    select not exists (
        select from rwproxy.refresh_lock l
          join rwproxy.streaming_table t on t.target = l.target
         where t.id = (running).table_id
           and l.pid = (running).backend_pid)
$$;

-- cancel_dropped ends what is queued for a table that is gone.
create function rwproxy.cancel_dropped(streaming_table uuid) returns void
language plpgsql
as $$
declare
    queued rwproxy.refresh;
begin
    for queued in
        select r.*
          from rwproxy.refresh r
         where r.table_id = streaming_table and r.state = 'QUEUED'
         limit 1000 -- the rest goes when the queue is read
           for update skip locked
    loop
        perform rwproxy.end_refresh(queued, 'CANCELED',
            pg_catalog.format('table %s.%s was dropped', queued.target_schema, queued.target_table), '42P01');
    end loop;
end
$$;

-- skip_dependents ends the refreshes of an update that were to come after one
-- that has not completed.
create function rwproxy.skip_dependents(ended rwproxy.refresh, final_state text) returns void
language plpgsql
as $$
declare
    dependent rwproxy.refresh;
begin
    if ended.update_id = ended.id then
        return;
    end if;
    for dependent in
        select r.*
          from rwproxy.refresh r
         where r.update_id = ended.update_id and ended.id = any (r.after) and r.state = 'QUEUED'
           for update
    loop
        perform rwproxy.end_refresh(dependent, 'CANCELED',
            pg_catalog.format('refresh %s of table %s.%s, which comes first, is %s',
                ended.id, ended.target_schema, ended.target_table, final_state),
            '55000', 'SKIPPED');
    end loop;
end
$$;

-- held_back: the queued refreshes of schedules and triggers whose flow reads,
-- directly or through others, what another that was asked for no later has still
-- to write. Flows that read each other do not wait for each other.
create function rwproxy.held_back() returns setof uuid
language plpgsql stable
as $$
begin
    if (select pg_catalog.count(*) from rwproxy.refresh r
         where r.state in ('QUEUED', 'RUNNING') and r.cause in ('schedule', 'trigger')) < 2
    then
        return;
    end if;
    return query
        with reads as materialized (
            select t.id as table_id, u.id as upstream
              from rwproxy.streaming_table t
             cross join rwproxy.upstream(t.view) as u (id)
             where t.view is not null
        )
        select q.id
          from rwproxy.refresh q
         where q.state = 'QUEUED'
           and q.cause in ('schedule', 'trigger')
           and exists (
               select
                 from rwproxy.refresh p
                 join reads on reads.table_id = q.table_id and reads.upstream = p.table_id
                where p.id <> q.id
                  and p.state in ('QUEUED', 'RUNNING')
                  and p.cause in ('schedule', 'trigger')
                  and p.requested_at <= q.requested_at
                  and not exists (
                      select from reads back
                       where back.table_id = p.table_id and back.upstream = q.table_id));
end
$$;

-- read_queue says what can begin now, one refresh a table, when to look again
-- for the next one, and whether others run or have to wait for something else
-- than time. What can never run is ended first.
create function rwproxy.read_queue(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    most constant integer := 1000; -- at a time, of a table that is gone
    gone rwproxy.refresh;
    unsettled uuid;
    looked_at timestamptz;
    held uuid[];
    ready jsonb;
begin
    perform rwproxy.require_service(caller);
    perform rwproxy.sweep();
    for gone in
        select r.*
          from rwproxy.refresh r
         where r.state = 'QUEUED'
           and not exists (
               select from rwproxy.streaming_table t
                 join pg_catalog.pg_class c on c.oid = t.target
                where t.id = r.table_id)
           limit most
           for update skip locked
    loop
        perform rwproxy.end_refresh(gone, 'CANCELED',
            pg_catalog.format('table %s.%s was dropped', gone.target_schema, gone.target_table), '42P01');
    end loop;
    -- A role that has the name of another one now has not asked for anything.
    for gone in
        select r.*
          from rwproxy.refresh r
         where r.state = 'QUEUED'
           and not exists (
               select from pg_catalog.pg_roles o where o.oid = r.requester and o.rolname = r.requested_by)
           for update skip locked
    loop
        perform rwproxy.end_refresh(gone, 'FAILED',
            pg_catalog.format('role "%s" does not exist any more', gone.requested_by), '42501');
    end loop;
    for unsettled in select u.id from rwproxy.update u where u.ended_at is null loop
        perform rwproxy.settle_update(unsettled);
    end loop;

    looked_at := pg_catalog.clock_timestamp();
    held := array(select rwproxy.held_back());
    with busy as materialized (
        select l.target from rwproxy.refresh_lock l
    ), due as (
        select r.id,
               r.update_id,
               t.target,
               n.nspname,
               c.relname,
               r.kind,
               r.cause,
               r.requested_by,
               r.attempt,
               r.due_at,
               r.requested_at,
               pg_catalog.row_number() over (
                   partition by r.table_id order by r.due_at, r.requested_at, r.id) as place
          from rwproxy.refresh r
          join rwproxy.streaming_table t on t.id = r.table_id
          join pg_catalog.pg_class c on c.oid = t.target
          join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where r.state = 'QUEUED'
           and r.due_at <= looked_at
           and not r.id = any (held)
           and not exists (select from rwproxy.refresh a where a.id = any (r.after) and a.state <> 'COMPLETED')
           and not exists (select from busy where busy.target = t.target)
    ), first as (
        select *
          from due
         where place = 1
         order by due_at, requested_at, id
         limit (arguments ->> 'limit')::bigint
    )
    select coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
               'ID', id,
               'UpdateID', update_id,
               'Target', target::oid::bigint,
               'Schema', nspname,
               'Name', relname,
               'Kind', kind,
               'Cause', cause,
               'RequestedBy', requested_by,
               'Attempt', attempt) order by due_at, requested_at, id), '[]') into ready
      from first;
    return pg_catalog.jsonb_build_object(
        'ready', ready,
        'now', looked_at,
        'next_due', (
            select pg_catalog.min(r.due_at) from rwproxy.refresh r where r.state = 'QUEUED' and r.due_at > looked_at),
        'elsewhere', exists (select from rwproxy.refresh r where r.state = 'RUNNING' and r.durable)
            or (select pg_catalog.count(*) from rwproxy.refresh r where r.state = 'QUEUED' and r.due_at <= looked_at)
                > pg_catalog.jsonb_array_length(ready));
end
$$;
