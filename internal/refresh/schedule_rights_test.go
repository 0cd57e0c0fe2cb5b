package refresh_test

import (
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

// throughPlainService has the database served by a role that is no superuser,
// and returns its name.
func (d *database) throughPlainService() string {
	d.t.Helper()
	super := d.connect()
	name, _ := d.role(super, "create on database "+d.name())
	super.must("alter role " + name + " createrole")
	plain, err := url.Parse(d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	plain.User = url.User(name)
	service, err := flowstate.NewService(plain.String())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(service.Close)
	d.service, d.engine = service, refresh.New(service, zaptest.NewLogger(d.t), d.counts)
	return name
}

func TestAScheduleThatCouldNotRunIsRefused(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.throughPlainService()
	super := d.connect()
	super.must("create streaming table dst")
	for _, sql := range []string{
		"create streaming table other schedule every 1 hour",
		"create or refresh streaming table dst schedule every 1 hour",
		"alter streaming table dst add schedule every 1 hour",
	} {
		refusedForSuperuser(t, super.fails("42501", sql), sql, "every 1 hour")
	}
	super.must("create table src (d int)", "create streaming table read flow replace where true by name select d from src")
	refusedForSuperuser(t, super.fails("42501", "refresh streaming table read async"), "", "")
	super.expect("select count(*) from rwproxy.streaming_tables where schedule is not null", "0")
}

func refusedForSuperuser(t *testing.T, d *pgdiag.Diagnostic, sql, at string) {
	t.Helper()
	if d == nil || !strings.HasPrefix(d.Message, "rwproxy may not run refreshes as role") {
		t.Fatalf("%s: got %v", sql, d)
	}
	if strings.Contains(d.Hint, "CREATEROLE") || !strings.Contains(d.Hint, "OWNER TO") || strings.Contains(d.Hint, "ASYNC") != (sql == "") {
		t.Errorf("%s: hint %q", sql, d.Hint)
	}
	if sql != "" && (d.Position == 0 || !strings.HasSuffix(sql[d.Position-1:], at)) {
		t.Errorf("%s: at %d", sql, d.Position)
	}
}
