-- Whether view $1 reads relation $2, or a partition or parent of it, directly or
-- through other views.
with recursive
    ancestor (oid) as (
        select $2::regclass::oid
        union
        select i.inhparent from ancestor a join pg_inherits i on i.inhrelid = a.oid
    ),
    descendant (oid) as (
        select $2::regclass::oid
        union
        select i.inhrelid from descendant d join pg_inherits i on i.inhparent = d.oid
    ),
    read_by_view (oid) as (
        select $1::regclass::oid
        union
        select d.refobjid
          from read_by_view v
          join pg_rewrite r on r.ev_class = v.oid
          join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
         where d.refclassid = 'pg_class'::regclass
    )
select exists (
       select from read_by_view v
        where v.oid in (select oid from ancestor)
           or v.oid in (select oid from descendant))
