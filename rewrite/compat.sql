-- Databricks functions that PostgreSQL lacks, for the queries and predicates of
-- flows, whose search_path ends with rwproxy_compat: PostgreSQL's functions and
-- the user's own win.
--
-- Each is one expression, neither strict nor with settings of its own, so that
-- the planner puts it in place of the call and a predicate can use an index.
-- A body after "return" is bound when the function is created. Those of any
-- type cannot have one; theirs use no operator and no function, so that no
-- search_path changes them.
--
-- A timestamp becomes a date in the session's time zone, as in Databricks. A
-- string constant is taken as a timestamp with time zone, PostgreSQL's
-- preferred type.

-- Dates: a day and a number of days or months.

create or replace function rwproxy_compat.date_add(start_date date, num_days integer) returns date
    language sql immutable parallel safe
    return start_date + num_days;

create or replace function rwproxy_compat.date_add(start_date timestamp, num_days integer) returns date
    language sql immutable parallel safe
    return start_date::date + num_days;

create or replace function rwproxy_compat.date_add(start_date timestamptz, num_days integer) returns date
    language sql stable parallel safe
    return start_date::date + num_days;

create or replace function rwproxy_compat.dateadd(start_date date, num_days integer) returns date
    language sql immutable parallel safe
    return start_date + num_days;

create or replace function rwproxy_compat.dateadd(start_date timestamp, num_days integer) returns date
    language sql immutable parallel safe
    return start_date::date + num_days;

create or replace function rwproxy_compat.dateadd(start_date timestamptz, num_days integer) returns date
    language sql stable parallel safe
    return start_date::date + num_days;

create or replace function rwproxy_compat.date_sub(start_date date, num_days integer) returns date
    language sql immutable parallel safe
    return start_date - num_days;

create or replace function rwproxy_compat.date_sub(start_date timestamp, num_days integer) returns date
    language sql immutable parallel safe
    return start_date::date - num_days;

create or replace function rwproxy_compat.date_sub(start_date timestamptz, num_days integer) returns date
    language sql stable parallel safe
    return start_date::date - num_days;

create or replace function rwproxy_compat.add_months(start_date date, num_months integer) returns date
    language sql immutable parallel safe
    return (start_date + pg_catalog.make_interval(months => num_months))::date;

create or replace function rwproxy_compat.add_months(start_date timestamp, num_months integer) returns date
    language sql immutable parallel safe
    return (start_date::date + pg_catalog.make_interval(months => num_months))::date;

create or replace function rwproxy_compat.add_months(start_date timestamptz, num_months integer) returns date
    language sql stable parallel safe
    return (start_date::date + pg_catalog.make_interval(months => num_months))::date;

-- The difference of two days, in days.

create or replace function rwproxy_compat.datediff(end_date date, start_date date) returns integer
    language sql immutable parallel safe
    return end_date - start_date;

create or replace function rwproxy_compat.datediff(end_date timestamp, start_date timestamp) returns integer
    language sql immutable parallel safe
    return end_date::date - start_date::date;

create or replace function rwproxy_compat.datediff(end_date timestamptz, start_date timestamptz) returns integer
    language sql stable parallel safe
    return end_date::date - start_date::date;

create or replace function rwproxy_compat.date_diff(end_date date, start_date date) returns integer
    language sql immutable parallel safe
    return end_date - start_date;

create or replace function rwproxy_compat.date_diff(end_date timestamp, start_date timestamp) returns integer
    language sql immutable parallel safe
    return end_date::date - start_date::date;

create or replace function rwproxy_compat.date_diff(end_date timestamptz, start_date timestamptz) returns integer
    language sql stable parallel safe
    return end_date::date - start_date::date;

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

-- Timestamps and units. A unit is a string here: the translator quotes the word.
-- The cast of an unknown unit to an interval fails, and shows it.

create or replace function rwproxy_compat.date_add(unit text, number_of_units integer, value timestamp) returns timestamp
    language sql immutable parallel safe
    return value + number_of_units * case pg_catalog.lower(unit)
            when 'microsecond' then interval '1 microsecond'
            when 'millisecond' then interval '1 millisecond'
            when 'second' then interval '1 second'
            when 'minute' then interval '1 minute'
            when 'hour' then interval '1 hour'
            when 'day' then interval '1 day'
            when 'dayofyear' then interval '1 day'
            when 'week' then interval '7 days'
            when 'month' then interval '1 month'
            when 'quarter' then interval '3 months'
            when 'year' then interval '1 year'
            else unit::interval
        end;

