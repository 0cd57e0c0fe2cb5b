package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/config"
)

type uninstallCommand struct {
	Config   *string `name:"config" placeholder:"FILE" help:"A YAML file with the settings of the proxy ($RWPROXY_CONFIG)."`
	Upstream *string `name:"upstream" placeholder:"URL" help:"The database to remove rwproxy from, a libpq URL or keyword string, with the service connection's user and password ($RWPROXY_UPSTREAM)."`
}

// Run drops rwproxy's schemas and triggers from one database, and the roles of
// the server that refreshes ran as.
func (c *uninstallCommand) Run(ctx context.Context, p *program) error {
	settings, err := config.Load(config.Flags{Config: c.Config, Upstream: c.Upstream}, p.lookup)
	if err != nil {
		return err
	}
	if settings.Upstream == nil {
		return errors.New("uninstall needs --upstream: the database to remove rwproxy from")
	}
	s := notify(ctx)
	defer s.release()
	conn, err := pgx.ConnectConfig(s.first, settings.Upstream.Service)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := flowstate.Uninstall(s.first, conn); err != nil {
		return plain(err)
	}
	if err := flowstate.DropRunners(s.first, conn); err != nil {
		return plain(err)
	}
	_, err = fmt.Fprintf(p.stdout, "rwproxy is removed from database %s; its tables are kept\n", settings.Upstream.Service.Database)
	return err
}
