package cli

import (
	"context"
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rwproxy/rwproxy/internal/config"
	"github.com/rwproxy/rwproxy/internal/console"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

// consoleConfig returns what the console is to show.
func (i *instance) consoleConfig(s *config.Settings, engine *refresh.Engine, metrics prometheus.Gatherer) console.Config {
	c := console.Config{
		Address:        s.HTTP,
		Ready:          i.ping,
		Metrics:        metrics,
		PrivateMetrics: !s.HTTPPublicMetrics,
		API: &console.APIConfig{
			Connect: func(ctx context.Context, role, password, database string) (*pgx.Conn, error) {
				return pgx.ConnectConfig(ctx, i.upstream.Session(role, password, database))
			},
			Home:    i.upstream.Service.Database,
			Service: i.service,
			Engine:  engine,
			Tokens:  i.tokens,
			URL:     s.HTTPURL,
		},
		Logger: i.log,
	}
	if i.certificate != nil {
		c.TLS = i.certificate.config()
	}
	return c
}

// publicURL returns where clients reach the API, nil if that cannot be told: its
// address may be one that means all.
func (i *instance) publicURL(s *config.Settings) *url.URL {
	if s.HTTPURL != nil || i.console == nil {
		return s.HTTPURL
	}
	host, _, err := net.SplitHostPort(i.console.Address())
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsUnspecified() {
		return nil
	}
	u := &url.URL{Scheme: "http", Host: i.console.Address()}
	if i.certificate != nil {
		u.Scheme = "https"
	}
	return u
}

// statusURL returns where the API tells how an update is getting on, "" if that
// is not known.
func (i *instance) statusURL(database, updateID string) string {
	base := i.public.Load()
	if base == nil {
		return ""
	}
	return strings.TrimSuffix(base.String(), "/") + "/api/2.0/pipelines/" + url.PathEscape(database) + "/updates/" + updateID
}
