-- For rwproxy.dialect = 'databricks': CAST. A text is read in Databricks' notation,
-- which is narrower than PostgreSQL's; the cast of any other text fails, and shows
-- it. A fraction is cut off.

create or replace function rwproxy_compat.databricks_to_smallint(value smallint) returns smallint
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_smallint(value integer) returns smallint
    language sql immutable parallel safe
    return value::smallint;

create or replace function rwproxy_compat.databricks_to_smallint(value bigint) returns smallint
    language sql immutable parallel safe
    return value::smallint;

create or replace function rwproxy_compat.databricks_to_smallint(value double precision) returns smallint
    language sql immutable parallel safe
    return pg_catalog.trunc(value)::smallint;

create or replace function rwproxy_compat.databricks_to_smallint(value numeric) returns smallint
    language sql immutable parallel safe
    return pg_catalog.trunc(value)::smallint;

create or replace function rwproxy_compat.databricks_to_smallint(value boolean) returns smallint
    language sql immutable parallel safe
    return value::integer::smallint;

create or replace function rwproxy_compat.databricks_to_smallint(value text) returns smallint
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?[0-9]+[ \t\n\r]*$' then value::smallint
        else ('not a whole number: ' || value)::smallint
    end;

create or replace function rwproxy_compat.databricks_to_integer(value smallint) returns integer
    language sql immutable parallel safe
    return value::integer;

create or replace function rwproxy_compat.databricks_to_integer(value integer) returns integer
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_integer(value bigint) returns integer
    language sql immutable parallel safe
    return value::integer;

create or replace function rwproxy_compat.databricks_to_integer(value double precision) returns integer
    language sql immutable parallel safe
    return pg_catalog.trunc(value)::integer;

create or replace function rwproxy_compat.databricks_to_integer(value numeric) returns integer
    language sql immutable parallel safe
    return pg_catalog.trunc(value)::integer;

create or replace function rwproxy_compat.databricks_to_integer(value boolean) returns integer
    language sql immutable parallel safe
    return value::integer::integer;

create or replace function rwproxy_compat.databricks_to_integer(value text) returns integer
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?[0-9]+[ \t\n\r]*$' then value::integer
        else ('not a whole number: ' || value)::integer
    end;

create or replace function rwproxy_compat.databricks_to_bigint(value smallint) returns bigint
    language sql immutable parallel safe
    return value::bigint;

create or replace function rwproxy_compat.databricks_to_bigint(value integer) returns bigint
    language sql immutable parallel safe
    return value::bigint;

create or replace function rwproxy_compat.databricks_to_bigint(value bigint) returns bigint
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_bigint(value double precision) returns bigint
    language sql immutable parallel safe
    return pg_catalog.trunc(value)::bigint;

create or replace function rwproxy_compat.databricks_to_bigint(value numeric) returns bigint
    language sql immutable parallel safe
    return pg_catalog.trunc(value)::bigint;

create or replace function rwproxy_compat.databricks_to_bigint(value boolean) returns bigint
    language sql immutable parallel safe
    return value::integer::bigint;

create or replace function rwproxy_compat.databricks_to_bigint(value text) returns bigint
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?[0-9]+[ \t\n\r]*$' then value::bigint
        else ('not a whole number: ' || value)::bigint
    end;

create or replace function rwproxy_compat.databricks_to_bigint(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value))::bigint;

create or replace function rwproxy_compat.databricks_to_decimal(value smallint) returns numeric
    language sql immutable parallel safe
    return value::numeric;

create or replace function rwproxy_compat.databricks_to_decimal(value integer) returns numeric
    language sql immutable parallel safe
    return value::numeric;

create or replace function rwproxy_compat.databricks_to_decimal(value bigint) returns numeric
    language sql immutable parallel safe
    return value::numeric;

create or replace function rwproxy_compat.databricks_to_decimal(value numeric) returns numeric
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_decimal(value boolean) returns numeric
    language sql immutable parallel safe
    return value::integer::numeric;

create or replace function rwproxy_compat.databricks_to_decimal(value double precision) returns numeric
    language sql immutable parallel safe
    return case
        when value in ('NaN', 'Infinity', '-Infinity') then ('not a DECIMAL: ' || value::text)::numeric
        else value::text::numeric
    end;

create or replace function rwproxy_compat.databricks_to_decimal(value text) returns numeric
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?[ \t\n\r]*$' then value::numeric
        else ('not a DECIMAL: ' || value)::numeric
    end;

create or replace function rwproxy_compat.databricks_to_double(value smallint) returns double precision
    language sql immutable parallel safe
    return value::double precision;

create or replace function rwproxy_compat.databricks_to_double(value integer) returns double precision
    language sql immutable parallel safe
    return value::double precision;

create or replace function rwproxy_compat.databricks_to_double(value bigint) returns double precision
    language sql immutable parallel safe
    return value::double precision;

create or replace function rwproxy_compat.databricks_to_double(value numeric) returns double precision
    language sql immutable parallel safe
    return value::double precision;

create or replace function rwproxy_compat.databricks_to_double(value double precision) returns double precision
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_double(value boolean) returns double precision
    language sql immutable parallel safe
    return value::integer::double precision;

create or replace function rwproxy_compat.databricks_to_double(value text) returns double precision
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?[ \t\n\r]*$' or value in ('NaN', 'Infinity', '-Infinity') then value::double precision
        else ('not a number: ' || value)::double precision
    end;

create or replace function rwproxy_compat.databricks_to_float(value smallint) returns real
    language sql immutable parallel safe
    return value::real;

