-- The relations $1 with all partitions and children below them: for each pair
-- the relation above, the one below, the latter's schema and name, and whether
-- an index, constraint, partition key or statistics object of it calls a
-- function that PostgreSQL does not bring.
with recursive member (root, oid) as (
    select given.oid, given.oid from unnest($1::oid[]) as given (oid)
    union
    select m.root, i.inhrelid
      from member m
      join pg_inherits i on i.inhparent = m.oid
)
select m.root,
       m.oid,
       n.nspname,
       c.relname,
       exists (
           select
             from pg_depend d
            where d.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)
              and (   d.classid = 'pg_class'::regclass
                      and (   d.objid = m.oid
                           or d.objid in (select i.indexrelid from pg_index i where i.indrelid = m.oid))
                   or d.classid = 'pg_constraint'::regclass
                      and d.objid in (select k.oid from pg_constraint k where k.conrelid = m.oid)
                   or d.classid = 'pg_statistic_ext'::regclass
                      and d.objid in (select e.oid from pg_statistic_ext e where e.stxrelid = m.oid)))
  from member m
  join pg_class c on c.oid = m.oid
  join pg_namespace n on n.oid = c.relnamespace
 order by m.root, m.oid
