-- Arrays. As these take any type, their bodies name PostgreSQL's operators and
-- functions in full: no search_path changes them.

create or replace function rwproxy_compat.size(value anyarray) returns integer
    language sql immutable parallel safe
    as $$ select pg_catalog.cardinality($1) $$;

create or replace function rwproxy_compat.array_contains(value anycompatiblearray, element anycompatible) returns boolean
    language sql immutable parallel safe
    as $$ select $2 operator(pg_catalog.=) any ($1) $$;

create or replace function rwproxy_compat.reverse(value anyarray) returns anyarray
    language sql immutable parallel safe
    as $$
        select coalesce(pg_catalog.array_agg(element order by place desc), $1)
          from pg_catalog.unnest($1) with ordinality as elements (element, place)
         where case
             when pg_catalog.array_ndims($1) operator(pg_catalog.>) 1 then
                 pg_catalog.concat('reverse of an array with ', pg_catalog.array_ndims($1), ' dimensions')::boolean
             else true
         end
    $$;

-- The elements of an array, a row each. An array of arrays would fall apart into
-- its innermost elements; the cast of the text fails, and shows it.

create or replace function rwproxy_compat.explode(value anyarray) returns setof anyelement
    language sql immutable parallel safe
    as $$
        select element
          from pg_catalog.unnest($1) as elements (element)
         where case
             when pg_catalog.array_ndims($1) operator(pg_catalog.>) 1 then
                 pg_catalog.concat('explode of an array with ', pg_catalog.array_ndims($1), ' dimensions')::boolean
             else true
         end
    $$;

create or replace function rwproxy_compat.posexplode(value anyarray, out pos integer, out col anyelement) returns setof record
    language sql immutable parallel safe
    as $$
        select (place operator(pg_catalog.-) 1)::integer, element
          from pg_catalog.unnest($1) with ordinality as elements (element, place)
         where case
             when pg_catalog.array_ndims($1) operator(pg_catalog.>) 1 then
                 pg_catalog.concat('posexplode of an array with ', pg_catalog.array_ndims($1), ' dimensions')::boolean
             else true
         end
    $$;

-- The element at a place that counts from 0. An array does not end outside of
-- its places silently: the cast of the text fails, and shows it.

create or replace function rwproxy_compat.element(value anyarray, place integer) returns anyelement
    language sql immutable parallel safe
    as $$
        select $1[case
            when $1 is null or $2 is null then null
            when pg_catalog.array_ndims($1) operator(pg_catalog.>) 1 then
                pg_catalog.concat('an element of an array with ', pg_catalog.array_ndims($1), ' dimensions')::integer
            when $2 operator(pg_catalog.>=) 0 and $2 operator(pg_catalog.<) pg_catalog.cardinality($1) then
                $2 operator(pg_catalog.+) 1
            else pg_catalog.concat('the array has ', pg_catalog.cardinality($1), ' elements, none at ', $2)::integer
        end]
    $$;
