-- What is stored of a streaming table and its flow.

-- drop_view drops a flow's view, and what was noted of it. Its owner need not
-- agree: the schema is ours.
create function rwproxy.drop_view(flow_view oid, dependents boolean default false) returns void
language plpgsql
as $$
declare
    relation record;
begin
    select c.relname into relation
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = flow_view and c.relkind = 'v' and n.nspname = 'rwproxy_flows';
    if found then
        execute pg_catalog.format('drop view rwproxy_flows.%I', relation.relname)
            || case when dependents then ' cascade' else '' end;
    end if;
    delete from rwproxy.capture_need n where n.view = flow_view;
    delete from rwproxy.proof p where p.view = flow_view;
end
$$;

-- lookup says what a relation is, and what is stored of it if it is a
-- streaming table: null when there is no such relation.
create function rwproxy.lookup(caller name, arguments jsonb) returns jsonb
language plpgsql
as $$
declare
    relation record;
    stored rwproxy.streaming_table;
    flow_view record;
begin
    select c.oid, c.relname, c.relkind, c.relowner, n.nspname into relation
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = (arguments ->> 'target')::oid;
    if not found then
        return null;
    end if;
    select t.* into stored from rwproxy.streaming_table t where t.target = relation.oid;
    if found
        and not pg_catalog.has_table_privilege(caller, relation.oid, 'SELECT')
        and not pg_catalog.pg_has_role(caller, relation.relowner, 'USAGE')
    then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('permission denied for table %s', relation.relname);
    end if;
    select c.oid, c.relowner, pg_catalog.format('%I.%I', n.nspname, c.relname) as name into flow_view
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = stored.view and c.relkind = 'v' and n.nspname = 'rwproxy_flows';
    return pg_catalog.to_jsonb(stored) || pg_catalog.jsonb_build_object(
        'oid', relation.oid,
        'schema', relation.nspname,
        'name', relation.relname,
        'kind', relation.relkind,
        'owner', pg_catalog.pg_get_userbyid(relation.relowner),
        'owned_by_caller', pg_catalog.pg_has_role(caller, relation.relowner, 'USAGE'),
        'view_oid', flow_view.oid,
        'view', flow_view.name,
        'view_owner', pg_catalog.pg_get_userbyid(flow_view.relowner));
end
$$;

-- set_flow makes the flow of a streaming table that of the arguments, none
-- when they have no view. The definition's version moves when a refresh would
-- compute something else.
create function rwproxy.set_flow(caller name, streaming_table uuid, arguments jsonb) returns void
language plpgsql
as $$
declare
    flow_view oid := (arguments ->> 'view')::oid;
    before rwproxy.streaming_table;
    after rwproxy.streaming_table;
begin
    select t.* into before from rwproxy.streaming_table t where t.id = streaming_table;
    if arguments ->> 'flow_name' is not null and (flow_view is null or flow_view is distinct from before.view) then
        perform rwproxy.require_view(caller, before.target, flow_view);
        if exists (select from rwproxy.streaming_table t where t.view = flow_view) then
            raise exception using errcode = 'duplicate_object', message = 'the view is that of another flow';
        end if;
    end if;
    -- Whoever defines a flow of this name in this schema at the same time waits.
    perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(
        pg_catalog.format('rwproxy flow %s %s', c.relnamespace, arguments ->> 'flow_name'), 0))
       from pg_catalog.pg_class c
      where c.oid = before.target;
    if exists (
        select
          from rwproxy.streaming_table t
          join pg_catalog.pg_class c on c.oid = t.target
          join pg_catalog.pg_class own on own.oid = before.target and own.relnamespace = c.relnamespace
         where t.id <> streaming_table
           and case when t.flow_statement is null then c.relname else t.flow_name end = arguments ->> 'flow_name')
    then
        raise exception using errcode = 'duplicate_object',
            message = pg_catalog.format('flow "%s" already exists', arguments ->> 'flow_name'),
            detail = 'Flows of the tables of one schema have different names.',
            hint = 'Give the flow another name with CREATE FLOW.';
    end if;
    update rwproxy.streaming_table t
       set flow_name = arguments ->> 'flow_name',
           flow_statement = arguments ->> 'flow_statement',
           flow_comment = arguments ->> 'flow_comment',
           view = flow_view,
           view_definition = pg_catalog.pg_get_viewdef(flow_view),
           predicate = arguments ->> 'predicate',
           condition = arguments ->> 'condition',
           condition_volatile = (arguments ->> 'condition_volatile')::boolean,
           query = arguments ->> 'query',
           settings = arguments -> 'settings',
           changed_at = pg_catalog.clock_timestamp()
     where t.id = streaming_table
    returning t.* into after;
    if before.flow_name is not null
        and (before.view_definition, before.condition, before.settings)
            is distinct from (after.view_definition, after.condition, after.settings)
    then
        update rwproxy.streaming_table t
           set definition_version = before.definition_version + 1
         where t.id = streaming_table;
    end if;
    if before.view is distinct from flow_view then
        perform rwproxy.drop_view(before.view);
    end if;
    if flow_view is not null then
        perform rwproxy.capture_target(flow_view, after.target, arguments -> 'predicate_columns');
    end if;
    perform rwproxy.add_flow_definition(streaming_table);
