-- The constraints of table $1 as CREATE TABLE and ADD CONSTRAINT take them, and
-- whether they have to wait for one of the columns $2, or hold rows that break
-- them. NOT NULL is a property of its column.
select pg_catalog.format('CONSTRAINT %I %s', c.conname, pg_catalog.pg_get_constraintdef(c.oid)),
       not c.convalidated
       or exists (select
                    from pg_catalog.pg_attribute a
                   where a.attrelid = c.conrelid
                     and a.attnum = any (c.conkey)
                     and a.attname = any ($2::pg_catalog.text[]))
  from pg_catalog.pg_constraint c
 where c.conrelid = $1::pg_catalog.oid
   and c.contype in ('c', 'p', 'u', 'f', 'x')
 order by c.contype <> 'p', c.conname
