-- try_cast of a text: NULL if the text is not a value of the type in Databricks'
-- notation, which is narrower than PostgreSQL's.

create or replace function rwproxy_compat.try_cast_tinyint(value text) returns smallint
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?[0-9]{1,60}[ \t\n\r]*$' then
            case when value::numeric between -128 and 127 then value::numeric::smallint end
    end;

create or replace function rwproxy_compat.try_cast_smallint(value text) returns smallint
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?[0-9]{1,60}[ \t\n\r]*$' then
            case when value::numeric between -32768 and 32767 then value::numeric::smallint end
    end;

create or replace function rwproxy_compat.try_cast_integer(value text) returns integer
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?[0-9]{1,60}[ \t\n\r]*$' then
            case when value::numeric between -2147483648 and 2147483647 then value::numeric::integer end
    end;

create or replace function rwproxy_compat.try_cast_bigint(value text) returns bigint
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?[0-9]{1,60}[ \t\n\r]*$' then
            case when value::numeric between -9223372036854775808 and 9223372036854775807 then value::numeric::bigint end
    end;

-- Rounded to the scale, as a cast does; NULL if the precision is too small.
create or replace function rwproxy_compat.try_cast_decimal(value text, number_of_digits integer, scale integer) returns numeric
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?[ \t\n\r]*$' then
            case
                when pg_catalog.abs(pg_catalog.round(value::numeric, scale)) < pg_catalog.power(10::numeric, (number_of_digits - scale)::numeric) then
                    pg_catalog.round(value::numeric, scale)
            end
    end;

create or replace function rwproxy_compat.try_cast_boolean(value text) returns boolean
    language sql immutable parallel safe
    return case pg_catalog.lower(pg_catalog.btrim(value, e' \t\n\r'))
        when 't' then true when 'true' then true when 'y' then true when 'yes' then true when '1' then true
        when 'f' then false when 'false' then false when 'n' then false when 'no' then false when '0' then false
    end;

create or replace function rwproxy_compat.try_cast_date(value text) returns date
    language sql immutable parallel safe
    return case
        when value ~ '^[ \t\n\r]*[0-9]{4}(-(0?[1-9]|1[0-2])(-(0?[1-9]|[12][0-9]|3[01])([ T].*)?)?)?[ \t\n\r]*$' and value !~ '^[ \t\n\r]*0000' then
            case
                when coalesce((pg_catalog.regexp_match(value, '^[^-]*-[0-9]{1,2}-([0-9]{1,2})'))[1]::integer, 1)
                    <= extract(day from pg_catalog.make_date(
                        (pg_catalog.regexp_match(value, '[0-9]{4}'))[1]::integer,
                        coalesce((pg_catalog.regexp_match(value, '^[^-]*-([0-9]{1,2})'))[1]::integer, 1),
                        1) + interval '1 month - 1 day') then
                    pg_catalog.make_date(
                        (pg_catalog.regexp_match(value, '[0-9]{4}'))[1]::integer,
                        coalesce((pg_catalog.regexp_match(value, '^[^-]*-([0-9]{1,2})'))[1]::integer, 1),
                        coalesce((pg_catalog.regexp_match(value, '^[^-]*-[0-9]{1,2}-([0-9]{1,2})'))[1]::integer, 1))
            end
    end;
