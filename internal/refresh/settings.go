package refresh

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// The settings of a session that are looked at by name here. The names are
// those of pg_settings.
const (
	settingTimeZone         = "TimeZone"
	settingSearchPath       = "search_path"
	settingStandardStrings  = "standard_conforming_strings"
	settingStatementTimeout = "statement_timeout"
)

// pinned are the settings that a flow keeps from the session it was written
// in: those that change what an expression means. Every refresh runs under
// them, whoever runs it.
var pinned = []string{
	settingTimeZone, "DateStyle", "IntervalStyle", settingSearchPath, settingStandardStrings,
	"array_nulls", "bytea_output", "default_text_search_config", "extra_float_digits", "lc_monetary", "lc_numeric",
	"lc_time", "timezone_abbreviations", "transform_null_equals", "xmlbinary", "xmloption",
}

const (
	// compatSchema holds the Databricks functions that PostgreSQL lacks. It
	// comes last on a flow's search_path: the user's own functions and
	// PostgreSQL's win.
	compatSchema = "rwproxy_compat"
	// ownPath is the search_path of the statements of ours: whoever wrote a
	// flow could else put a function or operator in their way, and it would run
	// with the rights of whoever refreshes.
	ownPath = "pg_catalog"
)

// authorSettings returns the settings of the session to keep with a flow. The
// search_path is resolved: "$user" means the author, whoever refreshes later.
// PostgreSQL's own schema is left out of it, so that it is searched first.
// properties are those of the flow's table.
func authorSettings(ctx context.Context, s pgsession.Session, properties map[string]string) (map[string]string, error) {
	rows, err := s.Query(ctx, `
		select s.name, pg_catalog.current_setting(s.name)
		  from pg_catalog.unnest($1::pg_catalog.text[]) as s (name)`, pinned)
	if err != nil {
		return nil, err
	}
	settings := make(map[string]string, len(rows))
	for _, r := range rows {
		settings[r[0].Text] = r[1].Text
	}
	rows, err = s.Query(ctx, `
		select s.name, pg_catalog.quote_ident(s.name)
		  from pg_catalog.unnest(pg_catalog.current_schemas(false)) as s (name)`)
	if err != nil {
		return nil, err
	}
	var path []string
	for _, r := range rows {
		if r[0].Text != "pg_catalog" && !strings.HasPrefix(r[0].Text, "pg_temp") {
			path = append(path, r[1].Text)
		}
	}
	settings[settingSearchPath] = strings.Join(append(path, compatSchema), ", ")
	dialect, err := dialectOf(ctx, s, properties)
	if err != nil {
		return nil, err
	}
	if dialect != rewrite.Postgres {
		settings[settingDialect] = dialect.String()
	}
	return settings, nil
}

// frame is the time, within a transaction, in which a session runs a statement
// of ours: a flow's settings are pinned, and the search_path is our own.
type frame struct {
	session pgsession.Session
	path    string            // of the flow
	own     map[string]string // what the session had
	ends    time.Time         // by the session's statement_timeout; zero for none
	limited bool              // statement_timeout is changed
}

// enter begins a frame for a statement that began at a time. The frame ends
// with leave or, after an error, with the rollback.
func enter(ctx context.Context, s pgsession.Session, flow map[string]string, began time.Time) (*frame, error) {
	settings := make(map[string]string, len(flow))
	for name, value := range flow {
		switch name {
		case settingDialect: // Postgres has no use for it
		case settingSearchPath:
			settings[name] = ownPath
		default:
			settings[name] = value
		}
	}
	f := &frame{session: s, path: flow[settingSearchPath]}
	var err error
	if f.own, err = setLocal(ctx, s, settings); err != nil {
		return nil, err
	}
	rows, err := s.Query(ctx, "select pg_catalog.current_setting('statement_timeout')")
	if err != nil {
		return nil, err
	}
	if f.own[settingStatementTimeout] = rows[0][0].Text; rows[0][0].Text == "0" {
		return f, nil
	}
	rows, err = s.Query(ctx, "select s.setting from pg_catalog.pg_settings s where s.name = 'statement_timeout'")
	if err != nil {
		return nil, err
	}
	milliseconds, err := strconv.ParseInt(rows[0][0].Text, 10, 64)
	if err != nil {
		return nil, err
	}
	f.ends = began.Add(time.Duration(milliseconds) * time.Millisecond)
	return f, nil
}

