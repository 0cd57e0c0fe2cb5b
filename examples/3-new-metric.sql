-- A metric that is added later.
--
-- The table has counted events for a while. From now on it shall also count
-- users: rows of the window get the new number at once, older rows read NULL
-- until they are back-filled, as far back as it is worth.
--
-- Run it through rwproxy:  psql -h localhost -p 6432 -f 3-new-metric.sql
-- Remove it again:         drop schema example_3 cascade;

create schema example_3;
set search_path = example_3;

create table events (
    event_id   integer primary key,
    event_date date not null,
    user_id    integer not null
);

insert into events values
    (1, current_date - 45, 7),
    (2, current_date - 20, 7),
    (3, current_date - 20, 8),
    (4, current_date - 20, 8),
    (5, current_date - 1, 9),
    (6, current_date, 7),
    (7, current_date, 7);

create or refresh streaming table activity
    flow replace where event_date >= date_add(current_date(), -1)
    by name
    select event_date, count(*) as events
    from events
    group by event_date;

refresh streaming table activity where event_date >= date_add(current_date(), -60);

select event_date - current_date as day, events
from activity
order by day;

-- The same statement with one more column changes the definition and
-- refreshes the window.
create or refresh streaming table activity
    flow replace where event_date >= date_add(current_date(), -1)
    by name
    select event_date, count(*) as events, count(distinct user_id) as users
    from events
    group by event_date;

select event_date - current_date as day, events, users
from activity
order by day;

-- Back-fill thirty days. The 45 days old row keeps its NULL.
refresh streaming table activity
    where event_date between date_add(current_date(), -30) and current_date();

select event_date - current_date as day, events, users
from activity
order by day;
