package jobs

import (
	"fmt"
	"testing"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// flows is a database with flows whose jobs can be held while they insert.
type flows struct {
	*session
	url  string
	name string // of the database
}

// held is the advisory lock that the triggers of a target wait for.
const held = 4711

// newFlows makes a database with a number of flows: target_1 and so on. Each
// row that a refresh inserts is counted, with the refresh's role.
func newFlows(t *testing.T, i *instance, number int) *flows {
	t.Helper()
	return newFlowsIn(t, i, pgtest.Database(t), number)
}

func newFlowsIn(t *testing.T, i *instance, url string, number int) *flows {
	t.Helper()
	f := &flows{connect(t, url), url, databaseOf(t, url)}
	f.must(`create table source (id integer)`, `insert into source values (1)`,
		`create table effects (target text, by name, at timestamptz)`,
		fmt.Sprintf(`create function note() returns trigger language plpgsql security definer as $$
			begin
				insert into effects values (tg_table_name, session_user, clock_timestamp());
				perform pg_advisory_xact_lock_shared(%d);
				return null;
			end $$`, held))
	for n := 1; n <= number; n++ {
		f.through(i, fmt.Sprintf(`create streaming table target_%d flow replace where true by name select id from source`, n))
		f.must(fmt.Sprintf(`create trigger note after insert on target_%d for each row execute function note()`, n))
	}
	f.must(`insert into source values (2)`)
	return f
}

// async asks for a refresh of a target that nobody waits for, and returns its
// id.
func (f *flows) async(i *instance, target string) string {
	f.t.Helper()
	rows := f.through(i, `refresh streaming table `+target+` full async`)
	return rows[0][0].Text
}

// hold makes jobs wait in the middle of their INSERT until release.
func (f *flows) hold() (release func()) {
	f.t.Helper()
	holder := connect(f.t, f.url)
	holder.must(fmt.Sprintf(`select pg_advisory_lock(%d)`, held))
	return func() {
		f.t.Helper()
		holder.must(fmt.Sprintf(`select pg_advisory_unlock(%d)`, held))
	}
}

// holds waits until a number of jobs is held.
func (f *flows) holds(number int) {
	f.t.Helper()
	f.until(`select count(*) from pg_stat_activity where datname = current_database() and application_name = 'rwproxy job'
		and wait_event = 'advisory'`, fmt.Sprint(number))
}

// state is what history says of a refresh.
func state(id string) string {
	return `select state, attempt from rwproxy.refreshes where refresh_id = '` + id + `'`
}

// effects counts what jobs have inserted into a target and committed; a
// refresh inserts two rows.
func effects(target string) string {
	return `select count(*) from effects where target = '` + target + `'`
}