create or replace function rwproxy_compat.date_add(unit text, number_of_units integer, value timestamptz) returns timestamptz
    language sql stable parallel safe
    return value + number_of_units * case pg_catalog.lower(unit)
            when 'microsecond' then interval '1 microsecond'
            when 'millisecond' then interval '1 millisecond'
            when 'second' then interval '1 second'
            when 'minute' then interval '1 minute'
            when 'hour' then interval '1 hour'
            when 'day' then interval '1 day'
            when 'dayofyear' then interval '1 day'
            when 'week' then interval '7 days'
            when 'month' then interval '1 month'
            when 'quarter' then interval '3 months'
            when 'year' then interval '1 year'
            else unit::interval
        end;

create or replace function rwproxy_compat.dateadd(unit text, number_of_units integer, value timestamp) returns timestamp
    language sql immutable parallel safe
    return value + number_of_units * case pg_catalog.lower(unit)
            when 'microsecond' then interval '1 microsecond'
            when 'millisecond' then interval '1 millisecond'
            when 'second' then interval '1 second'
            when 'minute' then interval '1 minute'
            when 'hour' then interval '1 hour'
            when 'day' then interval '1 day'
            when 'dayofyear' then interval '1 day'
            when 'week' then interval '7 days'
            when 'month' then interval '1 month'
            when 'quarter' then interval '3 months'
            when 'year' then interval '1 year'
            else unit::interval
        end;

create or replace function rwproxy_compat.dateadd(unit text, number_of_units integer, value timestamptz) returns timestamptz
    language sql stable parallel safe
    return value + number_of_units * case pg_catalog.lower(unit)
            when 'microsecond' then interval '1 microsecond'
            when 'millisecond' then interval '1 millisecond'
            when 'second' then interval '1 second'
            when 'minute' then interval '1 minute'
            when 'hour' then interval '1 hour'
            when 'day' then interval '1 day'
            when 'dayofyear' then interval '1 day'
            when 'week' then interval '7 days'
            when 'month' then interval '1 month'
            when 'quarter' then interval '3 months'
            when 'year' then interval '1 year'
            else unit::interval
        end;

create or replace function rwproxy_compat.timestampadd(unit text, number_of_units integer, value timestamp) returns timestamp
    language sql immutable parallel safe
    return value + number_of_units * case pg_catalog.lower(unit)
            when 'microsecond' then interval '1 microsecond'
            when 'millisecond' then interval '1 millisecond'
            when 'second' then interval '1 second'
            when 'minute' then interval '1 minute'
            when 'hour' then interval '1 hour'
            when 'day' then interval '1 day'
            when 'dayofyear' then interval '1 day'
            when 'week' then interval '7 days'
            when 'month' then interval '1 month'
            when 'quarter' then interval '3 months'
            when 'year' then interval '1 year'
            else unit::interval
        end;

create or replace function rwproxy_compat.timestampadd(unit text, number_of_units integer, value timestamptz) returns timestamptz
    language sql stable parallel safe
    return value + number_of_units * case pg_catalog.lower(unit)
            when 'microsecond' then interval '1 microsecond'
            when 'millisecond' then interval '1 millisecond'
            when 'second' then interval '1 second'
            when 'minute' then interval '1 minute'
            when 'hour' then interval '1 hour'
            when 'day' then interval '1 day'
            when 'dayofyear' then interval '1 day'
            when 'week' then interval '7 days'
            when 'month' then interval '1 month'
            when 'quarter' then interval '3 months'
            when 'year' then interval '1 year'
            else unit::interval
        end;

-- Whole units from one timestamp to another, by the clock of the session's time
-- zone.

create or replace function rwproxy_compat.datediff(unit text, start_value timestamp, end_value timestamp) returns bigint
    language sql immutable parallel safe
    return case
        when pg_catalog.lower(unit) in ('year', 'quarter', 'month') then
            pg_catalog.div(
                extract(year from pg_catalog.age(end_value, start_value)) * 12 + extract(month from pg_catalog.age(end_value, start_value)),
                case pg_catalog.lower(unit) when 'year' then 12 when 'quarter' then 3 else 1 end)::bigint
        else
            pg_catalog.div(
                extract(epoch from end_value - start_value) * 1000000,
                extract(epoch from case pg_catalog.lower(unit)
                    when 'microsecond' then interval '1 microsecond'
                    when 'millisecond' then interval '1 millisecond'
                    when 'second' then interval '1 second'
                    when 'minute' then interval '1 minute'
                    when 'hour' then interval '1 hour'
                    when 'day' then interval '1 day'
                    when 'dayofyear' then interval '1 day'
                    when 'week' then interval '7 days'
                    else unit::interval
                end) * 1000000)::bigint
    end;

