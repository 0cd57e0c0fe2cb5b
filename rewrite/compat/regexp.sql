-- Regular expressions. The patterns are PostgreSQL's here: the translator writes
-- a constant pattern of Databricks' so, and refuses any other.

create or replace function rwproxy_compat.rlike(value text, pattern text) returns boolean
    language sql immutable parallel safe
    return value ~ pattern;

-- PostgreSQL has it since version 15.
create or replace function rwproxy_compat.regexp_like(value text, pattern text) returns boolean
    language sql immutable parallel safe
    return value ~ pattern;

-- Group 0 is what the whole pattern matched. Without a match it is empty.
create or replace function rwproxy_compat.regexp_extract(value text, pattern text, group_number integer default 1) returns text
    language sql immutable parallel safe
    return case
        when group_number = 0 then
            coalesce(
                (pg_catalog.regexp_match(value, pg_catalog.regexp_replace(pattern, '^([(][?]i[)])?(.*)$', '\1(\2)')))[1],
                case when value is not null and pattern is not null then '' end)
        else coalesce((pg_catalog.regexp_match(value, pattern))[group_number], case when value is not null and pattern is not null then '' end)
    end;

create or replace function rwproxy_compat.split(value text, pattern text) returns text[]
    language sql immutable parallel safe
    return pg_catalog.regexp_split_to_array(value, pattern);
