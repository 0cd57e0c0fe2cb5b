package rewrite

import (
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// AlterStreamingTable is ALTER STREAMING TABLE.
type AlterStreamingTable struct {
	Text   string // the statement as typed
	Target Name
	Action AlterAction

	// Notices are for the client: what was read but has no effect.
	Notices []*pgdiag.Diagnostic
}

// AlterAction is what an ALTER STREAMING TABLE does.
type AlterAction interface{ alterAction() }

// SetSchedule gives a table a schedule: with Add its first one, else another.
type SetSchedule struct {
	Schedule Schedule
	Add      bool
}

// DropSchedule takes a table's schedule away.
type DropSchedule struct{}

// CommentColumn replaces the comment of a column.
type CommentColumn struct {
	Column  string
	Comment string
	Offset  int // of Column in the statement, in bytes
}

// SetProperties gives a table properties and leaves its others as they are.
type SetProperties struct{ Properties map[string]string }

// UnsetProperties takes properties away.
type UnsetProperties struct {
	Keys     []string
	IfExists bool // a missing one is no error
	Offset   int  // of the keys in the statement, in bytes
}

// SetOwner gives a table, and the view of its flow, to another role.
type SetOwner struct {
	Role   string // SQL: a quoted name, or CURRENT_USER and the like
	Offset int    // of the role in the statement, in bytes
}

func (SetSchedule) alterAction()     {}
func (DropSchedule) alterAction()    {}
func (CommentColumn) alterAction()   {}
func (SetProperties) alterAction()   {}
func (UnsetProperties) alterAction() {}
func (SetOwner) alterAction()        {}

// Tag implements Statement.
func (*AlterStreamingTable) Tag() string { return "ALTER STREAMING TABLE" }

// Shadow implements Statement.
func (*AlterStreamingTable) Shadow() string { return noRows }

const (
	alterStreamingTableForm = "ALTER STREAMING TABLE name action, where action is one of: ADD SCHEDULE, ALTER SCHEDULE, " +
		"DROP SCHEDULE (also of a trigger), ALTER COLUMN ... COMMENT, SET TBLPROPERTIES, UNSET TBLPROPERTIES, OWNER TO"
	alterScheduleForm = "ALTER STREAMING TABLE name {ADD | ALTER} " + scheduleForm
	alterCommentForm  = "ALTER STREAMING TABLE name ALTER COLUMN column COMMENT 'text'"
	setForm           = "ALTER STREAMING TABLE name SET TBLPROPERTIES (key = value [, ...])"
	unsetForm         = "ALTER STREAMING TABLE name UNSET TBLPROPERTIES [IF EXISTS] (key [, ...])"
	ownerForm         = "ALTER STREAMING TABLE name [SET] OWNER TO role"
	scheduleForm      = "{SCHEDULE {EVERY n {HOURS | DAYS | WEEKS} | CRON 'quartz' [AT TIME ZONE 'zone']} " +
		"| TRIGGER ON UPDATE [AT MOST EVERY interval]}"
)

const (
	tagsHint   = "Use COMMENT ON, or a table property."
	maskHint   = "Use column privileges, or a view over the table."
	filterHint = "Use row-level security on the tables the query reads, or CREATE POLICY on the table itself."
)

// alterStreamingTable reads ALTER STREAMING TABLE name action.
func (p *parser) alterStreamingTable() (Statement, error) {
	p.form = alterStreamingTableForm
	s := &AlterStreamingTable{Text: p.statementText()}
	p.i += 2 // ALTER STREAMING
	if err := p.expect("TABLE"); err != nil {
		return nil, err
	}
	if p.wordsAt(p.i, "IF", "EXISTS") {
		return nil, p.unsupported(p.i, "IF EXISTS in ALTER STREAMING TABLE", "Leave IF EXISTS out.")
	}
	var err error
	if s.Target, err = p.tableName(); err != nil {
		return nil, err
	}
	if err := p.refuseAlterAction(); err != nil {
		return nil, err
	}
	if s.Action, err = p.alterAction(s); err != nil {
		return nil, err
	}
	if !p.atEnd() {
		return nil, p.expected(p.i, "the end of the statement")
	}
	return s, nil
}

// refuseAlterAction refuses what Databricks has and rwproxy has not, and what
// is not ALTER STREAMING TABLE's to do.
func (p *parser) refuseAlterAction() error {
	column := 0 // tokens of ALTER COLUMN name, where there is one
	if p.wordsAt(p.i, "ALTER", "COLUMN") {
		column = 3
	}
	at := p.i + column
	switch {
	case p.wordsAt(at, "SET", "TAGS"), p.wordsAt(at, "UNSET", "TAGS"):
		return p.unsupported(at, "a tag", tagsHint)
	case column > 0 && (p.wordsAt(at, "SET", "MASK") || p.wordsAt(at, "DROP", "MASK")):
		return p.unsupported(at, "a column mask", maskHint)
	case p.wordsAt(at, "SET", "ROW"), p.wordsAt(at, "DROP", "ROW"):
		return p.unsupported(at, "a row filter", filterHint)
	case p.wordsAt(at, "RENAME"), p.wordsAt(at, "SET", "SCHEMA"):
		return p.unsupported(at, strings.ToUpper(p.text(at))+" in ALTER STREAMING TABLE", "Use ALTER TABLE: the flow goes with the table.")
	case column > 0 && (p.wordsAt(at, "SET") || p.wordsAt(at, "DROP") || p.wordsAt(at, "TYPE") || p.wordsAt(at, "SYNC")),
		(p.wordsAt(at, "ADD") || p.wordsAt(at, "DROP")) && p.kindAt(at+1, Word) &&
			isAnyKeyword(p.text(at+1), "COLUMN", "COLUMNS", "CONSTRAINT"):
		return p.errorAt(at, syntaxErrorCode, "ALTER STREAMING TABLE cannot change the columns of a table",
			"STREAMING_TABLE_OPERATION_NOT_ALLOWED.INVALID_ALTER",
			"Use CREATE OR REFRESH STREAMING TABLE to change the definition, or ALTER TABLE to change the table alone.")
	}
	return nil
}

// alterAction reads the action, up to the end of the statement.
func (p *parser) alterAction(s *AlterStreamingTable) (AlterAction, error) {
	switch {
	case p.wordsAt(p.i, "ADD"), p.wordsAt(p.i, "ALTER", "SCHEDULE"), p.wordsAt(p.i, "ALTER", "TRIGGER"):
		add := p.wordsAt(p.i, "ADD")
		p.form = alterScheduleForm
		p.i++
		if !p.wordsAt(p.i, "SCHEDULE") && !p.wordsAt(p.i, "TRIGGER") {
			return nil, p.expected(p.i, "SCHEDULE or TRIGGER ON UPDATE")
		}
		schedule, err := p.schedule()
		return SetSchedule{Schedule: schedule, Add: add}, err
	case p.accept("DROP"):
		return DropSchedule{}, p.expect("SCHEDULE")
	case p.accept("ALTER"):
		return p.commentColumn()
	case p.accept("SET", "TBLPROPERTIES"):
		p.form = setForm
		at := p.i
		properties, notices, err := p.properties()
		if _, found := properties[dialectProperty]; found {
			return nil, p.refuseDialect(at)
		}
		s.Notices = notices
		return SetProperties{Properties: properties}, err
	case p.accept("UNSET", "TBLPROPERTIES"):
		return p.unsetProperties()
	case p.accept("SET", "OWNER"), p.accept("OWNER"):
		return p.setOwner()
	case p.wordsAt(p.i, "SET"):
		return nil, p.expected(p.i+1, "TBLPROPERTIES or OWNER TO")
	case p.wordsAt(p.i, "UNSET"):
		return nil, p.expected(p.i+1, "TBLPROPERTIES")
	case p.wordsAt(p.i, "COMMENT"):
		err := p.expected(p.i, "ALTER COLUMN ... COMMENT")
		err.Hint = "The comment of the table itself is COMMENT ON TABLE name IS 'text'."
		return nil, err
	}
	return nil, p.expected(p.i, "ADD, ALTER, DROP, SET, UNSET or OWNER TO")
}

// refuseDialect refuses a change of the property that says what the flow's text
// means, which stands behind token at: the flow was translated when it was
// defined.
func (p *parser) refuseDialect(at int) error {
	for at+1 < p.i && !containsFolded(p.text(at), strings.TrimSuffix(ownPrefix, ".")) {
		at++
	}
	return p.unsupported(at, "changing "+dialectProperty+" with ALTER STREAMING TABLE",
		"Use CREATE OR REFRESH STREAMING TABLE with the property and the flow.")
}

// commentColumn reads COLUMN name COMMENT 'text'.
func (p *parser) commentColumn() (AlterAction, error) {
	if !p.accept("COLUMN") {
		return nil, p.expected(p.i, "COLUMN, SCHEDULE or TRIGGER")
	}
	p.form = alterCommentForm
	at := p.i
	column, err := p.identifier("a column name", true)
	if err != nil {
		return nil, err
	}
	if err := p.expect("COMMENT"); err != nil {
		return nil, err
	}
	comment, err := p.stringValue("the comment as a string")
	return CommentColumn{Column: column, Comment: comment, Offset: p.tokens[at].Start}, err
}

// unsetProperties reads [IF EXISTS] ( key [, ...] ).
func (p *parser) unsetProperties() (AlterAction, error) {
	p.form = unsetForm
	at := p.i
	action := UnsetProperties{IfExists: p.accept("IF", "EXISTS")}
	if err := p.expectSymbol("("); err != nil {
		return nil, err
	}
	if !p.atEnd() {
		action.Offset = p.tokens[p.i].Start
	}
	for {
		key, err := p.foldedPropertyKey()
		if err != nil {
			return nil, err
		}
		action.Keys = append(action.Keys, key)
		if !p.acceptSymbol(",") {
			break
		}
	}
	if !p.acceptSymbol(")") {
		return nil, p.expected(p.i, `"," or ")"`)
	}
	if slices.Contains(action.Keys, dialectProperty) {
		return nil, p.refuseDialect(at)
	}
	return action, nil
}

// setOwner reads TO role.
func (p *parser) setOwner() (AlterAction, error) {
	p.form = ownerForm
	if err := p.expect("TO"); err != nil {
		return nil, err
	}
	at := p.i
	for _, role := range []string{"CURRENT_USER", "CURRENT_ROLE", "SESSION_USER"} {
		if p.accept(role) {
			return SetOwner{Role: role, Offset: p.tokens[at].Start}, nil
		}
	}
	role, err := p.identifier("a role", true)
	if err != nil {
		return nil, err
	}
	return SetOwner{Role: QuoteIdentifier(role), Offset: p.tokens[at].Start}, nil
}
