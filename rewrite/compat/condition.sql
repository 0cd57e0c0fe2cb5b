-- NULL and conditions.

create or replace function rwproxy_compat.nvl(value anycompatible, otherwise anycompatible) returns anycompatible
    language sql immutable parallel safe
    as $$ select coalesce($1, $2) $$;

create or replace function rwproxy_compat.ifnull(value anycompatible, otherwise anycompatible) returns anycompatible
    language sql immutable parallel safe
    as $$ select coalesce($1, $2) $$;

create or replace function rwproxy_compat.nvl2(value anyelement, if_not_null anycompatible, if_null anycompatible) returns anycompatible
    language sql immutable parallel safe
    as $$ select case when $1 is not null then $2 else $3 end $$;

-- A NULL or a string by itself has no type that anyelement could be.
create or replace function rwproxy_compat.nvl2(value text, if_not_null anycompatible, if_null anycompatible) returns anycompatible
    language sql immutable parallel safe
    as $$ select case when $1 is not null then $2 else $3 end $$;

create or replace function rwproxy_compat."if"(condition boolean, if_true anycompatible, otherwise anycompatible) returns anycompatible
    language sql immutable parallel safe
    as $$ select case when $1 then $2 else $3 end $$;

create or replace function rwproxy_compat.iff(condition boolean, if_true anycompatible, otherwise anycompatible) returns anycompatible
    language sql immutable parallel safe
    as $$ select case when $1 then $2 else $3 end $$;

create or replace function rwproxy_compat.isnull(value anycompatible) returns boolean
    language sql immutable parallel safe
    as $$ select $1 is null $$;

create or replace function rwproxy_compat.isnotnull(value anycompatible) returns boolean
    language sql immutable parallel safe
    as $$ select $1 is not null $$;
