package flowstate

import (
	"context"
	_ "embed" // SQL files
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Work that nobody waits for runs with the rights of whoever asked for it.
// SET ROLE on a service connection would not give it only those: any function
// of a query can RESET ROLE, and deferred triggers and held cursors run at
// COMMIT, outside of whatever could forbid that. So the session itself belongs
// to a login that may do what the role may, and nothing else: the role's
// runner.

// runnerPrefix begins the name of a runner. What follows is the OID of the
// role it runs for, which outlives a rename.
const runnerPrefix = "rwproxy_run_"

// runnerLock lets one session of a database at a time make runners. Sessions of
// other databases do not wait: see inTheWay.
const runnerLock = "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('rwproxy runner', 0))"

// makeAttempts is how often a runner is made when others are in the way.
const makeAttempts = 5

//go:embed runner.sql
var runnerFactsSQL string

// runnerFacts is what the server says of a role and its runner.
type runnerFacts struct {
	OID      uint32
	Exists   bool // the runner
	Safe     bool // it has the rights of the role only
	MayMake  bool // the service may make one
	Super    bool // the role is a superuser
	Version  int
	Identity string // of the cluster
}

// CheckRunner makes the runner of a role in the server of a database, unless it
// is there. Errors: 42704 if there is no such role, 42501 if the service may
// not act for it, 55000 if its runner is not as it was made.
func (s *Service) CheckRunner(ctx context.Context, database, role string) error {
	if role == s.config.User {
		return nil
	}
	_, err := s.ensureRunner(ctx, database, role, false)
	return err
}

// soonNoticed has a server notice soon that nobody is there any more: a closed
// connection in the middle of a query, within half a minute a machine that is
// gone without a word, and after a minute a process that is stopped. Until then
// its locks keep others out.
var soonNoticed = []string{
	"set idle_in_transaction_session_timeout = '" + abandoned + "'; set idle_session_timeout = '" + abandoned + "'",
	"set client_connection_check_interval = '1s'",
	"set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 4",
}

// ConnectRunner opens a session of a role: that is its current_user, also after
// RESET ROLE. Its login is the role's runner, which is made if it is not
// there, or the service's own for the service's role. A query of it ends soon
// after the connection is lost. The caller closes it. Errors as
// [Service.CheckRunner], 28000 if the server does not let the runner in, and
// 08001 if it cannot be reached.
func (s *Service) ConnectRunner(ctx context.Context, database, role string) (*pgx.Conn, error) {
	config := s.config.Copy()
	config.Database = database
	config.RuntimeParams["application_name"] = "rwproxy job"
	for _, limit := range limits {
		delete(config.RuntimeParams, limit) // those of the database hold for refreshes
	}
	if role != s.config.User {
		r, err := s.ensureRunner(ctx, database, role, false)
		if err != nil {
			return nil, err
		}
		config.User, config.Password = r.name, r.password
		config.RuntimeParams["role"] = role
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if notAdmitted(err) && config.User != s.config.User {
		// The password of the service has changed since the runner was made, or
		// an uninstallation has dropped it this moment.
		if _, err := s.ensureRunner(ctx, database, role, true); err != nil {
			return nil, err
		}
		conn, err = pgx.ConnectConfig(ctx, config)
	}
	if err != nil {
		return nil, notLetIn(err, config.User, role, database)
	}
	for _, settings := range soonNoticed {
		// Not every platform of a server has them, and a Unix socket needs but one.
		_, _ = conn.Exec(ctx, settings)
	}
	return conn, nil
}

// runner is the login that runs what a role has asked for.
type runner struct{ role, name, password string }

// ensureRunner returns a role's runner, which is there after it. With renew its
// password is set again.
func (s *Service) ensureRunner(ctx context.Context, database, role string, renew bool) (r runner, err error) {
	err = s.connected(ctx, database, func(conn *pgx.Conn) error {
		facts, err := readRunnerFacts(ctx, conn, role)
		if err != nil {
			return err
		}
		name := fmt.Sprint(runnerPrefix, facts.OID)
		r = runner{role, name, s.runnerPassword(facts.Identity, name)}
		switch {
		case facts.Exists && !facts.Safe:
			return notAsMade(name, role)
		case facts.Exists && !renew:
			return nil
		case !facts.MayMake:
			return s.mayNotBecome(role, facts)
		}
		err = s.makeRunner(ctx, conn, r, renew)
		for n := 1; n < makeAttempts && inTheWay(err); n++ {
			err = s.makeRunner(ctx, conn, r, renew)
		}
		return err
	})
	return r, err
}

func readRunnerFacts(ctx context.Context, conn *pgx.Conn, role string) (runnerFacts, error) {
	rows, err := conn.Query(ctx, runnerFactsSQL, role, runnerPrefix)
	if err != nil {
		return runnerFacts{}, err
	}
	facts, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[runnerFacts])
	if errors.Is(err, pgx.ErrNoRows) {
		return runnerFacts{}, pgdiag.New("42704", fmt.Sprintf("role %q does not exist", role))
	}
	return facts, pgsession.FromPgxError(err)
}

// makeRunner creates a runner unless there is one, whose password it sets again
// with renew. The password is sent as its verifier: a server may log statements.
func (s *Service) makeRunner(ctx context.Context, conn *pgx.Conn, r runner, renew bool) error {
	clause := "null"
	if r.password != "" {
		verifier, err := scramVerifier(r.password)
		if err != nil {
			return err
		}
		clause = rewrite.QuoteLiteral(verifier)
	}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// A client may hold locks of the role, and waits for this.
		if _, err := tx.Exec(ctx, "set local lock_timeout = '10s'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, runnerLock); err != nil {
			return err
		}
		facts, err := readRunnerFacts(ctx, conn, r.role)
		if err != nil {
			return err
		}
		quoted := rewrite.QuoteIdentifier(r.name)
		switch {
		case facts.Exists && !renew:
			return nil
		case facts.Exists:
			_, err = tx.Exec(ctx, "alter role "+quoted+" password "+clause)
			return err
		}
		_, err = tx.Exec(ctx, "create role "+quoted+" login password "+clause+" in role "+rewrite.QuoteIdentifier(r.role))
		return err
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42501" {
		d := s.mayNotBecome(r.role, runnerFacts{})
		return d.WithDetail(refused.Message + ".")
	}
	return err
}

