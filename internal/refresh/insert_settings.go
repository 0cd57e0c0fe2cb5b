package refresh

import (
	"context"
	_ "embed" // SQL files
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// The settings of Databricks that an INSERT honours. PostgreSQL keeps them, as
// settings of an extension it does not know: SET, SET LOCAL and RESET work.
const (
	settingConstraintCheck = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
	settingDataColumns     = "spark.databricks.delta.replaceWhere.dataColumns.enabled"
	settingOverwriteMode   = "spark.sql.sources.partitionOverwriteMode"
)

// insertSettings are the settings of the session that an INSERT depends on.
type insertSettings struct {
	lexical    rewrite.Lexical
	searchPath string // the session's own
	isolation  string // of a transaction that replaces rows
	checks     bool   // REPLACE WHERE checks what it writes
	dynamic    bool   // INSERT OVERWRITE replaces the partitions it writes to
}

//go:embed insert_settings.sql
var insertSettingsSQL string

// readInsertSettings reads the settings for an INSERT that replaces rows as
// replaces says. A value that another INSERT would fail for means nothing to it.
func readInsertSettings(ctx context.Context, s pgsession.Session, replaces rewrite.Replaced) (insertSettings, error) {
	rows, err := s.Query(ctx, insertSettingsSQL, settingConstraintCheck, settingDataColumns, settingOverwriteMode)
	if err != nil {
		return insertSettings{}, err
	}
	r := rows[0]
	settings := insertSettings{
		lexical:    rewrite.Lexical{BackslashEscapes: r[0].Text == "off"},
		searchPath: r[1].Text,
		isolation:  "repeatable read",
	}
	if settings.lexical.Dialect, err = sessionDialect(ctx, s); err != nil {
		return settings, err
	}
	if r[2].Text == "serializable" {
		settings.isolation = r[2].Text
	}
	switch replaces {
	case rewrite.ReplacesWhere:
		settings.checks, err = constraintCheck(r[3].Text, r[4].Text)
	case rewrite.ReplacesPartition:
		settings.dynamic, err = dynamicOverwrite(r[5].Text)
	}
	return settings, err
}

// constraintCheck reads the settings of REPLACE WHERE, and returns whether it
// checks what it writes.
func constraintCheck(check, dataColumns string) (bool, error) {
	checks, err := booleanSetting(settingConstraintCheck, check)
	if err != nil {
		return false, err
	}
	anyColumn, err := booleanSetting(settingDataColumns, dataColumns)
	if err == nil && !anyColumn {
		err = pgdiag.New("0A000", settingDataColumns+" cannot be false").
			WithHint("REPLACE WHERE takes every column of a table; RESET the setting.")
	}
	return checks, err
}

// dynamicOverwrite reads the mode of INSERT OVERWRITE.
func dynamicOverwrite(mode string) (bool, error) {
	switch strings.ToLower(mode) {
	case "", "static":
		return false, nil
	case "dynamic":
		return true, nil
	}
	return false, invalidSetting(settingOverwriteMode, mode, "static or dynamic")
}

// booleanSetting reads a setting that is true when it is not set.
func booleanSetting(name, value string) (bool, error) {
	switch strings.ToLower(value) {
	case "", "true", "on", "yes", "1":
		return true, nil
	case "false", "off", "no", "0":
		return false, nil
	}
	return false, invalidSetting(name, value, "true or false")
}

func invalidSetting(name, value, want string) *pgdiag.Diagnostic {
	return pgdiag.New("22023", "invalid value for "+name+": "+rewrite.QuoteLiteral(value)).
		WithHint("It is " + want + ".")
}
