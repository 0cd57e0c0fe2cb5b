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

-- Months from one day to another: whole if the days of the month are the same or
-- both the last, else with days and seconds as parts of a month of 31 days.

create or replace function rwproxy_compat.months_between(end_value timestamp, start_value timestamp, round_off boolean) returns double precision
    language sql immutable parallel safe
    return case
        when extract(day from end_value) = extract(day from start_value)
            or extract(day from end_value + interval '1 day') = 1 and extract(day from start_value + interval '1 day') = 1 then
            (extract(year from end_value) - extract(year from start_value)) * 12 + extract(month from end_value) - extract(month from start_value)
        when round_off then
            pg_catalog.floor(((extract(year from end_value) - extract(year from start_value)) * 12 + extract(month from end_value) - extract(month from start_value)
                + (extract(day from end_value) - extract(day from start_value)
                    + (pg_catalog.floor(extract(epoch from end_value::time)) - pg_catalog.floor(extract(epoch from start_value::time))) / 86400) / 31)
                * 100000000 + 0.5) / 100000000
        else
            (extract(year from end_value) - extract(year from start_value)) * 12 + extract(month from end_value) - extract(month from start_value)
                + ((extract(day from end_value) - extract(day from start_value)) * 86400
                    + pg_catalog.floor(extract(epoch from end_value::time)) - pg_catalog.floor(extract(epoch from start_value::time)))::double precision / 2678400
    end::double precision;

create or replace function rwproxy_compat.months_between(end_value timestamptz, start_value timestamptz, round_off boolean) returns double precision
    language sql stable parallel safe
    return rwproxy_compat.months_between(end_value::timestamp, start_value::timestamp, round_off);

create or replace function rwproxy_compat.months_between(end_value timestamp, start_value timestamp) returns double precision
    language sql immutable parallel safe
    return rwproxy_compat.months_between(end_value, start_value, true);

create or replace function rwproxy_compat.months_between(end_value timestamptz, start_value timestamptz) returns double precision
    language sql stable parallel safe
    return rwproxy_compat.months_between(end_value::timestamp, start_value::timestamp, true);
