-- Aggregates.

create or replace function rwproxy_compat.count_if_next(count bigint, condition boolean) returns bigint
    language sql immutable parallel safe
    return case when condition then count + 1 else count end;

create or replace aggregate rwproxy_compat.count_if(condition boolean) (
    sfunc = rwproxy_compat.count_if_next,
    stype = bigint,
    initcond = '0',
    combinefunc = pg_catalog.int8pl,
    parallel = safe
);

-- PostgreSQL has it since version 16. The first value that is not NULL becomes
-- the state, because the function is strict; it stays.

create or replace function rwproxy_compat.any_value_next(state anyelement, value anyelement) returns anyelement
    language sql immutable strict parallel safe
    as $$ select $1 $$;

create or replace aggregate rwproxy_compat.any_value(value anyelement) (
    sfunc = rwproxy_compat.any_value_next,
    stype = anyelement,
    combinefunc = rwproxy_compat.any_value_next,
    parallel = safe
);

-- The value itself. An array is refused: in an array of arrays no element is an
-- array.

create or replace function rwproxy_compat.scalar(value anynonarray) returns anynonarray
    language sql immutable parallel safe
    as $$ select $1 $$;
