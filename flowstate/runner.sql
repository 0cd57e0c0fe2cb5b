-- A role ($1) and its runner, whose name is $2 and the role's OID, as the
-- service sees them.
select r.oid,
       runner.oid is not null,
       coalesce(runner.rolcanlogin
           and not (runner.rolsuper or runner.rolcreaterole or runner.rolcreatedb
                    or runner.rolreplication or runner.rolbypassrls)
           and array(select distinct m.roleid from pg_auth_members m where m.member = runner.oid) = array[r.oid], false),
       service.rolsuper
           or service.rolcreaterole
              and not r.rolsuper
              and (current_setting('server_version_num')::integer < 160000
                   or pg_has_role(service.oid, r.oid, 'MEMBER WITH ADMIN OPTION')),
       r.rolsuper,
       current_setting('server_version_num')::integer,
       (select system_identifier::text from pg_control_system())
  from pg_roles r
  join pg_roles service on service.rolname = session_user
  left join pg_roles runner on runner.rolname = $2 || r.oid
 where r.rolname = $1
