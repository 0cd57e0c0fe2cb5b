package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/config"
	"github.com/rwproxy/rwproxy/internal/console"
	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/jobs"
	"github.com/rwproxy/rwproxy/internal/refresh"
	"github.com/rwproxy/rwproxy/server"
)

// stopTimeout is how long the parts without sessions may take to stop.
const stopTimeout = 20 * time.Second

// instance is a running proxy with all that belongs to it.
type instance struct {
	log         *zap.Logger
	upstream    *config.Upstream
	postgres    *embedded.Postgres // nil with an upstream of the user's
	certificate *certificate       // nil without TLS
	tokens      *console.Tokens    // nil without a file of them
	service     *flowstate.Service
	server      *server.Server
	jobs        *jobs.Jobs
	console     *console.Console // nil when it is off

	public atomic.Pointer[url.URL] // where clients reach the API, nil until that is known

	stopMeasuring context.CancelFunc // nil before databases are measured

	failed chan error    // gets one error when a part ends by itself
	closed chan struct{} // closed when stop begins
}

// start starts everything that the settings ask for, and stops what runs when
// a part does not start. A Postgres of the user's need not be up.
func start(ctx context.Context, s *config.Settings, log *zap.Logger) (*instance, error) {
	i := &instance{log: log, failed: make(chan error, 1), closed: make(chan struct{})}
	if err := i.start(ctx, s); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		i.stop(ctx)
		return nil, err
	}
	return i, nil
}

func (i *instance) start(ctx context.Context, s *config.Settings) (err error) {
	if s.TLSCert != "" {
		if i.certificate, err = loadCertificate(s.TLSCert, s.TLSKey); err != nil {
			return err
		}
	}
	if s.APITokens != "" {
		if i.tokens, err = console.LoadTokens(s.APITokens); err != nil {
			return err
		}
	}
	if i.upstream = s.Upstream; i.upstream == nil {
		if err := i.startPostgres(ctx, s.DataDir); err != nil {
			return err
		}
	}
	if i.service, err = flowstate.NewService(i.upstream.Service.ConnString()); err != nil {
		return err
	}
	i.service.HistoryDays = s.HistoryDays
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := console.NewMetrics(registry, version())
	engine := refresh.New(i.service, i.log, metrics)
	engine.StatusURL = i.statusURL
	i.jobs = jobs.New(jobs.Config{Service: i.service, Engine: engine, Logger: i.log, MaxRefreshes: s.MaxRefreshes, ScheduleJitter: s.ScheduleJitter})
	i.service.OnInstall(i.jobs.Serve)
	if err := i.startServer(ctx, s, engine, metrics); err != nil {
		return fmt.Errorf("cannot listen for clients: %w", err)
	}
	i.jobs.Start()
	metrics.ShowTraffic(i.server.Traffic)
	var measuring context.Context
	measuring, i.stopMeasuring = context.WithCancel(context.WithoutCancel(ctx))
	metrics.ShowDatabases(measuring, i.jobs.Databases, i.jobs.Unserved, i.service, i.log)
	if s.HTTP != "" {
		if i.console, err = console.Start(i.consoleConfig(s, engine, registry)); err != nil {
			return fmt.Errorf("cannot listen for HTTP: %w", err)
		}
	}
	i.public.Store(i.publicURL(s))
	i.log.Info("ready", i.description()...)
	return nil
}

// startPostgres starts the embedded Postgres and makes it the upstream.
func (i *instance) startPostgres(ctx context.Context, dataDir string) (err error) {
	i.postgres, err = embedded.Start(ctx, embedded.Config{DataDir: dataDir, Logger: i.log})
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-i.closed:
		case <-i.postgres.Done():
			i.fail(fmt.Errorf("the embedded PostgreSQL ended: %s", i.postgres.LastLog()))
		}
	}()
	i.upstream, err = config.NewUpstream(i.postgres.URL("postgres"))
	return err
}

