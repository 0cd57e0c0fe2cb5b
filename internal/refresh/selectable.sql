-- The flows of the database as the session's role sees them, with what they
-- read, and whether the role may refresh them.
select f.flow_name,
       f.target_schema,
       f.target_table,
       pg_catalog.to_json(f.tracked_sources || f.untracked_sources),
       pg_catalog.pg_has_role(c.relowner, 'USAGE')
           or pg_catalog.has_table_privilege(c.oid, 'INSERT') and pg_catalog.has_table_privilege(c.oid, 'DELETE')
  from rwproxy.flows f
  join pg_catalog.pg_namespace n on n.nspname = f.target_schema
  join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = f.target_table
 order by f.target_schema, f.target_table
