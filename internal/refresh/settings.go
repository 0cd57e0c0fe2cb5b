package refresh

import (
	"context"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// A flow keeps the session settings that its query and predicate were written
// under, and every refresh runs under them, whoever runs it. The names are
// those of pg_settings.
const (
	settingTimeZone        = "TimeZone"
	settingDateStyle       = "DateStyle"
	settingIntervalStyle   = "IntervalStyle"
	settingSearchPath      = "search_path"
	settingStandardStrings = "standard_conforming_strings"
)

// compatSchema holds the Databricks functions that PostgreSQL lacks. It comes
// last on a flow's search_path: the user's own functions and PostgreSQL's win.
const compatSchema = "rwproxy_compat"

// authorSettings returns the settings of the session to keep with a flow. The
// search_path is resolved: "$user" means the author, whoever refreshes later.
func authorSettings(ctx context.Context, s pgsession.Session) (map[string]string, error) {
	rows, err := s.Query(ctx, `
		select current_setting('TimeZone'), current_setting('DateStyle'), current_setting('IntervalStyle'),
		       (select coalesce(string_agg(quote_ident(name) || ', ', '' order by place), '')
		          from unnest(current_schemas(false)) with ordinality as path (name, place)),
		       current_setting('standard_conforming_strings')`)
	if err != nil {
		return nil, err
	}
	r := rows[0]
	return map[string]string{
		settingTimeZone:        r[0].Text,
		settingDateStyle:       r[1].Text,
		settingIntervalStyle:   r[2].Text,
		settingSearchPath:      r[3].Text + compatSchema,
		settingStandardStrings: r[4].Text,
	}, nil
}

// pin sets a flow's settings for the rest of the transaction and returns what
// puts the session's own back: SET LOCAL outlives a savepoint, and in a
// client's transaction the client's later statements must not see them. After
// an error nothing need be put back, the rollback does.
func pin(ctx context.Context, s pgsession.Session, settings map[string]string) (restore func(context.Context) error, err error) {
	rows, err := s.Query(ctx, `
		select current_setting('TimeZone'), current_setting('DateStyle'), current_setting('IntervalStyle'),
		       current_setting('search_path'), current_setting('standard_conforming_strings')`)
	if err != nil {
		return nil, err
	}
	own := rows[0]
	if err := setLocal(ctx, s, settings[settingTimeZone], settings[settingDateStyle], settings[settingIntervalStyle],
		settings[settingSearchPath], settings[settingStandardStrings]); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return setLocal(ctx, s, own[0].Text, own[1].Text, own[2].Text, own[3].Text, own[4].Text)
	}, nil
}

func setLocal(ctx context.Context, s pgsession.Session, timeZone, dateStyle, intervalStyle, searchPath, standardStrings string) error {
	_, err := s.Exec(ctx, `
		select set_config('TimeZone', $1, true), set_config('DateStyle', $2, true), set_config('IntervalStyle', $3, true),
		       set_config('search_path', $4, true), set_config('standard_conforming_strings', $5, true)`,
		timeZone, dateStyle, intervalStyle, searchPath, standardStrings)
	return err
}
