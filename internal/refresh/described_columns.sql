-- The columns of table $1 as DESCRIBE and SHOW CREATE TABLE show them.
select a.attname,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       pg_catalog.col_description(a.attrelid, a.attnum),
       a.attnotnull,
       case when a.attgenerated = '' then pg_catalog.pg_get_expr(d.adbin, d.adrelid) end,
       case when a.attgenerated <> ''
            then pg_catalog.format('GENERATED ALWAYS AS (%s) %s', pg_catalog.pg_get_expr(d.adbin, d.adrelid),
                                   case a.attgenerated when 'v' then 'VIRTUAL' else 'STORED' end) end,
       (select pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.collname)
          from pg_catalog.pg_collation c
          join pg_catalog.pg_namespace n on n.oid = c.collnamespace
          join pg_catalog.pg_type own on own.oid = a.atttypid
         where c.oid = a.attcollation
           and c.oid <> own.typcollation)
  from pg_catalog.pg_attribute a
  left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.attrelid = $1::pg_catalog.oid
   and a.attnum > 0
   and not a.attisdropped
 order by a.attnum
