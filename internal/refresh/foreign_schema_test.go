package refresh_test

import "testing"

func TestStatementsSayWhoseTheSchemasAre(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	s.must("create table src (d int)", "create streaming table dst flow replace where true by name select d from src")
	other, _ := d.role(s)
	s.must("alter schema rwproxy owner to " + other)
	d.throughPlainService()
	s = d.connect()
	for _, sql := range []string{
		"refresh streaming table dst",
		"refresh streaming table dst async",
		"describe dst",
		"show create table dst",
		"alter streaming table dst drop schedule",
	} {
		if got := s.fails("42501", sql); got == nil || got.Message != `schema "rwproxy" is owned by role "`+other+`"` {
			t.Errorf("%s: %v", sql, got)
		}
	}
}
