-- The types with the OIDs $1 and modifiers $2: the type as format_type prints it,
-- and the one that a domain is made of, without its modifier.
with recursive given (place, oid, modifier) as (
    select place, oid::pg_catalog.oid, modifier::integer
      from rows from (unnest($1::text[]), unnest($2::text[])) with ordinality as given (oid, modifier, place)),
domain (place, oid, typtype, typbasetype) as (
    select given.place, t.oid, t.typtype, t.typbasetype
      from given
      join pg_catalog.pg_type t on t.oid = given.oid
    union all
    select domain.place, t.oid, t.typtype, t.typbasetype
      from domain
      join pg_catalog.pg_type t on t.oid = domain.typbasetype
     where domain.typtype = 'd')
select format_type(given.oid, given.modifier), format_type(domain.oid, null)
  from given
  join domain using (place)
 where domain.typtype <> 'd'
 order by given.place
