-- The one door through which state is written: one INSERT asks for one step.
--
--     insert into rwproxy.request (step, arguments) values (…) returning result
--
-- A SECURITY DEFINER function cannot know who called it: current_user is its
-- owner, and session_user and the setting "role" stay those of the session even
-- in another role's SECURITY DEFINER function, in an index expression that
-- ANALYZE evaluates, in REFRESH MATERIALIZED VIEW. A role whose code runs in a
-- superuser's session in one of these ways would be taken for the superuser.
--
-- So the role is established before the rights change: the first trigger runs
-- with the rights of whoever executes the INSERT and writes their role into the
-- row, whatever was there; the second one, with the owner's rights, believes
-- it. Triggers of one kind run in the order of their names.
create view rwproxy.request as
select null::name as caller, null::text as step, null::jsonb as arguments, null::jsonb as result
 where false;

create function rwproxy.stamp_caller() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    new.caller := current_user;
    return new;
end
$$;

create function rwproxy.run_step() returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    case new.step
        when 'lookup' then new.result := rwproxy.lookup(new.caller, new.arguments);
        when 'sweep' then perform rwproxy.sweep();
        when 'create_table' then perform rwproxy.create_table(new.caller, new.arguments);
        when 'replace_table' then perform rwproxy.replace_table(new.caller, new.arguments);
        when 'add_flow' then perform rwproxy.add_flow(new.caller, new.arguments);
        when 'drop_table' then perform rwproxy.drop_table(new.caller, new.arguments);
        when 'start_refresh' then new.result := rwproxy.start_refresh(new.caller, new.arguments);
        when 'plan_refresh' then perform rwproxy.plan_refresh(new.caller, new.arguments);
        when 'finish_refresh' then perform rwproxy.finish_refresh(new.caller, new.arguments);
        when 'fail_refresh' then perform rwproxy.fail_refresh(new.caller, new.arguments);
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

create trigger a_stamp_caller instead of insert on rwproxy.request
   for each row execute function rwproxy.stamp_caller();

create trigger b_run_step instead of insert on rwproxy.request
   for each row execute function rwproxy.run_step();

grant insert (step, arguments), select (result) on rwproxy.request to public;
