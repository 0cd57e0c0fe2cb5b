-- Schedules and triggers: what makes a refresh due by itself. When, the service
-- computes: it knows calendars. It looks whenever somebody notifies the channel
-- rwproxy, and at the next time that is due.
--
-- A trigger fires when a log has a change that neither the flow's cursor has
-- seen nor the snapshot of the last time that it fired: a change makes one
-- refresh, even one that fails.

-- may_wake says whether changes of sources notify: a PREPARE TRANSACTION would
-- fail, and a queue that is full makes every transaction fail. Who listens looks
-- every few seconds then.
create function rwproxy.may_wake() returns boolean
language sql volatile
as $$
    select pg_catalog.current_setting('max_prepared_transactions') = '0'
       and pg_catalog.pg_notification_queue_usage() < 0.5
$$;

-- follow_schedule brings rwproxy.schedule up to what is stored of a table, whose
-- flow may be another one now.
create function rwproxy.follow_schedule(arguments jsonb, redefined boolean) returns void
language plpgsql
as $$
declare
    stored rwproxy.streaming_table;
    changed boolean;
begin
    select t.* into strict stored from rwproxy.streaming_table t where t.target = (arguments ->> 'target')::oid;
    if stored.schedule is null then
        delete from rwproxy.schedule s where s.table_id = stored.id;
        return;
    end if;
    insert into rwproxy.schedule as s (table_id, text)
    values (stored.id, stored.schedule)
        on conflict (table_id) do update
       set text = excluded.text,
           set_at = excluded.set_at,
           next_run_at = null,
           computed_at = null,
           last_trigger = null,
           last_trigger_at = null,
           last_trigger_incarnation = null,
           waits_since = null
     where s.text <> excluded.text;
    changed := found;
    if not changed and not redefined then
        return;
    end if;
    if stored.schedule ^@ 'TRIGGER ' and stored.view is not null then
        perform rwproxy.require_trackable(stored);
    end if;
    -- Which keeps the transaction from being prepared: a schedule that begins up to
    -- a minute later would be the worse surprise.
    perform pg_catalog.pg_notify('rwproxy', '');
end
$$;

-- require_trackable refuses a trigger that would never fire, or without end.
create function rwproxy.require_trackable(stored rwproxy.streaming_table) returns void
language plpgsql
as $$
declare
    author name := (
        select pg_catalog.pg_get_userbyid(c.relowner) from pg_catalog.pg_class c where c.oid = stored.view);
    source oid;
    refusal record;
    round text;
    sources bigint := 0;
begin
    for source in select s.oid from rwproxy.view_sources(stored.view) as s (oid) order by s.oid loop
        sources := sources + 1;
        select * into refusal from rwproxy.capture_obstacle(source);
        if refusal.obstacle is null then
            select * into refusal from rwproxy.capture_refusal(author, source);
        end if;
        if refusal.obstacle is not null then
            raise exception using errcode = 'feature_not_supported',
                message = pg_catalog.format('changes of %s cannot trigger a refresh', source::regclass),
                detail = pg_catalog.format('They cannot be recorded: %s.', refusal.obstacle),
                hint = refusal.hint || ' Or use SCHEDULE instead of TRIGGER.';
        end if;
    end loop;
    if sources = 0 then
        raise exception using errcode = 'feature_not_supported',
            message = 'the flow''s query reads no table whose changes could trigger a refresh',
            hint = 'Use SCHEDULE instead of TRIGGER.';
    end if;
    with recursive triggered (id, target, view) as (
        select t.id, t.target::oid, t.view::oid
          from rwproxy.streaming_table t
         where t.schedule ^@ 'TRIGGER '
    ), reads (id, target) as (
        select u.id, u.target
          from rwproxy.flow_source s
          join triggered u on u.target = s.relation
         where s.view = stored.view
         union
        select u.id, u.target
          from reads r
          join triggered t on t.id = r.id
          join rwproxy.flow_source s on s.view = t.view
          join triggered u on u.target = s.relation
    )
    select pg_catalog.string_agg(r.target::regclass::text, ', ' order by r.target) into round
      from reads r
    having pg_catalog.bool_or(r.id = stored.id);
    if round is not null then
        raise exception using errcode = 'invalid_object_definition',
            message = 'triggers of flows that read each other would fire without end',
            detail = pg_catalog.format('The tables are %s.', round),
            hint = 'Use SCHEDULE instead of TRIGGER for one of them.';
    end if;
