-- Strings.

create or replace function rwproxy_compat.uuid() returns text
    language sql volatile parallel safe
    return pg_catalog.gen_random_uuid()::text;

create or replace function rwproxy_compat.len(value text) returns integer
    language sql immutable parallel safe
    return pg_catalog.length(value);

create or replace function rwproxy_compat.instr(value text, part text) returns integer
    language sql immutable parallel safe
    return pg_catalog.strpos(value, part);

create or replace function rwproxy_compat.locate(part text, value text) returns integer
    language sql immutable parallel safe
    return pg_catalog.strpos(value, part);

create or replace function rwproxy_compat.charindex(part text, value text) returns integer
    language sql immutable parallel safe
    return pg_catalog.strpos(value, part);
