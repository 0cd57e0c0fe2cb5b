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

-- A position counts from 1, a negative one from the end, and 0 is as 1.

create or replace function rwproxy_compat.mid(value text, start_position integer, number_of_characters integer) returns text
    language sql immutable parallel safe
    return pg_catalog.substring(value,
        case when start_position > 0 then start_position when start_position = 0 then 1 else pg_catalog.length(value) + start_position + 1 end,
        greatest(number_of_characters, 0));

create or replace function rwproxy_compat.mid(value text, start_position integer) returns text
    language sql immutable parallel safe
    return pg_catalog.substring(value,
        case when start_position > 0 then start_position when start_position = 0 then 1 else pg_catalog.length(value) + start_position + 1 end);

create or replace function rwproxy_compat.current_timezone() returns text
    language sql stable parallel safe
    return pg_catalog.current_setting('TimeZone');
