-- What LOCK TABLE may lock of the tables and views that this transaction holds
-- locks on. Relations of initdb have OIDs below 16384. Locking a view locks
-- what it reads, with its owner's rights.
select pg_catalog.string_agg(distinct pg_catalog.format('%I.%I', n.nspname, c.relname), ', ')
  from pg_catalog.pg_locks l
  join pg_catalog.pg_class c on c.oid = l.relation
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where l.pid = pg_catalog.pg_backend_pid()
   and l.locktype = 'relation'
   and l.database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
   and c.oid >= 16384
   and c.relkind in ('r', 'p', 'v')
   and pg_catalog.has_table_privilege(c.oid, 'select')
