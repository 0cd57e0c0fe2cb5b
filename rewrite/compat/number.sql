-- Numbers. pmod is not negative if its divisor is not.

create or replace function rwproxy_compat.pmod(dividend integer, divisor integer) returns integer
    language sql immutable parallel safe
    return case when dividend % divisor < 0 then (dividend % divisor + divisor) % divisor else dividend % divisor end;

create or replace function rwproxy_compat.pmod(dividend bigint, divisor bigint) returns bigint
    language sql immutable parallel safe
    return case when dividend % divisor < 0 then (dividend % divisor + divisor) % divisor else dividend % divisor end;

create or replace function rwproxy_compat.pmod(dividend numeric, divisor numeric) returns numeric
    language sql immutable parallel safe
    return case when dividend % divisor < 0 then (dividend % divisor + divisor) % divisor else dividend % divisor end;

create or replace function rwproxy_compat.try_divide(dividend numeric, divisor numeric) returns numeric
    language sql immutable parallel safe
    return dividend / nullif(divisor, 0);

create or replace function rwproxy_compat.try_divide(dividend double precision, divisor double precision) returns double precision
    language sql immutable parallel safe
    return dividend / nullif(divisor, 0);

create or replace function rwproxy_compat.rand() returns double precision
    language sql volatile parallel restricted
    return pg_catalog.random();

-- DIV: whole times the divisor fits, towards zero.

create or replace function rwproxy_compat.integral_divide(dividend smallint, divisor smallint) returns bigint
    language sql immutable parallel safe
    return dividend::bigint / divisor;

create or replace function rwproxy_compat.integral_divide(dividend integer, divisor integer) returns bigint
    language sql immutable parallel safe
    return dividend::bigint / divisor;

create or replace function rwproxy_compat.integral_divide(dividend bigint, divisor bigint) returns bigint
    language sql immutable parallel safe
    return dividend::bigint / divisor;

create or replace function rwproxy_compat.integral_divide(dividend numeric, divisor numeric) returns bigint
    language sql immutable parallel safe
    return pg_catalog.div(dividend, divisor)::bigint;
