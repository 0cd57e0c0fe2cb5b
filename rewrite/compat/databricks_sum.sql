-- For rwproxy.dialect = 'databricks': + and -. There is none for two dates, whose
-- difference is an interval to Databricks, and none for a date and an interval of
-- any length, which may be a date or a timestamp.

create or replace function rwproxy_compat.databricks_add(augend smallint, addend smallint) returns smallint
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend integer, addend integer) returns integer
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend bigint, addend bigint) returns bigint
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend numeric, addend numeric) returns numeric
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend real, addend real) returns real
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend double precision, addend double precision) returns double precision
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend date, addend integer) returns date
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend timestamp, addend interval) returns timestamp
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend timestamptz, addend interval) returns timestamptz
    language sql stable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend interval, addend interval) returns interval
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend integer, addend date) returns date
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend interval, addend timestamp) returns timestamp
    language sql immutable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_add(augend interval, addend timestamptz) returns timestamptz
    language sql stable parallel safe
    return augend + addend;

create or replace function rwproxy_compat.databricks_subtract(minuend smallint, subtrahend smallint) returns smallint
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend integer, subtrahend integer) returns integer
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend bigint, subtrahend bigint) returns bigint
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend numeric, subtrahend numeric) returns numeric
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend real, subtrahend real) returns real
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend double precision, subtrahend double precision) returns double precision
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend date, subtrahend integer) returns date
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend timestamp, subtrahend interval) returns timestamp
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend timestamptz, subtrahend interval) returns timestamptz
    language sql stable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend interval, subtrahend interval) returns interval
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend timestamp, subtrahend timestamp) returns interval
    language sql immutable parallel safe
    return minuend - subtrahend;

create or replace function rwproxy_compat.databricks_subtract(minuend timestamptz, subtrahend timestamptz) returns interval
    language sql immutable parallel safe
    return minuend - subtrahend;

-- Two dates would else become two timestamps, a date with an interval one.

create or replace procedure rwproxy_compat.databricks_subtract(minuend date, subtrahend date)
    language sql as '';

create or replace procedure rwproxy_compat.databricks_subtract(minuend date, subtrahend interval)
    language sql as '';

create or replace procedure rwproxy_compat.databricks_add(augend date, addend interval)
    language sql as '';

create or replace procedure rwproxy_compat.databricks_add(augend interval, addend date)
    language sql as '';
