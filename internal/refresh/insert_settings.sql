-- The settings an INSERT depends on. $1 to $3 are those that PostgreSQL does
-- not know: empty unless the session has set them.
select pg_catalog.current_setting('standard_conforming_strings'),
       pg_catalog.current_setting('search_path'),
       pg_catalog.current_setting('default_transaction_isolation'),
       coalesce(pg_catalog.current_setting($1, true), ''),
       coalesce(pg_catalog.current_setting($2, true), ''),
       coalesce(pg_catalog.current_setting($3, true), '')
