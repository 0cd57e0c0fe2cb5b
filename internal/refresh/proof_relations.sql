-- What view $1 reads, directly and through other views, itself included:
-- relation, schema, name, kind, the rule of a view, and the names of the
-- columns that the views name as a JSON array.
with recursive read_by_view (oid) as (
    select $1::pg_catalog.regclass::oid
    union
    select d.refobjid
      from read_by_view v
      join pg_class c on c.oid = v.oid and c.relkind = 'v'
      join pg_rewrite r on r.ev_class = v.oid
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
     where d.refclassid = 'pg_class'::regclass
)
select c.oid,
       n.nspname,
       c.relname,
       c.relkind,
       (select r.ev_action::text
          from pg_rewrite r
         where r.ev_class = c.oid and r.ev_type = '1' and c.relkind = 'v'),
       (select coalesce(json_agg(distinct a.attname), '[]')
          from read_by_view v
          join pg_class reader on reader.oid = v.oid and reader.relkind = 'v'
          join pg_rewrite r on r.ev_class = v.oid
          join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
          join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
         where d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and d.refobjsubid > 0)
  from read_by_view v
  join pg_class c on c.oid = v.oid
  join pg_namespace n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p', 'f', 'm', 'v')
 order by c.oid
