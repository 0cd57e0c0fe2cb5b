package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// caller is who makes a call. A token proves its role at once. What a password
// is worth Postgres says, whenever a session is opened with it.
type caller struct {
	role     string
	password string
	byToken  bool
	pair     pair
}

// identify reads the credentials of a call.
func (a *api) identify(r *http.Request) (*caller, error) {
	address := source(r.RemoteAddr)
	scheme, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		if a.config.Tokens != nil {
			if role, found := a.config.Tokens.role(strings.TrimSpace(credentials)); found {
				return &caller{role: role, byToken: true, pair: pair{address, role}}, nil
			}
		}
		if wait := a.throttle.rejected(address); wait > 0 {
			return nil, throttled(wait)
		}
		return nil, unauthenticated(errors.New("no such token"))
	case strings.EqualFold(scheme, "Basic"):
		role, password, ok := r.BasicAuth()
		if !ok || role == "" || len(role) > maxName || strings.ContainsRune(role+password, 0) {
			return nil, unauthenticated(errors.New("not a role and a password"))
		}
		return &caller{role: role, password: password, pair: pair{address, role}}, nil
	}
	return nil, errNoCredentials
}

// connect opens a session of the caller's in a database.
func (a *api) connect(ctx context.Context, c *caller, database string) (*pgx.Conn, error) {
	if c.byToken {
		return a.connectRunner(ctx, c, database)
	}
	attempt, wait := a.throttle.begin(c.pair)
	if attempt == nil {
		return nil, throttled(wait)
	}
	conn, err := a.config.Connect(ctx, c.role, c.password, database)
	switch {
	case authenticated(err):
		attempt.succeeded()
		if code(err) == undefinedDatabase {
			err = errNoPipeline
		}
		return conn, err
	case rejected(err):
		return nil, unauthenticated(err)
	}
	attempt.untried()
	return nil, unreachable(err)
}

// connectRunner is connect for a token's role. The service, which opens the
// session, is not asked for a database that there is not.
func (a *api) connectRunner(ctx context.Context, c *caller, database string) (*pgx.Conn, error) {
	databases, err := a.config.Service.ConnectableDatabases(ctx, c.role, nil)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(databases, database) {
		return nil, errNoPipeline
	}
	conn, err := a.config.Service.ConnectRunner(ctx, database, c.role)
	if pgdiag.Code(err) == "42704" {
		return nil, unauthenticated(err) // the role is gone, its token is not
	}
	return conn, err
}

// prove makes sure that the caller is who it says, where no session is needed.
func (a *api) prove(ctx context.Context, c *caller) error {
	if c.byToken {
		return nil
	}
	conn, err := a.connect(ctx, c, a.config.Home)
	if conn != nil {
		closeConn(conn)
	}
	if authenticated(err) {
		return nil
	}
	return err
}

// The errors with which Postgres refuses a session after it has accepted the
// password.
const (
	undefinedDatabase     = "3D000"
	insufficientPrivilege = "42501"
)

func code(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// authenticated reports whether Postgres has accepted the password.
func authenticated(err error) bool {
	return err == nil || errors.Is(err, errNoPipeline) || code(err) == undefinedDatabase || code(err) == insufficientPrivilege
}

// rejected reports whether it is the credentials that it did not accept.
func rejected(err error) bool { return strings.HasPrefix(code(err), "28") }

// unreachable hides from a client where Postgres is.
func unreachable(err error) error {
	if code(err) != "" || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &apiError{
		status: http.StatusServiceUnavailable, code: codeUnavailable, retryAfter: time.Second,
		message: "the database cannot be reached", cause: err,
	}
}
