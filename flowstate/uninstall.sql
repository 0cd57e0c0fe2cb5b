-- What of others would go with rwproxy's schemas: the rules of their views,
-- and the defaults, generated columns, constraints, indexes and functions that
-- call a function of rwproxy's.
with ours as (
         select n.oid from pg_namespace n where n.nspname = any ($1)
     ),
     brought (classid, objid) as (
         select 'pg_class'::regclass::oid, c.oid from pg_class c where c.relnamespace in (table ours)
          union all
         select 'pg_proc'::regclass::oid, p.oid from pg_proc p where p.pronamespace in (table ours)
          union all
         select 'pg_type'::regclass::oid, t.oid from pg_type t where t.typnamespace in (table ours)
     ),
     dependent (classid, objid, objsubid, namespace) as (
         select d.classid,
                d.objid,
                d.objsubid,
                coalesce(
                    case d.classid
                        when 'pg_class'::regclass
                            then (select c.relnamespace from pg_class c where c.oid = d.objid)
                        when 'pg_proc'::regclass
                            then (select p.pronamespace from pg_proc p where p.oid = d.objid)
                    end,
                    (
                    select c.relnamespace
                      from pg_class c
                     where c.oid = coalesce(
                               (select r.ev_class from pg_rewrite r
                                 where d.classid = 'pg_rewrite'::regclass and r.oid = d.objid),
                               (select a.adrelid from pg_attrdef a
                                 where d.classid = 'pg_attrdef'::regclass and a.oid = d.objid),
                               (select k.conrelid from pg_constraint k
                                 where d.classid = 'pg_constraint'::regclass and k.oid = d.objid))
                    ))
           from brought b
           join pg_depend d on d.refclassid = b.classid and d.refobjid = b.objid
          where d.deptype in ('n', 'a')
     )
select pg_describe_object(d.classid, d.objid, d.objsubid)
  from dependent d
 where d.namespace is not null
   and d.namespace not in (table ours)
 order by 1
 limit 10
