// Package pgdiag is rwproxy's one diagnostic type: an error or notice with the
// fields Postgres gives its own, and its translation to and from the wire.
//
// It may import pgproto3 and nothing of this module.
package pgdiag

import (
	"errors"

	"github.com/jackc/pgproto3/v2"
)

// Diagnostic is an error or notice as Postgres reports one. The fields are
// those of ErrorResponse and NoticeResponse ("Error and Notice Message Fields"
// in the protocol documentation).
type Diagnostic struct {
	Severity       string // "" means ERROR
	Code           string // SQLSTATE
	Message        string // lower case, one clause, no full stop
	Detail         string
	Hint           string // what to do about it
	Position       int    // in characters, from 1, in the client's own text; 0 when unknown
	Where          string
	SchemaName     string
	TableName      string
	ColumnName     string
	DataTypeName   string
	ConstraintName string
	Routine        string // of Postgres's source; what an error is, whatever the language of its message

	internalPosition int
	internalQuery    string
	file             string
	line             int
}

// New returns an error of the given SQLSTATE.
func New(code, message string) *Diagnostic {
	return &Diagnostic{Code: code, Message: message}
}

// Error returns severity, message and SQLSTATE on one line.
func (d *Diagnostic) Error() string {
	severity := d.Severity
	if severity == "" {
		severity = "ERROR"
	}
	return severity + ": " + d.Message + " (SQLSTATE " + d.Code + ")"
}

// WithDetail sets the detail and returns d.
func (d *Diagnostic) WithDetail(detail string) *Diagnostic { d.Detail = detail; return d }

// WithHint sets the hint and returns d.
func (d *Diagnostic) WithHint(hint string) *Diagnostic { d.Hint = hint; return d }

// At sets the position, in characters from 1, and returns d.
func (d *Diagnostic) At(position int) *Diagnostic { d.Position = position; return d }

// Code returns the SQLSTATE of the first Diagnostic in err's chain, "" if
// there is none.
func Code(err error) string {
	var d *Diagnostic
	if errors.As(err, &d) {
		return d.Code
	}
	return ""
}

// Edited returns err's first Diagnostic, changed by edit in a copy: the original
// may be shared. An err without one is returned as it is.
func Edited(err error, edit func(d *Diagnostic)) error {
	var d *Diagnostic
	if !errors.As(err, &d) {
		return err
	}
	own := *d
	edit(&own)
	return &own
}

// ErrorResponse returns d as the message that Postgres would send.
func (d *Diagnostic) ErrorResponse() *pgproto3.ErrorResponse {
	severity := d.Severity
	if severity == "" {
		severity = "ERROR"
	}
	return &pgproto3.ErrorResponse{
		Severity:            severity,
		SeverityUnlocalized: severity,
		Code:                d.Code,
		Message:             d.Message,
		Detail:              d.Detail,
		Hint:                d.Hint,
		Position:            int32(d.Position),
		InternalPosition:    int32(d.internalPosition),
		InternalQuery:       d.internalQuery,
		Where:               d.Where,
		SchemaName:          d.SchemaName,
		TableName:           d.TableName,
		ColumnName:          d.ColumnName,
		DataTypeName:        d.DataTypeName,
		ConstraintName:      d.ConstraintName,
		File:                d.file,
		Line:                int32(d.line),
		Routine:             d.Routine,
	}
}

// NoticeResponse returns d as a notice; an empty severity means NOTICE.
func (d *Diagnostic) NoticeResponse() *pgproto3.NoticeResponse {
	n := *d
	if n.Severity == "" {
		n.Severity = "NOTICE"
	}
	response := pgproto3.NoticeResponse(*n.ErrorResponse())
	return &response
}

// FromErrorResponse returns the diagnostic that Postgres sent.
func FromErrorResponse(e *pgproto3.ErrorResponse) *Diagnostic {
	severity := e.SeverityUnlocalized
	if severity == "" {
		severity = e.Severity
	}
	return &Diagnostic{
		Severity:         severity,
		Code:             e.Code,
		Message:          e.Message,
		Detail:           e.Detail,
		Hint:             e.Hint,
		Position:         int(e.Position),
		Where:            e.Where,
		SchemaName:       e.SchemaName,
		TableName:        e.TableName,
		ColumnName:       e.ColumnName,
		DataTypeName:     e.DataTypeName,
		ConstraintName:   e.ConstraintName,
		internalPosition: int(e.InternalPosition),
		internalQuery:    e.InternalQuery,
		file:             e.File,
		line:             int(e.Line),
		Routine:          e.Routine,
	}
}