create or replace function rwproxy_compat.datediff(unit text, start_value timestamptz, end_value timestamptz) returns bigint
    language sql stable parallel safe
    return case
        when pg_catalog.lower(unit) in ('year', 'quarter', 'month') then
            pg_catalog.div(
                extract(year from pg_catalog.age(end_value::timestamp, start_value::timestamp)) * 12 + extract(month from pg_catalog.age(end_value::timestamp, start_value::timestamp)),
                case pg_catalog.lower(unit) when 'year' then 12 when 'quarter' then 3 else 1 end)::bigint
        else
            pg_catalog.div(
                extract(epoch from end_value::timestamp - start_value::timestamp) * 1000000,
                extract(epoch from case pg_catalog.lower(unit)
                    when 'microsecond' then interval '1 microsecond'
                    when 'millisecond' then interval '1 millisecond'
                    when 'second' then interval '1 second'
                    when 'minute' then interval '1 minute'
                    when 'hour' then interval '1 hour'
                    when 'day' then interval '1 day'
                    when 'dayofyear' then interval '1 day'
                    when 'week' then interval '7 days'
                    else unit::interval
                end) * 1000000)::bigint
    end;

create or replace function rwproxy_compat.date_diff(unit text, start_value timestamp, end_value timestamp) returns bigint
    language sql immutable parallel safe
    return case
        when pg_catalog.lower(unit) in ('year', 'quarter', 'month') then
            pg_catalog.div(
                extract(year from pg_catalog.age(end_value, start_value)) * 12 + extract(month from pg_catalog.age(end_value, start_value)),
                case pg_catalog.lower(unit) when 'year' then 12 when 'quarter' then 3 else 1 end)::bigint
        else
            pg_catalog.div(
                extract(epoch from end_value - start_value) * 1000000,
                extract(epoch from case pg_catalog.lower(unit)
                    when 'microsecond' then interval '1 microsecond'
                    when 'millisecond' then interval '1 millisecond'
                    when 'second' then interval '1 second'
                    when 'minute' then interval '1 minute'
                    when 'hour' then interval '1 hour'
                    when 'day' then interval '1 day'
                    when 'dayofyear' then interval '1 day'
                    when 'week' then interval '7 days'
                    else unit::interval
                end) * 1000000)::bigint
    end;

create or replace function rwproxy_compat.date_diff(unit text, start_value timestamptz, end_value timestamptz) returns bigint
    language sql stable parallel safe
    return case
        when pg_catalog.lower(unit) in ('year', 'quarter', 'month') then
            pg_catalog.div(
                extract(year from pg_catalog.age(end_value::timestamp, start_value::timestamp)) * 12 + extract(month from pg_catalog.age(end_value::timestamp, start_value::timestamp)),
                case pg_catalog.lower(unit) when 'year' then 12 when 'quarter' then 3 else 1 end)::bigint
        else
            pg_catalog.div(
                extract(epoch from end_value::timestamp - start_value::timestamp) * 1000000,
                extract(epoch from case pg_catalog.lower(unit)
                    when 'microsecond' then interval '1 microsecond'
                    when 'millisecond' then interval '1 millisecond'
                    when 'second' then interval '1 second'
                    when 'minute' then interval '1 minute'
                    when 'hour' then interval '1 hour'
                    when 'day' then interval '1 day'
                    when 'dayofyear' then interval '1 day'
                    when 'week' then interval '7 days'
                    else unit::interval
                end) * 1000000)::bigint
    end;

create or replace function rwproxy_compat.timestampdiff(unit text, start_value timestamp, end_value timestamp) returns bigint
    language sql immutable parallel safe
    return case
        when pg_catalog.lower(unit) in ('year', 'quarter', 'month') then
            pg_catalog.div(
                extract(year from pg_catalog.age(end_value, start_value)) * 12 + extract(month from pg_catalog.age(end_value, start_value)),
                case pg_catalog.lower(unit) when 'year' then 12 when 'quarter' then 3 else 1 end)::bigint
        else
            pg_catalog.div(
                extract(epoch from end_value - start_value) * 1000000,
                extract(epoch from case pg_catalog.lower(unit)
                    when 'microsecond' then interval '1 microsecond'
                    when 'millisecond' then interval '1 millisecond'
                    when 'second' then interval '1 second'
                    when 'minute' then interval '1 minute'
                    when 'hour' then interval '1 hour'
                    when 'day' then interval '1 day'
                    when 'dayofyear' then interval '1 day'
                    when 'week' then interval '7 days'
                    else unit::interval
                end) * 1000000)::bigint
    end;

