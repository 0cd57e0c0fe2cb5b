-- The parts of a name that SQL writes so. $1: the name.
select pg_catalog.array_to_json(pg_catalog.parse_ident($1))
