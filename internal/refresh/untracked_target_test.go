package refresh_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

func TestATargetThatCannotBeTrackedIsTheReason(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	service := d.throughPlainService()
	s := d.connect()
	s.must("begin")
	s.joined = true
	s.must("create table src (d int)", "insert into src values (1)",
		"create streaming table dst flow replace where true by name select d from src")
	s.joined = false
	s.must("commit")
	for _, table := range []string{"public.src", "public.dst"} {
		want := "changes of " + table + ` cannot be recorded: rwproxy's service role "` + service + `" is not a member of the owner of ` + table
		found := false
		for _, n := range s.notices {
			found = found || n.Message == want && n.Hint == "ALTER TABLE "+table+" OWNER TO a role that is no superuser, and GRANT that one TO "+service+"."
		}
		if !found {
			t.Errorf("no notice: %s\nin %v", want, s.notices)
		}
	}
	s.must("refresh streaming table dst")
	s.expect("select reason from rwproxy.refreshes where state = 'COMPLETED' order by requested_at desc limit 1", "TARGET_NOT_TRACKED")
	plan := s.shown("explain refresh streaming table dst")
	if !slices.ContainsFunc(plan, func(line string) bool {
		return strings.HasPrefix(line, "  Target public.dst: not tracked: rwproxy's service role")
	}) {
		t.Errorf("the plan is\n%s", strings.Join(plan, "\n"))
	}
	owner, _ := d.role(s)
	s.must("alter table dst owner to " + owner)
	hint := "GRANT " + owner + " TO " + service + "."
	s.notices = nil
	s.must("create streaming table dst2 flow replace where true by name select d from dst")
	if !slices.ContainsFunc(s.notices, func(n *pgdiag.Diagnostic) bool { return n.Hint == hint }) {
		t.Errorf("no notice has the hint %s", hint)
	}
	s.must("alter table dst owner to postgres", "drop table dst2", "grant postgres to "+service, "refresh streaming table dst", "refresh streaming table dst")
	s.expect("select technique from rwproxy.refreshes order by requested_at desc limit 1", "NO_OP")
}