// DropRunners drops the runners of the server, for an uninstallation; a
// database that needs one makes it again. It does nothing if the connection's
// role may not drop roles. Errors: 2BP01 if one owns something.
func DropRunners(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `
		select runner.rolname
		  from pg_catalog.pg_roles runner
		  join pg_catalog.pg_roles own on own.rolname = current_user and (own.rolsuper or own.rolcreaterole)
		 where runner.rolname ~ ('^' || $1 || '[0-9]+$')`, runnerPrefix)
	if err != nil {
		return err
	}
	runners, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, runner := range runners {
		if _, err := conn.Exec(ctx, "drop role if exists "+rewrite.QuoteIdentifier(runner)); err != nil {
			return pgsession.FromPgxError(err)
		}
	}
	return nil
}

// mayNotBecome is about a role that the service cannot make a runner for.
// Without facts the server has refused it by itself.
func (s *Service) mayNotBecome(role string, facts runnerFacts) *pgdiag.Diagnostic {
	d := pgdiag.New("42501", fmt.Sprintf("rwproxy may not run refreshes as role %q", role)).
		WithDetail(fmt.Sprintf("Its service role %q would have to make the login %s<oid> for it.", s.config.User, runnerPrefix))
	service, member := rewrite.QuoteIdentifier(s.config.User), rewrite.QuoteIdentifier(role)
	const createRole = 160000 // from this version on CREATEROLE alone does not do
	switch {
	case facts.Super:
		return d.WithDetail("It is a superuser, whom only a superuser can act for.").
			WithHint("Use a role that is none: it runs what it asks for itself, and the schedules of the tables that ALTER TABLE ... OWNER TO gives it.")
	case facts.Version != 0 && facts.Version < createRole:
		return d.WithHint(fmt.Sprintf("ALTER ROLE %s CREATEROLE.", service))
	}
	return d.WithHint(fmt.Sprintf("ALTER ROLE %s CREATEROLE and GRANT %s TO %s WITH ADMIN OPTION.", service, member, service))
}

func notAsMade(name, role string) error {
	return pgdiag.New("55000", fmt.Sprintf("role %q is not as rwproxy made it", name)).
		WithDetail(fmt.Sprintf("It is to log in, to be a member of %q alone, and to have no attribute beyond.", role)).
		WithHint("Drop it: rwproxy makes it again.")
}

// inTheWay reports that another database's session has made the same role, or
// changed it, at the same moment.
func inTheWay(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case "23505", "42710", "XX000": // XX000 is "tuple concurrently updated"
		return true
	}
	return false
}

func notAdmitted(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "28P01" || refused.Code == "28000")
}

// notLetIn says what to change when a server refuses the login of a runner.
func notLetIn(err error, runner, role, database string) error {
	var refused *pgconn.PgError
	switch {
	case !errors.As(err, &refused):
		return pgdiag.New("08001", fmt.Sprintf("rwproxy could not connect to database %q as %q", database, runner))
	case notAdmitted(err):
		return pgdiag.New("28000", fmt.Sprintf("rwproxy could not log in as %q to run refreshes of role %q", runner, role)).
			WithDetail(refused.Message + ".").
			WithHint("Let it in with pg_hba.conf, by scram-sha-256, from where rwproxy connects.")
	}
	return pgsession.FromPgxError(refused)
}