create or replace function rwproxy_compat.databricks_to_float(value integer) returns real
    language sql immutable parallel safe
    return value::real;

create or replace function rwproxy_compat.databricks_to_float(value bigint) returns real
    language sql immutable parallel safe
    return value::real;

create or replace function rwproxy_compat.databricks_to_float(value numeric) returns real
    language sql immutable parallel safe
    return value::real;

create or replace function rwproxy_compat.databricks_to_float(value double precision) returns real
    language sql immutable parallel safe
    return value::real;

create or replace function rwproxy_compat.databricks_to_float(value boolean) returns real
    language sql immutable parallel safe
    return value::integer::real;

create or replace function rwproxy_compat.databricks_to_float(value text) returns real
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?[ \t\n\r]*$' or value in ('NaN', 'Infinity', '-Infinity') then value::real
        else ('not a number: ' || value)::real
    end;

create or replace function rwproxy_compat.databricks_to_boolean(value boolean) returns boolean
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_boolean(value smallint) returns boolean
    language sql immutable parallel safe
    return value <> 0;

create or replace function rwproxy_compat.databricks_to_boolean(value integer) returns boolean
    language sql immutable parallel safe
    return value <> 0;

create or replace function rwproxy_compat.databricks_to_boolean(value bigint) returns boolean
    language sql immutable parallel safe
    return value <> 0;

create or replace function rwproxy_compat.databricks_to_boolean(value numeric) returns boolean
    language sql immutable parallel safe
    return value <> 0;

create or replace function rwproxy_compat.databricks_to_boolean(value double precision) returns boolean
    language sql immutable parallel safe
    return value <> 0;

create or replace function rwproxy_compat.databricks_to_boolean(value text) returns boolean
    language sql immutable parallel safe
    return case pg_catalog.lower(pg_catalog.btrim(value, e' \t\n\r'))
        when 't' then true when 'true' then true when 'y' then true when 'yes' then true when '1' then true
        when 'f' then false when 'false' then false when 'n' then false when 'no' then false when '0' then false
        else ('not a BOOLEAN: ' || value)::boolean
    end;

create or replace function rwproxy_compat.databricks_to_timestamp(value text) returns timestamptz
    language sql stable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T]([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9]([.][0-9]{1,6})?)?(Z|[+-][0-9]{1,2}:[0-9]{2})?)?[ \t\n\r]*$' then value::timestamptz
        else ('not a TIMESTAMP: ' || value)::timestamptz
    end;

create or replace function rwproxy_compat.databricks_to_timestamp(value date) returns timestamptz
    language sql stable parallel safe
    return value::timestamptz;

create or replace function rwproxy_compat.databricks_to_timestamp(value timestamp) returns timestamptz
    language sql stable parallel safe
    return value::timestamptz;

create or replace function rwproxy_compat.databricks_to_timestamp(value timestamptz) returns timestamptz
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_timestamp_ntz(value text) returns timestamp
    language sql stable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T]([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9]([.][0-9]{1,6})?)?)?[ \t\n\r]*$' then value::timestamp
        else ('not a TIMESTAMP: ' || value)::timestamp
    end;

create or replace function rwproxy_compat.databricks_to_timestamp_ntz(value date) returns timestamp
    language sql immutable parallel safe
    return value::timestamp;

create or replace function rwproxy_compat.databricks_to_timestamp_ntz(value timestamp) returns timestamp
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_timestamp_ntz(value timestamptz) returns timestamp
    language sql stable parallel safe
    return value::timestamp;

create or replace function rwproxy_compat.databricks_to_timestamp(seconds double precision) returns timestamptz
    language sql immutable parallel safe
    return pg_catalog.to_timestamp(seconds);

create or replace function rwproxy_compat.databricks_to_binary(value bytea) returns bytea
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_to_binary(value text) returns bytea
    language sql immutable parallel safe
    return pg_catalog.convert_to(value, 'UTF8');

-- A double as a text has no function: Java writes it otherwise. A decimal has none
-- either, unless the translator sees how many digits it is declared with: of two
-- decimals that come together, as in coalesce(7, 0.5), each has the digits of both.

create or replace function rwproxy_compat.databricks_string(value text) returns text
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_string(value smallint) returns text
    language sql immutable parallel safe
    return value::text;

create or replace function rwproxy_compat.databricks_string(value integer) returns text
    language sql immutable parallel safe
    return value::text;

create or replace function rwproxy_compat.databricks_string(value bigint) returns text
    language sql immutable parallel safe
    return value::text;

create or replace procedure rwproxy_compat.databricks_string(value numeric)
    language sql as '';

create or replace function rwproxy_compat.databricks_string(value uuid) returns text
    language sql immutable parallel safe
    return value::text;

create or replace function rwproxy_compat.databricks_string(value boolean) returns text
    language sql immutable parallel safe
    return value::text;

create or replace function rwproxy_compat.databricks_string(value date) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(value::timestamp, 'YYYY-MM-DD');

create or replace function rwproxy_compat.databricks_string(value timestamp) returns text
    language sql stable parallel safe
    return pg_catalog.rtrim(pg_catalog.rtrim(pg_catalog.to_char(value, 'YYYY-MM-DD HH24:MI:SS.US'), '0'), '.');

create or replace function rwproxy_compat.databricks_string(value timestamptz) returns text
    language sql stable parallel safe
    return pg_catalog.rtrim(pg_catalog.rtrim(pg_catalog.to_char(value, 'YYYY-MM-DD HH24:MI:SS.US'), '0'), '.');
