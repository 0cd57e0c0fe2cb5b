-- The columns of the partition key of relation $1, in order; NULL for an
-- expression in it. No rows for a table that is not partitioned.
select a.attname
  from pg_catalog.pg_partitioned_table p
 cross join lateral unnest(p.partattrs::pg_catalog.int2[]) with ordinality as key (attnum, place)
  left join pg_catalog.pg_attribute a on a.attrelid = p.partrelid and a.attnum = key.attnum and key.attnum > 0
 where p.partrelid = $1::pg_catalog.oid
 order by key.place
