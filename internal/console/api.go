package console

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

// Limits of calls. A call holds one session on Postgres at a time.
const (
	maxCalls     = 16
	callTimeout  = 25 * time.Second // less than requestTimeout, so that an answer can still be written
	slotTimeout  = 5 * time.Second  // how long a call waits for its turn
	maxBodyBytes = 256 << 10
)

// Engine starts updates; refresh.Engine does.
type Engine interface {
	StartUpdate(ctx context.Context, c refresh.Client, u refresh.Update) (id string, err error)
}

// APIConfig is what the pipelines API works with.
type APIConfig struct {
	// Connect opens a session of a role with its password, in a database.
	Connect func(ctx context.Context, role, password, database string) (*pgx.Conn, error)
	// Home is a database to log in to when a call names none that is known.
	Home    string
	Service *flowstate.Service
	Engine  Engine
	Tokens  *Tokens  // nil for none
	URL     *url.URL // where clients reach the API, nil if that is not known
}

// api is the REST API of Databricks pipelines. A database with flows is a
// pipeline, and a call acts with the rights of the role that makes it: its
// statements run in a session of that role, on the views that everybody reads,
// so that Postgres decides what it sees.
type api struct {
	config   APIConfig
	log      *zap.Logger
	throttle *throttle
	catalog  *catalog
	slots    chan struct{} // one token for each call that runs
}

func newAPI(c APIConfig, log *zap.Logger) *api {
	return &api{
		config:   c,
		log:      log,
		throttle: newThrottle(time.Now),
		catalog:  newCatalog(c.Service),
		slots:    make(chan struct{}, maxCalls),
	}
}

// handler is a resource's: it returns what is answered as JSON.
type handler func(ctx context.Context, c *caller, r *http.Request) (any, error)

// register adds the API's resources to mux. Whatever else lies below /api/ is
// answered in JSON too.
func (a *api) register(mux *http.ServeMux) {
	for pattern, h := range map[string]handler{
		"GET /api/2.0/pipelines":                                   a.listPipelines,
		"GET /api/2.0/pipelines/{pipeline_id}":                     a.getPipeline,
		"POST /api/2.0/pipelines/{pipeline_id}/stop":               a.stop,
		"GET /api/2.0/pipelines/{pipeline_id}/events":              a.listEvents,
		"GET /api/2.0/pipelines/{pipeline_id}/updates":             a.listUpdates,
		"POST /api/2.0/pipelines/{pipeline_id}/updates":            a.startUpdate,
		"GET /api/2.0/pipelines/{pipeline_id}/updates/{update_id}": a.getUpdate,
	} {
		mux.Handle(pattern, a.call(h))
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, &apiError{status: http.StatusNotFound, code: "ENDPOINT_NOT_FOUND", message: "there is no such API"})
	})
}

// call is what all resources share: who calls, limits, the log and the answer.
func (a *api) call(h handler) http.Handler {
	run := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		c, answer, err := a.run(ctx, h, r)
		failure := asAPIError(err)
		switch {
		case failure != nil:
			writeError(w, failure)
		default:
			writeJSON(w, http.StatusOK, answer)
		}
		a.record(r, c, failure, err, time.Since(began))
	})
	return crossOrigin(run)
}

func (a *api) run(ctx context.Context, h handler, r *http.Request) (c *caller, answer any, err error) {
	if !a.private(r) {
		return nil, nil, errInsecure
	}
	if c, err = a.identify(r); err != nil {
		return nil, nil, err
	}
	if err := a.enter(ctx); err != nil {
		return c, nil, err
	}
	defer func() { <-a.slots }()
	answer, err = h(ctx, c, r)
	return c, answer, err
}

// monitors lets members of pg_monitor alone see what next shows.
func (a *api) monitors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		c, _, err := a.run(ctx, a.checkMonitor, r)
		failure := asAPIError(err)
		if failure != nil {
			writeError(w, failure)
		} else {
			next.ServeHTTP(w, r)
		}
		a.record(r, c, failure, err, time.Since(began))
	})
}

func (a *api) checkMonitor(ctx context.Context, c *caller, _ *http.Request) (any, error) {
	conn, err := a.connect(ctx, c, a.config.Home)
	if err != nil {
		return nil, err
	}
	defer closeConn(conn)
	var member bool
	err = conn.QueryRow(ctx, "select pg_catalog.pg_has_role('pg_monitor', 'USAGE')").Scan(&member)
	if err == nil && !member {
		err = &apiError{status: http.StatusForbidden, code: codeDenied, message: "metrics are for members of pg_monitor"}
	}
	return nil, err
}

// enter waits for a slot.
func (a *api) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()
	select {
	case a.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

// private reports whether nobody between the client and us reads a call:
// credentials are taken over TLS, or on this machine. In plain HTTP the name
// that the client used must be this machine's too, or the public one of a proxy
// in front: else a web page whose name was made to point here could call.
func (a *api) private(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" || a.config.URL != nil && host == a.config.URL.Hostname() {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// crossOrigin refuses calls that another site's page has a browser make.
func crossOrigin(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, &apiError{status: http.StatusForbidden, code: codeDenied, message: "the call comes from a web page of another site"})
	}))
	return protection.Handler(next)
}

// record logs a call, without anything that it carried.
func (a *api) record(r *http.Request, c *caller, failure *apiError, err error, took time.Duration) {
	status := http.StatusOK
	if failure != nil {
		status = failure.status
	}
	fields := []zap.Field{
		zap.String(keyCall, r.Pattern),
		zap.Int(keyStatus, status),
		zap.Duration(keyDuration, took),
		zap.String(keyAddress, r.RemoteAddr),
	}
	if c != nil {
		fields = append(fields, zap.String(keyRole, c.role))
	}
	switch {
	case errors.Is(err, context.Canceled):
		a.log.Debug("call canceled by its client", fields...)
	case errors.Is(err, errNoCredentials):
		a.log.Debug("call refused", append(fields, zap.Error(err))...)
	case status >= http.StatusInternalServerError:
		a.log.Error("call failed", append(fields, zap.Error(err))...)
	case status == http.StatusUnauthorized || status == http.StatusTooManyRequests:
		a.log.Warn("call refused", append(fields, zap.Error(err))...)
	case r.Method == http.MethodPost:
		a.log.Info("call answered", fields...)
	default:
		a.log.Debug("call answered", fields...)
	}
}

// Log keys.
const (
	keyAddress  = "address"
	keyCall     = "call"
	keyDatabase = "database"
	keyDuration = "duration"
	keyRole     = "role"
	keyStatus   = "status"
)
