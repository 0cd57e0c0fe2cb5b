-- The functions $1, those of the operators $2, the input functions of the types
-- $3, and what the aggregates among them consist of: the function, whether
-- PostgreSQL itself brings it, its schema and name, the volatility, the number
-- of arguments, whether it is the user's and written in SQL, whether it returns
-- a set, whether it is known to read tables, and the type of its first argument.
with called (oid) as (
    select f.oid from unnest($1::oid[]) as f (oid)
    union
    select o.oprcode from pg_operator o where o.oid = any ($2::oid[])
    union
    select t.typinput from pg_type t where t.oid = any ($3::oid[])
), part (oid) as (
    select c.oid from called c
    union
    select component.oid
      from called c
      join pg_aggregate a on a.aggfnoid = c.oid
      cross join lateral unnest(array[a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn,
                                      a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn]::oid[]) as component (oid)
     where component.oid <> 0
)
select p.oid,
       p.oid < 16384,
       n.nspname,
       p.proname,
       p.provolatile,
       p.pronargs,
       l.lanname = 'sql' and p.oid >= 16384,
       p.proretset,
       exists (select
                 from pg_depend d
                where d.classid = 'pg_proc'::regclass
                  and d.objid = p.oid
                  and d.refclassid = 'pg_class'::regclass),
       p.proargtypes[0]
  from part
  join pg_proc p on p.oid = part.oid
  join pg_namespace n on n.oid = p.pronamespace
  join pg_language l on l.oid = p.prolang
 order by p.proname, p.oid