end
$$;

create function rwproxy.create_table(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    stored_id uuid;
    relation oid := (arguments ->> 'target')::oid;
begin
    perform rwproxy.require_target(caller, relation);
    insert into rwproxy.streaming_table
           (target, seen_oid, seen_name, seen_incarnation,
            statement, declared_columns, properties, comment, partition_by, schedule, settings)
    values (relation,
            relation,
            (select pg_catalog.format('%I.%I', n.nspname, c.relname)
               from pg_catalog.pg_class c
               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
              where c.oid = relation),
            rwproxy.incarnation(),
            arguments ->> 'statement',
            (arguments ->> 'declared_columns')::boolean,
            arguments -> 'properties',
            arguments ->> 'comment',
            array(select pg_catalog.jsonb_array_elements_text(arguments -> 'partition_by')),
            arguments ->> 'schedule',
            arguments -> 'settings')
        on conflict (target) do nothing
    returning id into stored_id;
    if not found then
        raise exception using errcode = 'duplicate_table',
            message = pg_catalog.format('streaming table "%s" already exists', relation::regclass);
    end if;
    perform rwproxy.set_flow(caller, stored_id, arguments);
end
$$;

-- own_table returns the streaming table of a relation that the caller owns.
create function rwproxy.own_table(caller name, relation oid) returns rwproxy.streaming_table
language plpgsql
as $$
declare
    stored rwproxy.streaming_table;
begin
    perform rwproxy.require_target(caller, relation);
    select t.* into stored from rwproxy.streaming_table t where t.target = relation for update;
    if not found then
        raise exception using errcode = 'wrong_object_type',
            message = pg_catalog.format('"%s" is not a streaming table', relation::regclass);
    end if;
    return stored;
end
$$;

create function rwproxy.replace_table(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    stored rwproxy.streaming_table := rwproxy.own_table(caller, (arguments ->> 'target')::oid);
begin
    update rwproxy.streaming_table t
       set statement = arguments ->> 'statement',
           declared_columns = (arguments ->> 'declared_columns')::boolean,
           properties = arguments -> 'properties',
           comment = arguments ->> 'comment',
           partition_by = array(select pg_catalog.jsonb_array_elements_text(arguments -> 'partition_by')),
           schedule = arguments ->> 'schedule'
     where t.id = stored.id;
    perform rwproxy.set_flow(caller, stored.id, arguments);
end
$$;

create function rwproxy.add_flow(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    stored rwproxy.streaming_table := rwproxy.own_table(caller, (arguments ->> 'target')::oid);
begin
    if stored.flow_name is not null then
        raise exception using errcode = 'duplicate_object',
            message = pg_catalog.format('table "%s" already has a REPLACE WHERE flow "%s"',
                stored.target, stored.flow_name),
            detail = 'Only one flow may target a streaming table.';
    end if;
    perform rwproxy.set_flow(caller, stored.id, arguments);
end
$$;

-- drop_table forgets a streaming table and drops its view. It may be called by
-- whoever may drop the table itself: its owner, and the owner of its schema.
-- Other tables are left alone.
create function rwproxy.drop_table(caller name, arguments jsonb) returns void
language plpgsql
as $$
declare
    stored rwproxy.streaming_table;
    relation record;
begin
    select t.* into stored from rwproxy.streaming_table t where t.target = (arguments ->> 'target')::oid for update;
    if not found then
        return;
    end if;
    select c.relname, n.nspname, n.nspowner, pg_catalog.pg_get_userbyid(c.relowner)::text as owner into relation
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = stored.target;
    if not pg_catalog.pg_has_role(caller, relation.nspowner, 'USAGE') then
        perform rwproxy.require_owner(caller, stored.target);
    end if;
    perform rwproxy.add_event(stored.id, null, stored.flow_name, relation.nspname || '.' || relation.relname,
        relation.owner,
        pg_catalog.format('User %s dropped table ''%s.%s''.', caller, relation.nspname, relation.relname),
        pg_catalog.jsonb_build_object('user_action',
            pg_catalog.jsonb_build_object('user_name', caller, 'action', 'DROP')));
    delete from rwproxy.streaming_table t where t.id = stored.id;
    perform rwproxy.cancel_dropped(stored.id);
    perform rwproxy.drop_view(stored.view, coalesce((arguments ->> 'cascade')::boolean, false));
end
$$;

-- is_stray says that the target of a restored streaming table is another table,
-- which must not be taken for it. Of a table that was dropped a dump has the
-- number of its OID, which can be any table's where it is restored. Of another
-- table the dump has the name, and where it is restored its OID is another one.
create function rwproxy.is_stray(stored rwproxy.streaming_table, incarnation text) returns boolean
language sql stable
as $$
    select coalesce(stored.seen_incarnation <> incarnation and stored.seen_oid = stored.target::oid, false)
       and not exists (
           select
             from pg_catalog.pg_class c
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace
            where c.oid = stored.target and pg_catalog.format('%I.%I', n.nspname, c.relname) = stored.seen_name)
$$;

-- sweep forgets the streaming tables whose target was dropped without us, and
-- follows the tables that were renamed. It
-- never fails and never waits: what it cannot do now is done at the next look.
-- A view that others depend on stays.
create function rwproxy.sweep() returns void
language plpgsql
set lock_timeout = '100ms'
as $$
declare
    here text := rwproxy.incarnation();
    gone rwproxy.streaming_table;
begin
    -- A flow that was defined with its table is called as the table is.
    update rwproxy.streaming_table t
       set flow_name = case when t.flow_name is not null and t.flow_statement is null then c.relname else t.flow_name end,
           seen_oid = c.oid,
           seen_name = pg_catalog.format('%I.%I', n.nspname, c.relname),
           seen_incarnation = here
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = t.target
       and not rwproxy.is_stray(t, here)
       and (t.flow_statement is null and t.flow_name <> c.relname
            or (t.seen_oid, t.seen_name, t.seen_incarnation)
               is distinct from (c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname), here));
    if not exists (
        select from rwproxy.streaming_table t
         where not exists (select from pg_catalog.pg_class c where c.oid = t.target)
            or rwproxy.is_stray(t, here)
    ) then
        return;
    end if;
    for gone in
        select t.* from rwproxy.streaming_table t
         where not exists (select from pg_catalog.pg_class c where c.oid = t.target)
            or rwproxy.is_stray(t, here)
           for update skip locked
    loop
        begin
            perform rwproxy.drop_view(gone.view);
        exception when dependent_objects_still_exist or insufficient_privilege then
            null;
        end;
        delete from rwproxy.streaming_table t where t.id = gone.id;
        perform rwproxy.cancel_dropped(gone.id);
    end loop;
exception when lock_not_available or serialization_failure or deadlock_detected then
    null;
end
$$;
