-- Dates and text. The formats are PostgreSQL's here: the translator writes a
-- constant format of Databricks' so, and refuses any other.

create or replace function rwproxy_compat.date_format(value date, format text) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(value, format);

create or replace function rwproxy_compat.date_format(value timestamp, format text) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(value, format);

create or replace function rwproxy_compat.date_format(value timestamptz, format text) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(value, format);

create or replace function rwproxy_compat.from_unixtime(seconds bigint, format text) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(pg_catalog.to_timestamp(seconds), format);

create or replace function rwproxy_compat.unix_timestamp(value text, format text) returns bigint
    language sql stable parallel safe
    return pg_catalog.floor(extract(epoch from pg_catalog.to_timestamp(value, format)))::bigint;

create or replace function rwproxy_compat.to_unix_timestamp(value text, format text) returns bigint
    language sql stable parallel safe
    return pg_catalog.floor(extract(epoch from pg_catalog.to_timestamp(value, format)))::bigint;

-- A text that begins with a year, and a month and a day if it has them.

create or replace function rwproxy_compat.to_date(value text) returns date
    language sql stable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[0-9]{4}(-[0-9]{1,2}(-[0-9]{1,2}([ T].*)?)?)?[ \t\n\r]*$' then
            pg_catalog.make_date(
                (pg_catalog.regexp_match(value, '[0-9]{4}'))[1]::integer,
                coalesce((pg_catalog.regexp_match(value, '^[^-]*-([0-9]{1,2})'))[1]::integer, 1),
                coalesce((pg_catalog.regexp_match(value, '^[^-]*-[0-9]{1,2}-([0-9]{1,2})'))[1]::integer, 1))
        else ('not a date: ' || value)::date
    end;

create or replace function rwproxy_compat.to_date(value date) returns date
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.to_date(value timestamp) returns date
    language sql immutable parallel safe
    return value::date;

create or replace function rwproxy_compat.to_date(value timestamptz) returns date
    language sql stable parallel safe
    return value::date;