end
$$;

-- read_schedules returns the schedules whose next time is to be computed, and
-- when to look again. A clock that was set back makes times wait that were
-- computed before: they are computed again.
create function rwproxy.read_schedules(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    -- A clock that is corrected by less makes nothing wait long.
    step constant interval := '1 minute';
    moment timestamptz := coalesce((arguments ->> 'now')::timestamptz, pg_catalog.clock_timestamp());
begin
    perform rwproxy.require_service(caller);
    update rwproxy.schedule s
       set set_at = least(s.set_at, moment),
           last_trigger_at = least(s.last_trigger_at, moment),
           waits_since = least(s.waits_since, moment),
           computed_at = null
     where s.table_id in (
               select w.table_id
                 from rwproxy.schedule w
                where greatest(w.set_at, w.computed_at, w.last_trigger_at, w.waits_since) > moment + step
                  for update skip locked);
    return pg_catalog.jsonb_build_object(
        'now', moment,
        'due', (
            select coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                       'id', due.table_id,
                       'text', due.text,
                       'set_at', due.set_at,
                       'seen', due.next_run_at,
                       'run', due.computed_at is not null) order by due.table_id), '[]')
              from (
                    select s.*
                      from rwproxy.schedule s
                      join rwproxy.streaming_table t on t.id = s.table_id
                     where t.flow_name is not null
                       and not s.text ^@ 'TRIGGER '
                       and (s.computed_at is null or s.next_run_at <= moment)
                     order by s.next_run_at, s.table_id
                     limit (arguments ->> 'limit')::bigint
                   ) as due),
        'next', (
            select pg_catalog.min(s.next_run_at)
              from rwproxy.schedule s
              join rwproxy.streaming_table t on t.id = s.table_id
             where t.flow_name is not null
               and not s.text ^@ 'TRIGGER '
               and s.next_run_at > moment
               and s.next_run_at <> 'infinity'),
        'triggers', exists (select from rwproxy.schedule s where s.text ^@ 'TRIGGER '));
end
$$;

-- decide_alone has one session at a time decide what is due, until its transaction
-- ends. The lock is one that nobody else may take: anybody can hold an advisory
-- lock for ever.
create function rwproxy.decide_alone() returns void
language plpgsql
as $$
begin
    lock table rwproxy.database in share row exclusive mode;
end
$$;

-- lock_schedule returns false while somebody's open transaction has changed the
-- schedule. Whoever decides about all of them does not wait for it.
create function rwproxy.lock_schedule(streaming_table uuid) returns boolean
language plpgsql
as $$
begin
    perform from rwproxy.schedule s where s.table_id = streaming_table for update skip locked;
    return found;
end
$$;

