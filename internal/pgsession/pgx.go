package pgsession

import (
	"context"
	"errors"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// FromPgx returns a Session on a pgx connection, which stays the caller's to
// close.
func FromPgx(conn *pgx.Conn) Session {
	return pgxSession{conn.PgConn()}
}

type pgxSession struct {
	conn *pgconn.PgConn
}

func (s pgxSession) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	result, err := s.run(ctx, sql, args)
	if err != nil {
		return 0, err
	}
	return result.CommandTag.RowsAffected(), nil
}

func (s pgxSession) Query(ctx context.Context, sql string, args ...any) ([]Row, error) {
	result, err := s.run(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(result.Rows))
	for i, values := range result.Rows {
		rows[i] = make(Row, len(values))
		for j, v := range values {
			rows[i][j] = Value{Text: string(v), Null: v == nil}
		}
	}
	return rows, nil
}

// run leaves types and formats out: Postgres infers the first, text is the
// default of the second.
func (s pgxSession) run(ctx context.Context, sql string, args []any) (*pgconn.Result, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		text, null, err := EncodeArgument(a)
		if err != nil {
			return nil, err
		}
		if !null {
			values[i] = append([]byte{}, text...) // not nil, which is NULL
		}
	}
	result := s.conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return result, FromPgxError(result.Err)
}

func (s pgxSession) Describe(ctx context.Context, sql string) (Description, error) {
	prepared, err := s.conn.Prepare(ctx, "", sql, nil)
	if err != nil {
		return Description{}, FromPgxError(err)
	}
	description := Description{Parameters: prepared.ParamOIDs}
	for _, f := range prepared.Fields {
		description.Columns = append(description.Columns,
			Column{Name: f.Name, TypeOID: f.DataTypeOID, TypeModifier: f.TypeModifier})
	}
	return description, nil
}

// FromPgxError returns the *pgdiag.Diagnostic of an error of Postgres, with
// every field it sent, and another error as it is.
func FromPgxError(err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	return pgdiag.FromErrorResponse(&pgproto3.ErrorResponse{
		Severity:            e.Severity,
		SeverityUnlocalized: e.SeverityUnlocalized,
		Code:                e.Code,
		Message:             e.Message,
		Detail:              e.Detail,
		Hint:                e.Hint,
		Position:            e.Position,
		InternalPosition:    e.InternalPosition,
		InternalQuery:       e.InternalQuery,
		Where:               e.Where,
		SchemaName:          e.SchemaName,
		TableName:           e.TableName,
		ColumnName:          e.ColumnName,
		DataTypeName:        e.DataTypeName,
		ConstraintName:      e.ConstraintName,
		File:                e.File,
		Line:                e.Line,
		Routine:             e.Routine,
	})
}
