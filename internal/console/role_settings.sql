-- The settings with which a role ($1) logs in to the current database, of those
-- that decide what a text means. One for the role there comes before one for the
-- role, that before one for the database.
select s.name,
       coalesce(
           (select pg_catalog.substr(c.setting, pg_catalog.strpos(c.setting, '=') + 1)
              from pg_catalog.pg_db_role_setting g
             cross join lateral pg_catalog.unnest(g.setconfig) as c (setting)
             where g.setrole in (0, r.oid)
               and g.setdatabase in (0, d.oid)
               and pg_catalog.lower(pg_catalog.split_part(c.setting, '=', 1)) = pg_catalog.lower(s.name)
             order by g.setrole = 0, g.setdatabase = 0
             limit 1),
           s.boot_val) as value
  from pg_catalog.pg_settings s
  join pg_catalog.pg_roles r on r.rolname = $1
  join pg_catalog.pg_database d on d.datname = pg_catalog.current_database()
 where s.name = 'search_path'
    or s.name in ('TimeZone', 'DateStyle', 'IntervalStyle', 'standard_conforming_strings')
   and exists (
       select from pg_catalog.pg_db_role_setting g
        cross join lateral pg_catalog.unnest(g.setconfig) as c (setting)
        where g.setrole = r.oid
          and g.setdatabase in (0, d.oid)
          and pg_catalog.lower(pg_catalog.split_part(c.setting, '=', 1)) = pg_catalog.lower(s.name))