-- run_schedules stores next times, and enqueues the refreshes of the schedules
-- whose time has come: of each time once, whoever is first. One that waits in
-- the queue is enough.
create function rwproxy.run_schedules(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    moment timestamptz := coalesce((arguments ->> 'now')::timestamptz, pg_catalog.clock_timestamp());
    run jsonb;
begin
    perform rwproxy.require_service(caller);
    perform rwproxy.decide_alone();
    for run in
        select r.run
          from pg_catalog.jsonb_array_elements(arguments -> 'runs') as r (run)
    loop
        continue when not rwproxy.lock_schedule((run ->> 'id')::uuid);
        update rwproxy.schedule s
           set next_run_at = (run ->> 'next')::timestamptz,
               computed_at = moment
         where s.table_id = (run ->> 'id')::uuid
           and s.text = run ->> 'text'
           and s.next_run_at is not distinct from (run ->> 'seen')::timestamptz
           and (s.computed_at is not null) = (run ->> 'run')::boolean;
        if found and (run ->> 'run')::boolean then
            perform rwproxy.enqueue_by_itself((run ->> 'id')::uuid, 'schedule');
        end if;
    end loop;
end
$$;

-- waits_in_queue: whether a refresh that was due by itself has yet to begin.
create function rwproxy.waits_in_queue(streaming_table uuid) returns boolean
language sql stable
as $$
    select exists (
        select
          from rwproxy.refresh r
         where r.table_id = streaming_table
           and r.state = 'QUEUED'
           and r.cause in ('schedule', 'trigger'))
$$;

-- enqueue_by_itself enqueues a refresh of a table as its owner: whoever may set
-- the schedule.
create function rwproxy.enqueue_by_itself(streaming_table uuid, cause text) returns void
language plpgsql
as $$
begin
    if rwproxy.waits_in_queue(streaming_table) then
        return;
    end if;
    perform rwproxy.enqueue(t.id, enqueue_by_itself.cause, pg_catalog.pg_get_userbyid(c.relowner), 'window', '{}')
       from rwproxy.streaming_table t
       join pg_catalog.pg_class c on c.oid = t.target
      where t.id = streaming_table and t.flow_name is not null;
end
$$;

-- arm_triggers has the logs notify that a trigger waits for, and no others:
-- notifying costs each transaction that commits. It returns false when a
-- transaction may yet commit that began before, and does not notify.
--
-- Replacing the function of a trigger takes no lock of the table.
create function rwproxy.arm_triggers() returns boolean
language plpgsql
as $$
declare
    candidate record;
    captured rwproxy.capture;
begin
    for candidate in
        select c.relation, wanted.wakes
          from rwproxy.capture c
          join pg_catalog.pg_class r on r.oid = c.relation
         cross join lateral (
               select exists (
                   select
                     from rwproxy.capture_need n
                     join rwproxy.streaming_table t on t.view = n.view
                    where n.relation = c.relation and not n.is_target and t.schedule ^@ 'TRIGGER ') as wakes
               ) as wanted
         where c.wakes <> wanted.wakes
         order by c.number
    loop
        select c.* into captured from rwproxy.capture c where c.relation = candidate.relation for update skip locked;
        if not found then
            return false; -- it is being installed
        end if;
        captured.wakes := candidate.wakes;
        captured.wakes_since := pg_catalog.pg_current_xact_id();
        update rwproxy.capture c
           set wakes = captured.wakes,
               wakes_since = captured.wakes_since
         where c.relation = captured.relation;
        perform rwproxy.replace_capture_function(captured);
    end loop;
    return not exists (
        select
          from rwproxy.capture c
         where c.wakes
           and c.wakes_since >= pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())
           and exists (
               select
                 from pg_catalog.pg_locks l
                where l.locktype = 'relation'
                  and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
                  and l.mode not in ('AccessShareLock', 'RowShareLock')
                  and (l.relation = c.log or l.relation in (select t.oid from rwproxy.capture_tree(c.relation) as t (oid)))));
end
$$;

-- has_unseen_change says whether a trigger has something to fire for: a change
-- that it has not seen, or a table whose changes are not recorded yet, which the
-- next refresh changes.
create function rwproxy.has_unseen_change(stored rwproxy.streaming_table, trigger rwproxy.schedule, moment timestamptz)
returns boolean
language plpgsql
as $$
declare
    pause constant interval := '1 minute'; -- between refreshes that may record changes at last
    here constant text := rwproxy.incarnation();
    cursor pg_snapshot := case when stored.cursor_incarnation = here then stored.cursor end;
    fired pg_snapshot := case when trigger.last_trigger_incarnation = here then trigger.last_trigger end;
    source record;
    unseen boolean;
