select r.rolpassword
from pg_catalog.pg_authid r
where r.rolname operator(pg_catalog.=) $1::pg_catalog.name
