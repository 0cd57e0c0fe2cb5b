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