func (i *instance) startServer(ctx context.Context, s *config.Settings, engine *refresh.Engine, metrics *console.Metrics) error {
	c := server.Config{
		Listen: s.Listen.Address,
		Upstream: server.Upstream{
			Host:    i.upstream.Host,
			Port:    i.upstream.Port,
			SSLMode: server.SSLMode(i.upstream.SSLMode),
			RootCAs: i.upstream.RootCAs,
		},
		ConnectTimeout: i.upstream.ConnectTimeout,
		MaxConnections: s.MaxConnections,
		ProxyProtocol:  s.ProxyProtocol,
		Verifier:       i.verifier,
		Handler:        handler{engine},
		Logger:         i.log,
		Metrics:        metrics,
	}
	if i.certificate != nil {
		c.TLS = i.certificate.config()
	}
	proxy, err := server.New(c)
	if err != nil {
		return err
	}
	if err := proxy.Start(ctx); err != nil {
		return err
	}
	i.server = proxy
	return nil
}

// fail reports that a part ended by itself; only the first report counts.
func (i *instance) fail(err error) {
	select {
	case i.failed <- err:
	default:
	}
}

// ping asks Postgres for an answer, as the service connection's user. It has a
// connection of its own: the service's may all be at work.
func (i *instance) ping(ctx context.Context) error {
	connection, err := pgx.ConnectConfig(ctx, i.upstream.Service)
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	return connection.Ping(ctx)
}

// reload reads the certificate and the API's tokens again.
func (i *instance) reload() {
	if i.certificate != nil {
		i.reloaded("certificate", i.certificate.reload())
	}
	if i.tokens != nil {
		i.reloaded("API tokens", i.tokens.Reload())
	}
}

func (i *instance) reloaded(what string, err error) {
	if err != nil {
		i.log.Error(what+" not reloaded", zap.Error(err))
		return
	}
	i.log.Info(what + " reloaded")
}

// stop stops everything, in the reverse order of start: sessions and jobs may
// finish what they run until ctx ends, the rest gets a time of its own. It is
// called once.
func (i *instance) stop(ctx context.Context) {
	if i.console != nil {
		i.console.Drain()
	}
	close(i.closed)
	var working sync.WaitGroup
	if i.jobs != nil {
		working.Go(func() { i.jobs.Stop(ctx) })
	}
	if i.stopMeasuring != nil {
		i.stopMeasuring()
	}
	if i.server != nil {
		if err := i.server.Stop(ctx); err != nil {
			i.log.Warn("sessions cut", zap.Error(err))
		}
	}
	working.Wait()
	if i.service != nil {
		i.service.Close()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var err error
	if i.console != nil {
		err = i.console.Stop(ctx)
	}
	if i.postgres != nil {
		err = errors.Join(err, i.postgres.Stop(ctx))
	}
	if err != nil {
		i.log.Warn("not stopped cleanly", zap.Error(err))
	}
}

// url returns the address of a database as clients of the proxy reach it, with
// the service connection's user and password.
func (i *instance) url(database string) *url.URL {
	u := &url.URL{Scheme: "postgres", User: url.User(i.upstream.Service.User), Path: "/" + database}
	if password := i.upstream.Service.Password; password != "" {
		u.User = url.UserPassword(i.upstream.Service.User, password)
	}
	if address := i.server.Addr(); address.Network() == "unix" {
		u.RawQuery = url.Values{"host": {filepath.Dir(address.String())}, "port": {"6432"}}.Encode()
	} else {
		u.Host = address.String()
	}
	return u
}

// description returns where the instance can be reached, for the log.
func (i *instance) description() []zap.Field {
	fields := []zap.Field{
		zap.String(keyVersion, version()),
		zap.Stringer(keyAddress, i.server.Addr()),
		zap.String(keyUpstream, fmt.Sprintf("%s:%d", i.upstream.Host, i.upstream.Port)),
	}
	if i.console != nil {
		fields = append(fields, zap.String(keyHTTPAddress, i.console.Address()))
	}
	if i.postgres != nil {
		fields = append(fields, zap.Int(keyPostgres, i.postgres.Major()), zap.Int(keyPid, i.postgres.Pid()))
	}
	return fields
}
