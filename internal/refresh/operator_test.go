package refresh_test

import "testing"

func TestAnOperatorOfTheUsersOwnKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table src (a int, b int)", "insert into src values (1, 4), (null, null)",
		"create streaming table plain flow replace where a <=> b or b = 4 by name select a, b, a <=> b as same from src",
		"create function distance(int, int) returns int language sql immutable as 'select abs($1 - $2)'",
		"create operator <=> (leftarg = int, rightarg = int, function = distance)",
		"create streaming table own flow replace where a <=> b = 3 by name select a, b, a <=> b as far from src",
	)
	s.expect("select * from plain order by a", "1 4 f", "null null t")
	s.expect("select * from own", "1 4 3")
}
