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

