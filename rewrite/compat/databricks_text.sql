-- For rwproxy.dialect = 'databricks': dates, texts and arrays.

-- A date and an interval of days or more are a date.

create or replace function rwproxy_compat.databricks_plus(value date, duration interval) returns date
    language sql immutable parallel safe
    return (value + duration)::date;

create or replace function rwproxy_compat.databricks_plus(value timestamp, duration interval) returns timestamp
    language sql immutable parallel safe
    return value + duration;

create or replace function rwproxy_compat.databricks_plus(value timestamptz, duration interval) returns timestamptz
    language sql stable parallel safe
    return value + duration;

create or replace function rwproxy_compat.databricks_plus(value interval, duration interval) returns interval
    language sql immutable parallel safe
    return value + duration;

create or replace function rwproxy_compat.databricks_minus(value date, duration interval) returns date
    language sql immutable parallel safe
    return (value - duration)::date;

create or replace function rwproxy_compat.databricks_minus(value timestamp, duration interval) returns timestamp
    language sql immutable parallel safe
    return value - duration;

create or replace function rwproxy_compat.databricks_minus(value timestamptz, duration interval) returns timestamptz
    language sql stable parallel safe
    return value - duration;

create or replace function rwproxy_compat.databricks_minus(value interval, duration interval) returns interval
    language sql immutable parallel safe
    return value - duration;

create or replace function rwproxy_compat.databricks_plus(duration interval, value date) returns date
    language sql immutable parallel safe
    return (value + duration)::date;

create or replace function rwproxy_compat.databricks_plus(duration interval, value timestamp) returns timestamp
    language sql immutable parallel safe
    return value + duration;

create or replace function rwproxy_compat.databricks_plus(duration interval, value timestamptz) returns timestamptz
    language sql stable parallel safe
    return value + duration;

-- date_trunc of a date is a timestamp; an unknown unit gives NULL.

create or replace function rwproxy_compat.databricks_date_trunc(unit text, value timestamptz) returns timestamptz
    language sql stable parallel safe
    return pg_catalog.date_trunc(
        case pg_catalog.upper(unit)
            when 'YEAR' then 'year' when 'YYYY' then 'year' when 'YY' then 'year'
            when 'QUARTER' then 'quarter'
            when 'MONTH' then 'month' when 'MM' then 'month' when 'MON' then 'month'
            when 'WEEK' then 'week'
            when 'DAY' then 'day' when 'DD' then 'day'
            when 'HOUR' then 'hour' when 'MINUTE' then 'minute' when 'SECOND' then 'second'
            when 'MILLISECOND' then 'milliseconds' when 'MICROSECOND' then 'microseconds'
        end, value);

create or replace function rwproxy_compat.databricks_date_trunc(unit text, value timestamp) returns timestamp
    language sql immutable parallel safe
    return pg_catalog.date_trunc(
        case pg_catalog.upper(unit)
            when 'YEAR' then 'year' when 'YYYY' then 'year' when 'YY' then 'year'
            when 'QUARTER' then 'quarter'
            when 'MONTH' then 'month' when 'MM' then 'month' when 'MON' then 'month'
            when 'WEEK' then 'week'
            when 'DAY' then 'day' when 'DD' then 'day'
            when 'HOUR' then 'hour' when 'MINUTE' then 'minute' when 'SECOND' then 'second'
            when 'MILLISECOND' then 'milliseconds' when 'MICROSECOND' then 'microseconds'
        end, value);

create or replace function rwproxy_compat.databricks_date_trunc(unit text, value date) returns timestamptz
    language sql stable parallel safe
    return pg_catalog.date_trunc(
        case pg_catalog.upper(unit)
            when 'YEAR' then 'year' when 'YYYY' then 'year' when 'YY' then 'year'
            when 'QUARTER' then 'quarter'
            when 'MONTH' then 'month' when 'MM' then 'month' when 'MON' then 'month'
            when 'WEEK' then 'week'
            when 'DAY' then 'day' when 'DD' then 'day'
            when 'HOUR' then 'hour' when 'MINUTE' then 'minute' when 'SECOND' then 'second'
            when 'MILLISECOND' then 'milliseconds' when 'MICROSECOND' then 'microseconds'
        end, value::timestamptz);

-- A number of characters that is not positive gives an empty text.

create or replace function rwproxy_compat.databricks_left(value text, number_of_characters integer) returns text
    language sql immutable parallel safe
    return pg_catalog.left(value, greatest(number_of_characters, 0));

create or replace function rwproxy_compat.databricks_right(value text, number_of_characters integer) returns text
    language sql immutable parallel safe
    return pg_catalog.right(value, greatest(number_of_characters, 0));

-- Every match is replaced. The pattern and the replacement are PostgreSQL's here.

create or replace function rwproxy_compat.databricks_regexp_replace(value text, pattern text, replacement text) returns text
    language sql immutable parallel safe
    return pg_catalog.regexp_replace(value, pattern, replacement, 'g');
