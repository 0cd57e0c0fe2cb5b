-- What a caller must be allowed to do. The role is always an argument, set by
-- rwproxy.request; refusals read as Postgres's own.

-- is_service: whether a role may write down what another role did, as the
-- service connection does when it records a refresh whose session is lost.
create function rwproxy.is_service(caller name) returns boolean
language sql stable
as $$
    select pg_catalog.pg_has_role(caller, n.nspowner, 'USAGE')
      from pg_catalog.pg_namespace n
     where n.nspname = 'rwproxy'
$$;

-- require_service refuses everybody else.
create function rwproxy.require_service(caller name) returns void
language plpgsql stable
as $$
begin
    if not rwproxy.is_service(caller) then
        raise exception using errcode = 'insufficient_privilege',
            message = 'permission denied for schema rwproxy';
    end if;
end
$$;

-- require_owner refuses a role without the rights of a table's owner.
create function rwproxy.require_owner(caller name, target oid) returns void
language plpgsql stable
as $$
declare
    relation record;
begin
    select c.relname, c.relowner into relation from pg_catalog.pg_class c where c.oid = target;
    if not found then
        raise exception using errcode = 'undefined_table', message = 'relation does not exist';
    elsif not pg_catalog.pg_has_role(caller, relation.relowner, 'USAGE') then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('must be owner of table %s', relation.relname);
    end if;
end
$$;

-- require_writer refuses a role that may not do what a refresh does by hand.
create function rwproxy.require_writer(caller name, target oid) returns void
language plpgsql stable
as $$
declare
    relation record;
begin
    select c.relname, c.relowner into relation from pg_catalog.pg_class c where c.oid = target;
    if not found then
        raise exception using errcode = 'undefined_table', message = 'relation does not exist';
    elsif not pg_catalog.pg_has_role(caller, relation.relowner, 'USAGE') and not (
        pg_catalog.has_table_privilege(caller, target, 'SELECT')
        and pg_catalog.has_table_privilege(caller, target, 'INSERT')
        and pg_catalog.has_table_privilege(caller, target, 'DELETE')
    ) then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('permission denied for table %s', relation.relname),
            hint = 'A role that refreshes needs SELECT, INSERT and DELETE on the table, and SELECT on the view of its flow in schema rwproxy_flows.';
    end if;
end
$$;

-- require_target refuses what cannot be the target of a flow.
create function rwproxy.require_target(caller name, target oid) returns void
language plpgsql stable
as $$
declare
    relation record;
begin
    perform rwproxy.require_owner(caller, target);
    select c.relname, c.relkind, c.relpersistence, n.nspname into relation
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = target;
    if relation.relkind not in ('r', 'p') then
        raise exception using errcode = 'wrong_object_type',
            message = pg_catalog.format('"%s" is not a table', relation.relname);
    elsif relation.relpersistence = 't' then
        raise exception using errcode = 'invalid_table_definition',
            message = pg_catalog.format('streaming table "%s" cannot be temporary', relation.relname);
    elsif relation.nspname in ('pg_catalog', 'information_schema', 'rwproxy', 'rwproxy_flows', 'rwproxy_compat', 'rwproxy_log') then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('permission denied for schema %s', relation.nspname);
    end if;
end
$$;

-- require_view refuses a flow whose view belongs neither to the caller nor to
-- the owner of the target: with another role's view, its owner could change what
-- the flow writes.
create function rwproxy.require_view(caller name, target oid, flow_view oid) returns void
language plpgsql stable
as $$
declare
    relation record;
begin
    select c.relname, c.relkind, c.relowner, n.nspname, pg_catalog.pg_get_userbyid(c.relowner) as owner into relation
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = flow_view;
    if not found then
        raise exception using errcode = 'undefined_table', message = 'the view of the flow does not exist';
    elsif relation.relkind <> 'v' or relation.nspname <> 'rwproxy_flows' then
        raise exception using errcode = 'wrong_object_type',
            message = pg_catalog.format('"%s" is not the view of a flow', relation.relname);
    elsif relation.owner <> caller
        and relation.relowner <> (select c.relowner from pg_catalog.pg_class c where c.oid = target)
    then
        raise exception using errcode = 'insufficient_privilege',
            message = pg_catalog.format('must be owner of view %s', relation.relname);
    end if;
end
$$;
