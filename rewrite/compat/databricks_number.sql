-- For rwproxy.dialect = 'databricks', where the translator calls these in place of
-- what PostgreSQL would read otherwise. The types choose among them: what has no
-- function for its types is refused, as exactly that is not to be had. Where
-- PostgreSQL would turn a type into another to find a function, a procedure takes
-- its place: no query can call it.

-- Numbers. A division of whole numbers has a fraction; one of decimals has as many
-- digits as the declared types of its operands say, which no value tells.

create or replace function rwproxy_compat.databricks_divide(dividend double precision, divisor double precision) returns double precision
    language sql immutable parallel safe
    return dividend / divisor;

create or replace procedure rwproxy_compat.databricks_divide(dividend numeric, divisor numeric)
    language sql as '';

create or replace function rwproxy_compat.databricks_double(value smallint) returns double precision
    language sql immutable parallel safe
    return value::double precision;

create or replace function rwproxy_compat.databricks_double(value integer) returns double precision
    language sql immutable parallel safe
    return value::double precision;

create or replace function rwproxy_compat.databricks_double(value bigint) returns double precision
    language sql immutable parallel safe
    return value::double precision;

create or replace function rwproxy_compat.databricks_double(value numeric) returns double precision
    language sql immutable parallel safe
    return value::double precision;

create or replace function rwproxy_compat.databricks_double(value double precision) returns double precision
    language sql immutable parallel safe
    return value;

-- A half is rounded away from zero, of the digits that the number is written with.

create or replace function rwproxy_compat.databricks_round(value double precision, digits integer) returns double precision
    language sql immutable parallel safe
    return pg_catalog.round(value::text::numeric, digits)::double precision;

create or replace function rwproxy_compat.databricks_round(value double precision) returns double precision
    language sql immutable parallel safe
    return pg_catalog.round(value::text::numeric)::double precision;

create or replace function rwproxy_compat.databricks_round(value numeric, digits integer) returns numeric
    language sql immutable parallel safe
    return pg_catalog.round(value, digits);

create or replace function rwproxy_compat.databricks_round(value numeric) returns numeric
    language sql immutable parallel safe
    return pg_catalog.round(value);

create or replace function rwproxy_compat.databricks_round(value smallint, digits integer) returns smallint
    language sql immutable parallel safe
    return pg_catalog.round(value::numeric, digits)::smallint;

create or replace function rwproxy_compat.databricks_round(value smallint) returns smallint
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_round(value integer, digits integer) returns integer
    language sql immutable parallel safe
    return pg_catalog.round(value::numeric, digits)::integer;

create or replace function rwproxy_compat.databricks_round(value integer) returns integer
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_round(value bigint, digits integer) returns bigint
    language sql immutable parallel safe
    return pg_catalog.round(value::numeric, digits)::bigint;

create or replace function rwproxy_compat.databricks_round(value bigint) returns bigint
    language sql immutable parallel safe
    return value;

create or replace function rwproxy_compat.databricks_ceil(value double precision) returns bigint
    language sql immutable parallel safe
    return pg_catalog.ceil(value)::bigint;

create or replace function rwproxy_compat.databricks_ceil(value numeric) returns numeric
    language sql immutable parallel safe
    return pg_catalog.ceil(value);

create or replace function rwproxy_compat.databricks_ceil(value smallint) returns bigint
    language sql immutable parallel safe
    return value::bigint;

create or replace function rwproxy_compat.databricks_ceil(value integer) returns bigint
    language sql immutable parallel safe
    return value::bigint;

create or replace function rwproxy_compat.databricks_ceil(value bigint) returns bigint
    language sql immutable parallel safe
    return value::bigint;

create or replace function rwproxy_compat.databricks_floor(value double precision) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(value)::bigint;

create or replace function rwproxy_compat.databricks_floor(value numeric) returns numeric
    language sql immutable parallel safe
    return pg_catalog.floor(value);

create or replace function rwproxy_compat.databricks_floor(value smallint) returns bigint
    language sql immutable parallel safe
    return value::bigint;

create or replace function rwproxy_compat.databricks_floor(value integer) returns bigint
    language sql immutable parallel safe
    return value::bigint;

create or replace function rwproxy_compat.databricks_floor(value bigint) returns bigint
    language sql immutable parallel safe
    return value::bigint;

-- A logarithm of what has none is NULL, a square root of a negative number NaN.

