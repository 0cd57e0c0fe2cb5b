-- The columns of relations $1: relation, number, name, base type (domains
-- resolved), that type's quoted, qualified name, whether it is an enumeration
-- that everybody can name, the quoted, qualified collation, whether that
-- collation is deterministic, whether the column is generated, and whether it
-- belongs to the narrowest unique index of one or two columns.
select a.attrelid,
       a.attnum,
       a.attname,
       base.oid,
       quote_ident(base_schema.nspname) || '.' || quote_ident(base.typname),
       base.typtype = 'e' and has_schema_privilege('public', base_schema.oid, 'usage'),
       quote_ident(collation_schema.nspname) || '.' || quote_ident(c.collname),
       coalesce(c.collisdeterministic, true),
       a.attgenerated <> '',
       a.attnum = any (unique_index.columns)
  from pg_attribute a
  join lateral (
        with recursive domain (oid, typtype, typbasetype) as (
            select t.oid, t.typtype, t.typbasetype from pg_type t where t.oid = a.atttypid
            union all
            select t.oid, t.typtype, t.typbasetype
              from domain d
              join pg_type t on t.oid = d.typbasetype
             where d.typtype = 'd')
        select d.oid from domain d where d.typtype <> 'd') resolved on true
  join pg_type base on base.oid = resolved.oid
  join pg_namespace base_schema on base_schema.oid = base.typnamespace
  left join pg_collation c on c.oid = a.attcollation
  left join pg_namespace collation_schema on collation_schema.oid = c.collnamespace
  left join lateral (
        select i.indkey::smallint[] as columns
          from pg_index i
         where i.indrelid = a.attrelid
           and i.indisunique
           and i.indisvalid
           and i.indpred is null
           and i.indexprs is null
           and i.indnkeyatts <= 2
         order by not i.indisprimary, i.indnkeyatts, i.indexrelid
         limit 1) unique_index on true
 where a.attrelid = any ($1::oid[])
   and a.attnum > 0
   and not a.attisdropped
 order by a.attrelid, a.attnum
