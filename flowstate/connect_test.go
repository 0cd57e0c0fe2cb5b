package flowstate_test

import (
	"context"
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

func TestASessionOfTheServiceIsToldThatTheSchemasWereInstalled(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	database := connect(t, url, "").conn.Config().Database
	service := newService(t, url)
	var installed []string
	service.OnInstall(func(database string) { installed = append(installed, database) })
	var heard []string
	conn, err := service.Connect(t.Context(), database, func(payload string) { heard = append(heard, payload) })
	ok(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "listen rwproxy")
	ok(t, err)

	for range 2 { // the second time there is nothing to do
		ok(t, service.EnsureInstalled(t.Context(), database))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ok(t, conn.PgConn().WaitForNotification(ctx))
	if _, err := conn.Exec(t.Context(), "select"); err != nil || len(heard) != 1 || heard[0] != "installed" {
		t.Errorf("heard %q, %v", heard, err)
	}
	if len(installed) != 2 || installed[0] != database {
		t.Errorf("told of %q", installed)
	}

	if _, err := service.Connect(t.Context(), "no_such_database", nil); pgdiag.Code(err) != "3D000" {
		t.Errorf("got %v, want what Postgres says", err)
	}
	service.Close()
	if _, err := service.Connect(t.Context(), database, nil); pgdiag.Code(err) != "57P01" {
		t.Errorf("after Close: %v", err)
	}
}
