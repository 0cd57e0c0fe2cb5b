-- Seconds since 1970-01-01 00:00:00 UTC.

create or replace function rwproxy_compat.unix_timestamp(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value))::bigint;

create or replace function rwproxy_compat.to_unix_timestamp(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value))::bigint;

create or replace function rwproxy_compat.unix_timestamp() returns bigint
    language sql stable parallel safe
    return pg_catalog.floor(extract(epoch from pg_catalog.now()))::bigint;

create or replace function rwproxy_compat.unix_seconds(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value))::bigint;

create or replace function rwproxy_compat.unix_millis(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value) * 1000)::bigint;

create or replace function rwproxy_compat.unix_micros(value timestamptz) returns bigint
    language sql immutable parallel safe
    return (extract(epoch from value) * 1000000)::bigint;

create or replace function rwproxy_compat.unix_date(value date) returns integer
    language sql immutable parallel safe
    return value - date '1970-01-01';

create or replace function rwproxy_compat.date_from_unix_date(days integer) returns date
    language sql immutable parallel safe
    return date '1970-01-01' + days;

create or replace function rwproxy_compat.from_unixtime(seconds bigint) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(pg_catalog.to_timestamp(seconds), 'YYYY-MM-DD HH24:MI:SS');

create or replace function rwproxy_compat.timestamp_seconds(seconds double precision) returns timestamptz
    language sql immutable parallel safe
    return pg_catalog.to_timestamp(seconds);

create or replace function rwproxy_compat.timestamp_millis(milliseconds bigint) returns timestamptz
    language sql immutable parallel safe
    return pg_catalog.to_timestamp(milliseconds / 1000.0);

create or replace function rwproxy_compat.timestamp_micros(microseconds bigint) returns timestamptz
    language sql immutable parallel safe
    return pg_catalog.to_timestamp(microseconds / 1000000.0);
