-- The relations $1 with all partitions and children below them: for each pair
-- the relation above, the one below, and the latter's schema and name.
with recursive member (root, oid) as (
    select given.oid, given.oid from unnest($1::oid[]) as given (oid)
    union
    select m.root, i.inhrelid
      from member m
      join pg_inherits i on i.inhparent = m.oid
)
select m.root, m.oid, n.nspname, c.relname
  from member m
  join pg_class c on c.oid = m.oid
  join pg_namespace n on n.oid = c.relnamespace
 order by m.root, m.oid
