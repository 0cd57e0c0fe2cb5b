package refresh

import (
	"fmt"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// relocate puts the position of an error that Postgres reported in a statement
// holding a translated text, at prefix bytes, into the client's own statement.
// It is dropped when it lies in what rwproxy has added.
func relocate(err error, statement string, t rewrite.Translation, prefixCharacters int) error {
	return pgdiag.Edited(inDialect(err), func(d *pgdiag.Diagnostic) {
		if d.Position == 0 {
			return
		}
		if d.Position -= prefixCharacters; d.Position < 1 {
			d.Position = 0
			return
		}
		*d = *t.Relocated(d, statement)
	})
}

// originPosition is the position in statement of character position of t.SQL,
// 0 when it has none.
func originPosition(statement string, t rewrite.Translation, position int) int {
	if position < 1 {
		return 0
	}
	offset := t.Origin(position)
	if offset < 0 || offset > len(statement) {
		return 0
	}
	return rewrite.CharPosition(statement, offset)
}

// withoutPosition drops a position that would point into text of ours.
func withoutPosition(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) { d.Position = 0 })
}

// withoutContext drops the position and the context of an error that arose in
// a DO block of ours.
func withoutContext(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) { d.Position, d.Where = 0, "" })
}

// isNotBoolean reports that a condition is of another type, in whatever
// language the message is.
func isNotBoolean(d *pgdiag.Diagnostic) bool {
	return d.Code == "42804" && d.Routine == "coerce_to_boolean"
}

// crossDatabase refuses a name in another database than the session's.
func crossDatabase(statement string, name rewrite.Name) *pgdiag.Diagnostic {
	return pgdiag.New("0A000", "cross-database references are not implemented").
		WithHint("Connect to the database that holds the table.").
		At(rewrite.CharPosition(statement, name.Offset))
}

func undefinedTable(statement string, name rewrite.Name) *pgdiag.Diagnostic {
	return pgdiag.New("42P01", fmt.Sprintf("relation %q does not exist", display(name))).
		WithDetail("TABLE_OR_VIEW_NOT_FOUND").
		At(rewrite.CharPosition(statement, name.Offset))
}

func notStreamingTable(statement string, name rewrite.Name) *pgdiag.Diagnostic {
	return pgdiag.New("42601", fmt.Sprintf("%q is not a streaming table", display(name))).
		WithDetail("STREAMING_TABLE_OPERATION_NOT_ALLOWED.NON_STREAMING_TABLE").
		WithHint("CREATE STREAMING TABLE creates one; rwproxy.flows lists those there are.").
		At(rewrite.CharPosition(statement, name.Offset))
}

func notOwner(table string) *pgdiag.Diagnostic {
	return pgdiag.New("42501", "must be owner of table "+table)
}

func withoutFlow(statement string, name rewrite.Name) *pgdiag.Diagnostic {
	return pgdiag.New("0A000", fmt.Sprintf("streaming table %q has no flow", display(name))).
		WithDetail("PIPELINE_DATASET_WITHOUT_FLOW").
		WithHint("Add one with CREATE FLOW ... AS INSERT INTO " + display(name) + " BY NAME REPLACE WHERE ....").
		At(rewrite.CharPosition(statement, name.Offset))
}

func viewGone(statement string, name rewrite.Name) *pgdiag.Diagnostic {
	return pgdiag.New("55000", fmt.Sprintf("the view that holds the query of streaming table %q no longer exists", display(name))).
		WithDetail("A source of the query was dropped with CASCADE.").
		WithHint("Define the flow again with CREATE OR REFRESH STREAMING TABLE ... FLOW REPLACE WHERE ....").
		At(rewrite.CharPosition(statement, name.Offset))
}

func display(name rewrite.Name) string {
	if name.Schema == "" {
		return name.Table
	}
	return name.Schema + "." + name.Table
}
