// Package console is rwproxy's HTTP side: whether the process is alive,
// whether its Postgres can be reached, its metrics, and the pipelines API.
//
//	GET /healthz   200 as long as the process serves
//	GET /readyz    200 when Postgres answers, else 503; 503 too while stopping
//	GET /metrics   Prometheus' text format
//	/api/2.0/pipelines/…   the REST API of Databricks pipelines
//
// The first two, and metrics unless it is told otherwise, do not ask who is
// calling. The API always does, and acts with the caller's rights.
//
// It may import internal/jobs, internal/refresh, flowstate, internal/pgsession
// and internal/pgdiag.
package console

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"golang.org/x/net/netutil"
)

// readyTimeout is how long Postgres may take to answer for /readyz.
const readyTimeout = 2 * time.Second

// Limits of a request, against clients that are slow on purpose.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 30 * time.Second
	idleTimeout    = time.Minute
	maxHeaderBytes = 32 << 10 // a page token holds a filter
	maxConnections = 256
)

// Config is what a console shows.
type Config struct {
	// Address is a host:port to listen on.
	Address string
	// Ready returns nil when Postgres answers. It is called for each /readyz.
	Ready func(ctx context.Context) error
	// Metrics are shown under /metrics.
	Metrics prometheus.Gatherer
	// PrivateMetrics says that /metrics is for members of pg_monitor only, who
	// log in as for the API.
	PrivateMetrics bool
	// TLS is nil for plain HTTP, over which credentials are taken on loopback
	// addresses only.
	TLS *tls.Config
	// API is nil for none.
	API    *APIConfig
	Logger *zap.Logger
}

// Console is the HTTP server.
type Console struct {
	config   Config
	server   *http.Server
	listener net.Listener
	draining atomic.Bool
	done     chan struct{} // closed when the serving goroutine has ended
}

// Start listens and serves until Stop.
func Start(c Config) (*Console, error) {
	listener, err := net.Listen("tcp", c.Address)
	if err != nil {
		return nil, err
	}
	console := &Console{config: c, listener: netutil.LimitListener(listener, maxConnections), done: make(chan struct{})}
	if c.TLS != nil {
		console.listener = tls.NewListener(console.listener, c.TLS)
	}
	console.server = &http.Server{
		Handler:           console.handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          zap.NewStdLog(c.Logger),
	}
	go func() {
		defer close(console.done)
		if err := console.server.Serve(console.listener); !errors.Is(err, http.ErrServerClosed) {
			c.Logger.Error("console stopped", zap.Error(err))
		}
	}()
	return console, nil
}

// Address returns the host:port that the console listens on.
func (c *Console) Address() string { return c.listener.Addr().String() }

// Drain makes /readyz answer 503 from now on, so that a balancer sends new
// clients elsewhere while sessions finish.
func (c *Console) Drain() { c.draining.Store(true) }

// Stop lets running requests finish until ctx ends, then cuts them. It is safe
// to call twice.
func (c *Console) Stop(ctx context.Context) error {
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = c.server.Close()
	}
	<-c.done
	return err
}

func (c *Console) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", c.ready)
	metrics := promhttp.HandlerFor(c.config.Metrics, promhttp.HandlerOpts{ErrorLog: zap.NewStdLog(c.config.Logger)})
	if c.config.API != nil {
		api := newAPI(*c.config.API, c.config.Logger)
		api.register(mux)
		if c.config.PrivateMetrics {
			metrics = api.monitors(metrics)
		}
	}
	mux.Handle("GET /metrics", metrics)
	return mux
}

func (c *Console) ready(w http.ResponseWriter, r *http.Request) {
	if c.draining.Load() {
		answer(w, http.StatusServiceUnavailable, "stopping")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := c.config.Ready(ctx); err != nil {
		// The reason names hosts and users, which the caller need not know.
		c.config.Logger.Debug("postgres not ready", zap.Error(err))
		answer(w, http.StatusServiceUnavailable, "postgres does not answer")
		return
	}
	answer(w, http.StatusOK, "ok")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // the caller may be gone
}