create or replace function rwproxy_compat.databricks_ln(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value > 0 then pg_catalog.ln(value::double precision) end;

create or replace function rwproxy_compat.databricks_ln(value numeric) returns double precision
    language sql immutable parallel safe
    return case when value > 0 then pg_catalog.ln(value::double precision) end;

create or replace function rwproxy_compat.databricks_log(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value > 0 then pg_catalog.ln(value::double precision) end;

create or replace function rwproxy_compat.databricks_log(value numeric) returns double precision
    language sql immutable parallel safe
    return case when value > 0 then pg_catalog.ln(value::double precision) end;

create or replace function rwproxy_compat.databricks_log10(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value > 0 then pg_catalog.log(value::double precision) end;

create or replace function rwproxy_compat.databricks_log10(value numeric) returns double precision
    language sql immutable parallel safe
    return case when value > 0 then pg_catalog.log(value::double precision) end;

create or replace function rwproxy_compat.databricks_log(base double precision, value double precision) returns double precision
    language sql immutable parallel safe
    return case when base > 0 and value > 0 then pg_catalog.ln(value::double precision) / pg_catalog.ln(base::double precision) end;

create or replace function rwproxy_compat.databricks_sqrt(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value < 0 then 'NaN' else pg_catalog.sqrt(value::double precision) end;

create or replace function rwproxy_compat.databricks_exp(value double precision) returns double precision
    language sql immutable parallel safe
    return case when value > 709.782712893384 then 'Infinity' when value < -745.2 then 0 else pg_catalog.exp(value::double precision) end;

create or replace function rwproxy_compat.databricks_power(base double precision, exponent double precision) returns double precision
    language sql immutable parallel safe
    return pg_catalog.power(base::double precision, exponent::double precision);

create or replace function rwproxy_compat.databricks_log(base numeric, value numeric) returns double precision
    language sql immutable parallel safe
    return case when base > 0 and value > 0 then pg_catalog.ln(value::double precision) / pg_catalog.ln(base::double precision) end;

create or replace function rwproxy_compat.databricks_sqrt(value numeric) returns double precision
    language sql immutable parallel safe
    return case when value < 0 then 'NaN' else pg_catalog.sqrt(value::double precision) end;

create or replace function rwproxy_compat.databricks_exp(value numeric) returns double precision
    language sql immutable parallel safe
    return case when value > 709.782712893384 then 'Infinity' when value < -745.2 then 0 else pg_catalog.exp(value::double precision) end;

create or replace function rwproxy_compat.databricks_power(base numeric, exponent numeric) returns double precision
    language sql immutable parallel safe
    return pg_catalog.power(base::double precision, exponent::double precision);

-- Sums of whole numbers are of 64 bits. An average of decimals has four digits more
-- than the decimals.

create or replace aggregate rwproxy_compat.databricks_sum(value smallint) (
    sfunc = pg_catalog.int2_sum,
    stype = bigint,
    combinefunc = pg_catalog.int8pl,
    parallel = safe
);

create or replace aggregate rwproxy_compat.databricks_sum(value integer) (
    sfunc = pg_catalog.int4_sum,
    stype = bigint,
    combinefunc = pg_catalog.int8pl,
    parallel = safe
);

create or replace aggregate rwproxy_compat.databricks_sum(value bigint) (
    sfunc = pg_catalog.int8pl,
    stype = bigint,
    combinefunc = pg_catalog.int8pl,
    parallel = safe
);

create or replace aggregate rwproxy_compat.databricks_sum(value numeric) (
    sfunc = pg_catalog.numeric_add,
    stype = numeric,
    combinefunc = pg_catalog.numeric_add,
    parallel = safe
);

create or replace aggregate rwproxy_compat.databricks_sum(value double precision) (
    sfunc = pg_catalog.float8pl,
    stype = double precision,
    combinefunc = pg_catalog.float8pl,
    parallel = safe
);

create or replace function rwproxy_compat.databricks_average(total bigint, number bigint) returns double precision
    language sql immutable parallel safe
    return total::double precision / nullif(number, 0)::double precision;

create or replace function rwproxy_compat.databricks_average(total double precision, number bigint) returns double precision
    language sql immutable parallel safe
    return total / nullif(number, 0)::double precision;

create or replace function rwproxy_compat.databricks_average(total numeric, number bigint) returns numeric
    language sql immutable parallel safe
    return pg_catalog.round(total / nullif(number, 0)::numeric, pg_catalog.scale(total) + 4);
