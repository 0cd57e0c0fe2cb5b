-- Parts of a date. A day of the week is 1 for Sunday, a weekday 0 for Monday.

create or replace function rwproxy_compat.year(value date) returns integer
    language sql immutable parallel safe
    return extract(year from value)::integer;

create or replace function rwproxy_compat.year(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(year from value)::integer;

create or replace function rwproxy_compat.year(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(year from value)::integer;

create or replace function rwproxy_compat.quarter(value date) returns integer
    language sql immutable parallel safe
    return extract(quarter from value)::integer;

create or replace function rwproxy_compat.quarter(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(quarter from value)::integer;

create or replace function rwproxy_compat.quarter(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(quarter from value)::integer;

create or replace function rwproxy_compat.month(value date) returns integer
    language sql immutable parallel safe
    return extract(month from value)::integer;

create or replace function rwproxy_compat.month(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(month from value)::integer;

create or replace function rwproxy_compat.month(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(month from value)::integer;

create or replace function rwproxy_compat.weekofyear(value date) returns integer
    language sql immutable parallel safe
    return extract(week from value)::integer;

create or replace function rwproxy_compat.weekofyear(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(week from value)::integer;

create or replace function rwproxy_compat.weekofyear(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(week from value)::integer;

create or replace function rwproxy_compat.day(value date) returns integer
    language sql immutable parallel safe
    return extract(day from value)::integer;

create or replace function rwproxy_compat.day(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(day from value)::integer;

create or replace function rwproxy_compat.day(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(day from value)::integer;

create or replace function rwproxy_compat.dayofmonth(value date) returns integer
    language sql immutable parallel safe
    return extract(day from value)::integer;

create or replace function rwproxy_compat.dayofmonth(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(day from value)::integer;

create or replace function rwproxy_compat.dayofmonth(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(day from value)::integer;

create or replace function rwproxy_compat.dayofyear(value date) returns integer
    language sql immutable parallel safe
    return extract(doy from value)::integer;

create or replace function rwproxy_compat.dayofyear(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(doy from value)::integer;

create or replace function rwproxy_compat.dayofyear(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(doy from value)::integer;

create or replace function rwproxy_compat.dayofweek(value date) returns integer
    language sql immutable parallel safe
    return extract(dow from value)::integer + 1;

create or replace function rwproxy_compat.dayofweek(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(dow from value)::integer + 1;

create or replace function rwproxy_compat.dayofweek(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(dow from value)::integer + 1;

create or replace function rwproxy_compat.weekday(value date) returns integer
    language sql immutable parallel safe
    return extract(isodow from value)::integer - 1;

create or replace function rwproxy_compat.weekday(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(isodow from value)::integer - 1;

create or replace function rwproxy_compat.weekday(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(isodow from value)::integer - 1;

create or replace function rwproxy_compat.hour(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(hour from value)::integer;

create or replace function rwproxy_compat.hour(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(hour from value)::integer;

create or replace function rwproxy_compat.minute(value timestamp) returns integer
    language sql immutable parallel safe
    return extract(minute from value)::integer;

create or replace function rwproxy_compat.minute(value timestamptz) returns integer
    language sql stable parallel safe
    return extract(minute from value)::integer;

create or replace function rwproxy_compat.second(value timestamp) returns integer
    language sql immutable parallel safe
    return pg_catalog.floor(extract(second from value))::integer;

create or replace function rwproxy_compat.second(value timestamptz) returns integer
    language sql stable parallel safe
    return pg_catalog.floor(extract(second from value))::integer;

create or replace function rwproxy_compat.last_day(value date) returns date
    language sql immutable parallel safe
    return (pg_catalog.date_trunc('month', value::timestamp) + interval '1 month - 1 day')::date;

create or replace function rwproxy_compat.last_day(value timestamp) returns date
    language sql immutable parallel safe
    return (pg_catalog.date_trunc('month', value::date::timestamp) + interval '1 month - 1 day')::date;

create or replace function rwproxy_compat.last_day(value timestamptz) returns date
    language sql stable parallel safe
    return (pg_catalog.date_trunc('month', value::date::timestamp) + interval '1 month - 1 day')::date;

-- The first day after a date that is a given day of the week. The cast of the
-- name of an unknown day to an integer fails, and shows the name.

create or replace function rwproxy_compat.next_day(value date, day_of_week text) returns date
    language sql immutable parallel safe
    return value + (case pg_catalog.upper(pg_catalog.btrim(day_of_week))
            when 'MO' then 1 when 'MON' then 1 when 'MONDAY' then 1
            when 'TU' then 2 when 'TUE' then 2 when 'TUESDAY' then 2
            when 'WE' then 3 when 'WED' then 3 when 'WEDNESDAY' then 3
            when 'TH' then 4 when 'THU' then 4 when 'THURSDAY' then 4
            when 'FR' then 5 when 'FRI' then 5 when 'FRIDAY' then 5
            when 'SA' then 6 when 'SAT' then 6 when 'SATURDAY' then 6
            when 'SU' then 7 when 'SUN' then 7 when 'SUNDAY' then 7
            else ('unknown day of the week: ' || day_of_week)::integer
        end - extract(isodow from value)::integer + 6) % 7 + 1;

create or replace function rwproxy_compat.next_day(value timestamp, day_of_week text) returns date
    language sql immutable parallel safe
    return value::date + (case pg_catalog.upper(pg_catalog.btrim(day_of_week))
            when 'MO' then 1 when 'MON' then 1 when 'MONDAY' then 1
            when 'TU' then 2 when 'TUE' then 2 when 'TUESDAY' then 2
            when 'WE' then 3 when 'WED' then 3 when 'WEDNESDAY' then 3
            when 'TH' then 4 when 'THU' then 4 when 'THURSDAY' then 4
            when 'FR' then 5 when 'FRI' then 5 when 'FRIDAY' then 5
            when 'SA' then 6 when 'SAT' then 6 when 'SATURDAY' then 6
            when 'SU' then 7 when 'SUN' then 7 when 'SUNDAY' then 7
            else ('unknown day of the week: ' || day_of_week)::integer
        end - extract(isodow from value::date)::integer + 6) % 7 + 1;

create or replace function rwproxy_compat.next_day(value timestamptz, day_of_week text) returns date
    language sql stable parallel safe
    return value::date + (case pg_catalog.upper(pg_catalog.btrim(day_of_week))
            when 'MO' then 1 when 'MON' then 1 when 'MONDAY' then 1
            when 'TU' then 2 when 'TUE' then 2 when 'TUESDAY' then 2
            when 'WE' then 3 when 'WED' then 3 when 'WEDNESDAY' then 3
            when 'TH' then 4 when 'THU' then 4 when 'THURSDAY' then 4
            when 'FR' then 5 when 'FRI' then 5 when 'FRIDAY' then 5
            when 'SA' then 6 when 'SAT' then 6 when 'SATURDAY' then 6
            when 'SU' then 7 when 'SUN' then 7 when 'SUNDAY' then 7
            else ('unknown day of the week: ' || day_of_week)::integer
        end - extract(isodow from value::date)::integer + 6) % 7 + 1;

create or replace function rwproxy_compat.curdate() returns date
    language sql stable parallel safe
    return current_date;

-- trunc(date, unit): the first day of a date's period; NULL if the unit is unknown
-- or below a week. PostgreSQL's trunc is of numbers: the translator tells them
-- apart by the unit.

create or replace function rwproxy_compat.truncate_date(value date, unit text) returns date
    language sql immutable parallel safe
    return pg_catalog.date_trunc(
        case pg_catalog.upper(unit)
            when 'YEAR' then 'year' when 'YYYY' then 'year' when 'YY' then 'year'
            when 'QUARTER' then 'quarter'
            when 'MONTH' then 'month' when 'MM' then 'month' when 'MON' then 'month'
            when 'WEEK' then 'week'
        end, value::date::timestamp)::date;

create or replace function rwproxy_compat.truncate_date(value timestamp, unit text) returns date
    language sql immutable parallel safe
    return pg_catalog.date_trunc(
        case pg_catalog.upper(unit)
            when 'YEAR' then 'year' when 'YYYY' then 'year' when 'YY' then 'year'
            when 'QUARTER' then 'quarter'
            when 'MONTH' then 'month' when 'MM' then 'month' when 'MON' then 'month'
            when 'WEEK' then 'week'
        end, value::date::timestamp)::date;

create or replace function rwproxy_compat.truncate_date(value timestamptz, unit text) returns date
    language sql stable parallel safe
    return pg_catalog.date_trunc(
        case pg_catalog.upper(unit)
            when 'YEAR' then 'year' when 'YYYY' then 'year' when 'YY' then 'year'
            when 'QUARTER' then 'quarter'
            when 'MONTH' then 'month' when 'MM' then 'month' when 'MON' then 'month'
            when 'WEEK' then 'week'
        end, value::date::timestamp)::date;

create or replace function rwproxy_compat.truncate_date(value text, unit text) returns date
    language sql stable parallel safe
    return rwproxy_compat.truncate_date(value::timestamp, unit);
