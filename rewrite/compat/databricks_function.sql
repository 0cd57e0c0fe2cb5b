-- For rwproxy.dialect = 'databricks': functions that PostgreSQL has under the same
-- name with another meaning.

-- Outside of its domain a function is NaN, not an error.

create or replace function rwproxy_compat.databricks_acos(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value < -1 or value > 1 then 'NaN' else pg_catalog.acos(value) end;

create or replace function rwproxy_compat.databricks_asin(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value < -1 or value > 1 then 'NaN' else pg_catalog.asin(value) end;

create or replace function rwproxy_compat.databricks_acosh(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value < 1 then 'NaN' else pg_catalog.acosh(value) end;

create or replace function rwproxy_compat.databricks_atanh(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value < -1 or value > 1 then 'NaN' else pg_catalog.atanh(value) end;

-- The sign of any number is a double.

create or replace function rwproxy_compat.databricks_sign(value double precision) returns double precision
    language sql immutable parallel safe
    return pg_catalog.sign(value);

create or replace function rwproxy_compat.databricks_sign(value numeric) returns double precision
    language sql immutable parallel safe
    return pg_catalog.sign(value)::double precision;

create or replace function rwproxy_compat.databricks_factorial(value integer) returns bigint
    language sql immutable parallel safe
    return case when value between 0 and 20 then pg_catalog.factorial(value::bigint)::bigint end;

-- The lowest eight bits of the number are the character's code.

create or replace function rwproxy_compat.databricks_chr(value bigint) returns text
    language sql immutable parallel safe
    return case when value < 0 then '' else pg_catalog.chr((value & 255)::integer) end;

-- A negative length is that of the replacement.

create or replace function rwproxy_compat.databricks_overlay(value text, replacement text, start_position integer) returns text
    language sql immutable parallel safe
    return pg_catalog."overlay"(value, replacement, start_position);

create or replace function rwproxy_compat.databricks_overlay(value text, replacement text, start_position integer, number_of_characters integer) returns text
    language sql immutable parallel safe
    return pg_catalog."overlay"(value, replacement, start_position,
        case when number_of_characters < 0 then pg_catalog.length(replacement) else number_of_characters end);

-- What a pattern matches, NULL without a match or if it is empty. The pattern is
-- PostgreSQL's here.

create or replace function rwproxy_compat.databricks_regexp_substr(value text, pattern text) returns text
    language sql immutable parallel safe
    return nullif((pg_catalog.regexp_match(value, pg_catalog.regexp_replace(pattern, '^([(][?]i[)])?(.*)$', '\1(\2)')))[1], '');

-- Arrays. Without the array, and without the element where it is looked for, the
-- result is NULL. A place counts from 1 whatever the array's bounds are.

create or replace function rwproxy_compat.databricks_size(value anyarray) returns integer
    language sql immutable parallel safe
    as $$ select case when $1 is not null then coalesce(pg_catalog.array_length($1, 1), 0) end $$;

create or replace function rwproxy_compat.databricks_array_position(value anycompatiblearray, element anycompatible) returns bigint
    language sql immutable parallel safe
    as $$
        select case when $1 is not null and $2 is not null then
            coalesce(pg_catalog.array_position($1, $2) operator(pg_catalog.-) pg_catalog.array_lower($1, 1) operator(pg_catalog.+) 1, 0)::bigint
        end
    $$;

create or replace function rwproxy_compat.databricks_array_remove(value anycompatiblearray, element anycompatible) returns anycompatiblearray
    language sql immutable parallel safe
    as $$ select case when $2 is not null then pg_catalog.array_remove($1, $2) end $$;

create or replace function rwproxy_compat.databricks_array_append(value anycompatiblearray, element anycompatible) returns anycompatiblearray
    language sql immutable parallel safe
    as $$ select case when $1 is not null then pg_catalog.array_append($1, $2) end $$;

create or replace function rwproxy_compat.databricks_array_prepend(value anycompatiblearray, element anycompatible) returns anycompatiblearray
    language sql immutable parallel safe
    as $$ select case when $1 is not null then pg_catalog.array_prepend($2, $1) end $$;

-- What EXTRACT takes a field of. An interval has none: PostgreSQL keeps hours and
-- days of one apart. A date has the hours of its midnight.

create or replace function rwproxy_compat.databricks_moment(value date) returns timestamp
    language sql immutable parallel safe
    return value::timestamp;

create or replace function rwproxy_compat.databricks_moment(value timestamp) returns timestamp
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_moment(value timestamptz) returns timestamptz
    language sql immutable parallel safe
    return value;

-- A text in a date format, read if it has exactly the shape of the format; the cast
-- of any other text fails, and shows it. The format is PostgreSQL's here, the shape
-- a regular expression.

create or replace function rwproxy_compat.databricks_parse_date(value text, format text, shape text) returns date
    language sql stable parallel safe
    return case
        when value ~ shape then pg_catalog.to_date(value, format)
        else ('not in the date format: ' || value)::date
    end;

create or replace function rwproxy_compat.databricks_parse_timestamp(value text, format text, shape text) returns timestamptz
    language sql stable parallel safe
    return case
        when value ~ shape then pg_catalog.to_timestamp(value, format)
        else ('not in the date format: ' || value)::timestamptz
    end;

create or replace function rwproxy_compat.databricks_parse_seconds(value text, format text, shape text) returns bigint
    language sql stable parallel safe
    return case
        when value ~ shape then pg_catalog.floor(extract(epoch from pg_catalog.to_timestamp(value, format)))::bigint
        else ('not in the date format: ' || value)::timestamptz::text::bigint
    end;