begin
    if cursor is null and fired is null then
        return true;
    end if;
    for source in
        select s.oid, c.log, coalesce(n.view is not null and c.incarnation = here, false) as recorded
          from rwproxy.view_sources(stored.view) as s (oid)
          left join rwproxy.capture c on c.relation = rwproxy.capture_root(s.oid)
          left join rwproxy.capture_need n on n.relation = c.relation and n.view = stored.view
    loop
        if not source.recorded then
            if (fired is null or trigger.last_trigger_at < moment - pause)
                and (rwproxy.capture_obstacle(source.oid)).obstacle is null
            then
                return true;
            end if;
            continue;
        end if;
        execute pg_catalog.format(
            'select exists (
                 select
                   from %s l
                  where ($1 is null or not pg_catalog.pg_visible_in_snapshot(l.xid, $1))
                    and ($2 is null or not pg_catalog.pg_visible_in_snapshot(l.xid, $2)))', source.log)
           into unseen using cursor, fired;
        if unseen then
            return true;
        end if;
    end loop;
    return false;
end
$$;

-- upstream are the streaming tables that a flow reads, directly or through other
-- flows.
create function rwproxy.upstream(flow_view oid) returns setof uuid
language sql stable
as $$
    with recursive reads (id, view) as (
        select u.id, u.view
          from rwproxy.flow_source s
          join rwproxy.streaming_table u on u.target = s.relation
         where s.view = flow_view
         union
        select u.id, u.view
          from reads r
          join rwproxy.flow_source s on s.view = r.view
          join rwproxy.streaming_table u on u.target = s.relation
    )
    select r.id from reads r
$$;

-- logged_since says whether anything was logged that a trigger waits for and a
-- snapshot does not see.
create function rwproxy.logged_since(seen pg_snapshot) returns boolean
language plpgsql
as $$
declare
    captured record;
    news boolean;
begin
    for captured in
        select c.log from rwproxy.capture c where c.wakes and c.incarnation = rwproxy.incarnation()
    loop
        execute pg_catalog.format(
            'select exists (select from %s l where not pg_catalog.pg_visible_in_snapshot(l.xid, $1))', captured.log)
           into news using seen;
        if news then
            return true;
        end if;
    end loop;
    return false;
end
$$;

-- keep_quiet has changes notify nobody while one comes after the other: then the
-- session looks every few seconds, which it is told by true. It remembers in
-- settings of its own when it has looked, and what it has seen.
--
-- When no more changes come they notify again. Transactions that did not, and
-- have yet to commit, are those that arm_triggers waits for.
create function rwproxy.keep_quiet(pause interval) returns boolean
language plpgsql
as $$
declare
    looked_at timestamptz := nullif(pg_catalog.current_setting('rwproxy.looked_at', true), '');
    seen pg_snapshot := nullif(pg_catalog.current_setting('rwproxy.seen', true), '');
    news boolean := seen is not null and rwproxy.logged_since(seen);
    quiet boolean := exists (
        select
          from pg_catalog.pg_locks l
         where l.locktype = 'advisory'
           and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
           and l.classid = 1920430194
           and l.objid::bigint = 4294967295
           and l.objsubid = 2
           and l.pid = pg_catalog.pg_backend_pid()
           and l.mode = 'ExclusiveLock'
           and l.granted);
begin
    perform pg_catalog.set_config('rwproxy.looked_at', pg_catalog.clock_timestamp()::text, false);
    perform pg_catalog.set_config('rwproxy.seen', pg_catalog.pg_current_snapshot()::text, false);
    if quiet and not news then
        perform pg_catalog.pg_advisory_unlock(1920430194, -1);
        update rwproxy.capture c set wakes_since = pg_catalog.pg_current_xact_id() where c.wakes;
        return true;
    elsif not quiet and news and pg_catalog.clock_timestamp() - looked_at < 1.5 * pause then
        -- Or another session has the lock, and this one looks as long as changes
        -- come, in case that one ends.
        perform pg_catalog.pg_try_advisory_lock(1920430194, -1);
        return true;
    end if;
    return quiet;
