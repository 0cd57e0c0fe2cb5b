package refresh_test

import "testing"

func TestARowThatComesBackHasLostItsReferences(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (id int)", "insert into src values (1), (2)",
		"create streaming table dst (id int primary key) flow replace where id > 0 by name select id from src",
		"create table gone (id int references dst on delete cascade)", "insert into gone values (1), (2)",
		"create table emptied (id int references dst on delete set null)", "insert into emptied values (1)",
		"create table kept (id int references dst deferrable initially deferred)", "insert into kept values (2)",
		"insert into src values (3)", "refresh streaming table dst full")
	s.expect("select count(*) from dst", "3")
	s.expect("select count(*) from gone", "0")
	s.expect("select * from emptied", "null")
	s.expect("select * from kept", "2")
	s.must("create table refusing (id int references dst)", "insert into refusing values (3)")
	s.fails("23503", "refresh streaming table dst full")
}