// asFlow runs do under the flow's search_path: what it sends is the author's
// text.
func (f *frame) asFlow(ctx context.Context, do func() error) error {
	if err := f.setPath(ctx, f.path); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return f.setPath(ctx, ownPath)
}

func (f *frame) setPath(ctx context.Context, path string) error {
	_, err := f.session.Exec(ctx, "select pg_catalog.set_config('search_path', $1, true)", path)
	return err
}

// limit leaves the next statement what is left of the session's
// statement_timeout: to the client a refresh is one statement.
func (f *frame) limit(ctx context.Context) error {
	if f.ends.IsZero() {
		return nil
	}
	left := time.Until(f.ends).Milliseconds()
	if left <= 0 {
		return pgdiag.New("57014", "canceling statement due to statement timeout")
	}
	f.limited = true
	_, err := f.session.Exec(ctx, "select pg_catalog.set_config('statement_timeout', $1, true)", left)
	return err
}

// withSettings runs do under settings of a transaction, and puts those back
// that the session had.
func withSettings(ctx context.Context, s pgsession.Session, settings map[string]string, do func() error) error {
	own, err := setLocal(ctx, s, settings)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err // which ends the transaction, and with it the settings
	}
	_, err = setLocal(ctx, s, own)
	return err
}

// setLocal sets settings until the end of the transaction, and returns the
// values that they had.
func setLocal(ctx context.Context, s pgsession.Session, settings map[string]string) (map[string]string, error) {
	names, values := make([]string, 0, len(settings)), make([]string, 0, len(settings))
	for name, value := range settings {
		names, values = append(names, name), append(values, value)
	}
	// For each row the old value is read before the new one is set.
	rows, err := s.Query(ctx, `
		select s.name, pg_catalog.current_setting(s.name), pg_catalog.set_config(s.name, s.value, true)
		  from pg_catalog.jsonb_each_text(
		           pg_catalog.jsonb_object($1::pg_catalog.text[], $2::pg_catalog.text[])) as s (name, value)`, names, values)
	if err != nil {
		return nil, err
	}
	own := make(map[string]string, len(rows))
	for _, r := range rows {
		own[r[0].Text] = r[1].Text
	}
	return own, nil
}

// leave puts the session's own settings back: SET LOCAL outlives a savepoint,
// and the client's later statements must not see ours.
func (f *frame) leave(ctx context.Context) error {
	own := maps.Clone(f.own)
	if !f.limited {
		delete(own, settingStatementTimeout)
	}
	_, err := setLocal(ctx, f.session, own)
	return err
}

// noticeLevels are the values of client_min_messages that let a notice
// through.
var noticeLevels = map[string]bool{
	"debug5": true, "debug4": true, "debug3": true, "debug2": true, "debug1": true, "log": true, "notice": true,
}

// notify sends a notice, if the client wants to see notices.
func notify(ctx context.Context, c Client, d *pgdiag.Diagnostic) error {
	rows, err := c.Query(ctx, "select pg_catalog.current_setting('client_min_messages')")
	if err != nil {
		return err
	}
	level := rows[0][0].Text
	if noticeLevels[level] || level == "warning" && d.Severity == "WARNING" {
		c.Notice(d)
	}
	return nil
}

func notifyAll(ctx context.Context, c Client, notices []*pgdiag.Diagnostic) error {
	for _, n := range notices {
		if err := notify(ctx, c, n); err != nil {
			return err
		}
	}
	return nil
}
