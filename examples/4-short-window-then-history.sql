-- A short window first, the history when the query is right.
--
-- While a query is being worked out, a window of two days keeps every attempt
-- quick. When it is right, the history is loaded once: from the source with a
-- wide window, or from anywhere else with a plain INSERT.
--
-- Run it through rwproxy:  psql -h localhost -p 6432 -f 4-short-window-then-history.sql
-- Remove it again:         drop schema example_4 cascade;

create schema example_4;
set search_path = example_4;

create table trips (
    trip_id   integer primary key,
    trip_date date not null,
    km        numeric(6, 1) not null,
    fare      numeric(8, 2) not null
);

-- Trips of an older system: they never were in the source table.
create table trips_archive (like trips);

insert into trips values
    (1, current_date - 400, 10.0, 20.00),
    (2, current_date - 30, 5.0, 15.00),
    (3, current_date - 1, 4.0, 10.00),
    (4, current_date, 2.0, 8.00);

insert into trips_archive values (90, current_date - 500, 8.0, 24.00);

-- First attempt: the division by the distance is missing.
create or refresh streaming table fares
    flow replace where trip_date >= date_add(current_date(), -1)
    by name
    select trip_date, count(*) as trips, round(sum(fare), 2) as fare_per_km
    from trips
    group by trip_date;

select trip_date - current_date as day, trips, fare_per_km
from fares
order by day;

-- Second attempt: right.
create or refresh streaming table fares
    flow replace where trip_date >= date_add(current_date(), -1)
    by name
    select trip_date, count(*) as trips, round(sum(fare) / sum(km), 2) as fare_per_km
    from trips
    group by trip_date;

select trip_date - current_date as day, trips, fare_per_km
from fares
order by day;

-- The whole history of the source, with a wide window for this one refresh.
refresh streaming table fares where trip_date <= current_date();

select trip_date - current_date as day, trips, fare_per_km
from fares
order by day;

-- Or plain SQL: the target is an ordinary table.
insert into fares (trip_date, trips, fare_per_km)
select trip_date, count(*), round(sum(fare) / sum(km), 2)
from trips_archive
group by trip_date;

refresh streaming table fares;

-- The inserted row is outside the window, so it stays.
select trip_date - current_date as day, trips, fare_per_km
from fares
order by day;

-- Until a window covers it: then it is replaced by what the query returns for
-- that window, here nothing.
refresh streaming table fares where trip_date < date_add(current_date(), -450);

select trip_date - current_date as day, trips, fare_per_km
from fares
order by day;
