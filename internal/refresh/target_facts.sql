-- What may come between table $1 and the rows of its window. pg_trigger.tgtype
-- is a mask: 1 row, 2 before, 4 insert, 8 delete; pg_rewrite.ev_type is 3 for
-- INSERT and 4 for DELETE.
with family (oid) as (
    select $1::oid
    union
    select p.relid::oid from pg_partition_tree($1::oid::regclass) p
    union
    select i.inhrelid from pg_inherits i where i.inhparent = $1::oid
),
enabled (tgtype) as (
    select t.tgtype
      from pg_trigger t
     where t.tgrelid in (select f.oid from family f)
       and not t.tgisinternal
       and t.tgenabled <> 'D'
)
select exists (select from enabled e where e.tgtype & 7 = 7),
       exists (select from enabled e where e.tgtype & 11 = 11),
       exists (select from pg_rewrite r where r.ev_class = $1::oid and r.ev_type in ('3', '4') and r.ev_enabled <> 'D'),
       row_security_active($1::oid),
       not exists (
           select
             from pg_attribute a
             join pg_type t on t.oid = a.atttypid
             left join pg_type e on e.oid = t.typelem and t.typcategory = 'A'
            where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
              and (t.typsend = 0 or e.typsend = 0)),
       exists (
           select
             from pg_depend d
             join pg_rewrite r on r.oid = d.objid
             join pg_class v on v.oid = r.ev_class
            where d.classid = 'pg_rewrite'::regclass
              and d.refclassid = 'pg_class'::regclass
              and d.refobjid in (select f.oid from family f)
              and v.relnamespace = to_regnamespace('rwproxy_flows'))
