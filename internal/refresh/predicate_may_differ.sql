-- Whether a function of the names $1, or of an operator of the names $2, may
-- return something else when it is called again in a transaction: a volatile one,
-- or one of the user's that may read what has been written meanwhile.
select exists (
    select
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace
     where (p.proname = any ($1::text[])
            or p.oid in (select o.oprcode from pg_catalog.pg_operator o where o.oprname = any ($2::text[])))
       and (p.provolatile = 'v'
            or p.provolatile = 's' and p.oid >= 16384 and n.nspname <> 'rwproxy_compat'))