end
$$;

-- run_triggers enqueues the refreshes of the triggers that fire, and returns
-- when to look again if nobody notifies. A flow waits for those that it reads,
-- so that one refresh takes in what all of them have made of a change: for a
-- while only, or changes that do not cease would keep it waiting.
create function rwproxy.run_triggers(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    patience constant interval := '1 minute';
    pause constant interval := '2 seconds';
    moment timestamptz := coalesce((arguments ->> 'now')::timestamptz, pg_catalog.clock_timestamp());
    here constant text := rwproxy.incarnation();
    again timestamptz;
    quiet boolean;
    unseen boolean;
    trigger rwproxy.schedule;
    stored rwproxy.streaming_table;
    earliest timestamptz;
    firing uuid[] := '{}';
    active uuid[];
begin
    perform rwproxy.require_service(caller);
    perform rwproxy.decide_alone();
    quiet := rwproxy.keep_quiet(pause);
    if not rwproxy.arm_triggers() or not rwproxy.may_wake() or quiet then
        again := moment + pause;
    end if;
    for trigger in
        select s.*
          from rwproxy.schedule s
          join rwproxy.streaming_table t on t.id = s.table_id
          join pg_catalog.pg_class v on v.oid = t.view
         where s.text ^@ 'TRIGGER ' and t.flow_name is not null
         order by s.table_id
    loop
        select t.* into stored from rwproxy.streaming_table t where t.id = trigger.table_id;
        continue when not found or rwproxy.waits_in_queue(stored.id);
        if exists (select from rwproxy.refresh_lock l where l.target = stored.target) then
            -- Its end moves the cursor.
            again := least(again, moment + pause);
            continue;
        end if;
        earliest := trigger.last_trigger_at + pg_catalog.substring(trigger.text, 'INTERVAL (.*)$')::interval;
        unseen := rwproxy.has_unseen_change(stored, trigger, moment);
        if (unseen or trigger.next_run_at is not null) and not rwproxy.lock_schedule(stored.id) then
            again := least(again, moment + pause);
            continue;
        end if;
        if not unseen then
            earliest := null;
        elsif earliest is null or earliest <= moment then
            earliest := null;
            firing := firing || stored.id;
        else
            again := least(again, earliest);
        end if;
        update rwproxy.schedule s
           set next_run_at = earliest,
               computed_at = moment
         where s.table_id = stored.id and s.next_run_at is distinct from earliest;
    end loop;

    active := firing || array(
        select r.table_id
          from rwproxy.refresh r
         where r.state in ('QUEUED', 'RUNNING') and r.cause in ('schedule', 'trigger'));
    for trigger in
        select s.* from rwproxy.schedule s where s.table_id = any (firing) order by s.table_id
    loop
        select t.* into stored from rwproxy.streaming_table t where t.id = trigger.table_id;
        if coalesce(trigger.waits_since, moment) > moment - patience
            and exists (select from rwproxy.upstream(stored.view) as u (id) where u.id = any (active))
        then
            again := least(again, moment + pause);
            update rwproxy.schedule s
               set waits_since = moment
             where s.table_id = stored.id and s.waits_since is null;
            continue;
        end if;
        update rwproxy.schedule s
           set last_trigger = pg_catalog.pg_current_snapshot(),
               last_trigger_at = moment,
               last_trigger_incarnation = here,
               waits_since = null
         where s.table_id = stored.id;
        perform rwproxy.enqueue_by_itself(stored.id, 'trigger');
    end loop;
    return pg_catalog.jsonb_build_object('next', again);
end
$$;
