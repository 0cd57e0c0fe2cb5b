-- Daily aggregates of a source that keeps only three days.
--
-- A retention job removes old orders, but the report has to keep its history.
-- The flow recomputes the last three days, late orders and corrections
-- included, and never touches a row of an older day.
--
-- Run it through rwproxy:  psql -h localhost -p 6432 -f 1-daily-aggregates.sql
-- Remove it again:         drop schema example_1 cascade;

create schema example_1;
set search_path = example_1;

create table orders (
    order_id   integer primary key,
    order_date date not null,
    amount     numeric(10, 2) not null
);

insert into orders values
    (1, current_date - 5, 10.00),
    (2, current_date - 5, 5.00),
    (3, current_date - 4, 20.00),
    (4, current_date - 3, 8.00),
    (5, current_date - 2, 30.00),
    (6, current_date - 1, 40.00),
    (7, current_date, 50.00);

-- Creating the table loads the window at once: today and the two days before.
create streaming table revenue_by_day
    flow replace where order_date >= date_add(current_date(), -2)
    by name
    select order_date, count(*) as orders, sum(amount) as revenue
    from orders
    group by order_date;

select order_date - current_date as day, orders, revenue
from revenue_by_day
order by day;

-- The source still holds older days. Take them over once, with another window
-- for this one refresh.
refresh streaming table revenue_by_day where order_date >= date_add(current_date(), -5);

select order_date - current_date as day, orders, revenue
from revenue_by_day
order by day;

-- The retention job runs. An order of yesterday arrives late, one of today is
-- corrected.
delete from orders where order_date < current_date - 2;

insert into orders values (8, current_date - 1, 2.50);

update orders set amount = 55.00 where order_id = 7;

refresh streaming table revenue_by_day;

-- Yesterday and today are right, and the days that the source has forgotten
-- are still here.
select order_date - current_date as day, orders, revenue
from revenue_by_day
order by day;
