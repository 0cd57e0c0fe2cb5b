package refresh_test

import "testing"

func TestAnOverrideThatCannotBeReadIsRecordedAsItWasTyped(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.fails("42703", "refresh streaming table by_day where  nope = 'é' ")
	s.expect("select state, window_predicate, error ~ 'nope' from rwproxy.refreshes where kind = 'override'", "FAILED nope = 'é' t")
}
