-- The columns of relation $1: name, type, the type to cast to before a
-- predicate sees the value, and what the planner of a refresh needs to know.
-- An explicit cast to character(n), character varying(n), bit(n), bit varying(n)
-- or a domain over one cuts the value; those are cast without their length.
select a.attname,
       format_type(a.atttypid, a.atttypmod),
       case when coalesce(element.oid, base.oid) in (1042, 1043, 1560, 1562)
            then 'pg_catalog.' || quote_ident(base.typname)
            else format_type(a.atttypid, a.atttypmod) end,
       a.atthasdef or a.attidentity <> '' or base.has_default,
       col_description(a.attrelid, a.attnum) is not null,
       (select quote_ident(n.nspname) || '.' || quote_ident(c.collname)
          from pg_catalog.pg_collation c
          join pg_catalog.pg_namespace n on n.oid = c.collnamespace
         where c.oid = a.attcollation),
       a.attgenerated <> '' or a.attidentity = 'a',
       case when a.attidentity = 'd'
            then format('pg_catalog.nextval(%L::pg_catalog.regclass)', pg_get_serial_sequence($1, a.attname))
            when a.attgenerated = '' and a.attidentity = ''
            then (select pg_get_expr(d.adbin, d.adrelid)
                    from pg_catalog.pg_attrdef d
                   where d.adrelid = a.attrelid and d.adnum = a.attnum) end,
       format_type(base.oid, null)
  from pg_catalog.pg_attribute a
  join lateral (
        with recursive domain (oid, typtype, typbasetype, has_default) as (
            select t.oid, t.typtype, t.typbasetype, t.typdefault is not null
              from pg_catalog.pg_type t where t.oid = a.atttypid
            union all
            select t.oid, t.typtype, t.typbasetype, d.has_default or t.typdefault is not null
              from domain d
              join pg_catalog.pg_type t on t.oid = d.typbasetype
             where d.typtype = 'd')
        select t.oid, t.typname, t.typelem, t.typcategory, d.has_default
          from domain d
          join pg_catalog.pg_type t on t.oid = d.oid
         where d.typtype <> 'd') base on true
  left join pg_catalog.pg_type element on element.oid = base.typelem and base.typcategory = 'A'
 where a.attrelid = $1::pg_catalog.regclass
   and a.attnum > 0
   and not a.attisdropped
 order by a.attnum