create or replace function rwproxy_compat.timestampdiff(unit text, start_value timestamptz, end_value timestamptz) returns bigint
    language sql stable parallel safe
    return case
        when pg_catalog.lower(unit) in ('year', 'quarter', 'month') then
            pg_catalog.div(
                extract(year from pg_catalog.age(end_value::timestamp, start_value::timestamp)) * 12 + extract(month from pg_catalog.age(end_value::timestamp, start_value::timestamp)),
                case pg_catalog.lower(unit) when 'year' then 12 when 'quarter' then 3 else 1 end)::bigint
        else
            pg_catalog.div(
                extract(epoch from end_value::timestamp - start_value::timestamp) * 1000000,
                extract(epoch from case pg_catalog.lower(unit)
                    when 'microsecond' then interval '1 microsecond'
                    when 'millisecond' then interval '1 millisecond'
                    when 'second' then interval '1 second'
                    when 'minute' then interval '1 minute'
                    when 'hour' then interval '1 hour'
                    when 'day' then interval '1 day'
                    when 'dayofyear' then interval '1 day'
                    when 'week' then interval '7 days'
                    else unit::interval
                end) * 1000000)::bigint
    end;

-- Seconds since 1970-01-01 00:00:00 UTC.

create or replace function rwproxy_compat.unix_timestamp(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value))::bigint;

create or replace function rwproxy_compat.to_unix_timestamp(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value))::bigint;

create or replace function rwproxy_compat.unix_timestamp() returns bigint
    language sql stable parallel safe
    return pg_catalog.floor(extract(epoch from pg_catalog.now()))::bigint;

create or replace function rwproxy_compat.unix_seconds(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value))::bigint;

create or replace function rwproxy_compat.unix_millis(value timestamptz) returns bigint
    language sql immutable parallel safe
    return pg_catalog.floor(extract(epoch from value) * 1000)::bigint;

create or replace function rwproxy_compat.unix_micros(value timestamptz) returns bigint
    language sql immutable parallel safe
    return (extract(epoch from value) * 1000000)::bigint;

create or replace function rwproxy_compat.unix_date(value date) returns integer
    language sql immutable parallel safe
    return value - date '1970-01-01';

create or replace function rwproxy_compat.date_from_unix_date(days integer) returns date
    language sql immutable parallel safe
    return date '1970-01-01' + days;

create or replace function rwproxy_compat.from_unixtime(seconds bigint) returns text
    language sql stable parallel safe
    return pg_catalog.to_char(pg_catalog.to_timestamp(seconds), 'YYYY-MM-DD HH24:MI:SS');

create or replace function rwproxy_compat.timestamp_seconds(seconds double precision) returns timestamptz
    language sql immutable parallel safe
    return pg_catalog.to_timestamp(seconds);

create or replace function rwproxy_compat.timestamp_millis(milliseconds bigint) returns timestamptz
    language sql immutable parallel safe
    return pg_catalog.to_timestamp(milliseconds / 1000.0);

create or replace function rwproxy_compat.timestamp_micros(microseconds bigint) returns timestamptz
    language sql immutable parallel safe
    return pg_catalog.to_timestamp(microseconds / 1000000.0);

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

-- Strings.

create or replace function rwproxy_compat.uuid() returns text
    language sql volatile parallel safe
    return pg_catalog.gen_random_uuid()::text;

create or replace function rwproxy_compat.len(value text) returns integer
    language sql immutable parallel safe
    return pg_catalog.length(value);

create or replace function rwproxy_compat.instr(value text, part text) returns integer
    language sql immutable parallel safe
    return pg_catalog.strpos(value, part);

create or replace function rwproxy_compat.locate(part text, value text) returns integer
    language sql immutable parallel safe
    return pg_catalog.strpos(value, part);

create or replace function rwproxy_compat.charindex(part text, value text) returns integer
    language sql immutable parallel safe
    return pg_catalog.strpos(value, part);

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
