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
