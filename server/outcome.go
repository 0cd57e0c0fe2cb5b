package server

import (
	"encoding/hex"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Type OIDs of pg_type.dat that are known in binary format.
const (
	nameOID    = 19
	textOID    = 25
	varcharOID = 1043
	uuidOID    = 2950
)

// encodeOutcome returns an outcome as the answer to a simple query.
func encodeOutcome(o Outcome) ([]byte, error) {
	var answer []byte
	if o.Columns != nil {
		description := &pgproto3.RowDescription{}
		for _, c := range o.Columns {
			description.Fields = append(description.Fields, pgproto3.FieldDescription{
				Name:         []byte(c.Name),
				DataTypeOID:  c.TypeOID,
				DataTypeSize: typeSize(c.TypeOID),
				TypeModifier: c.TypeModifier,
				Format:       textFormat,
			})
		}
		var err error
		if answer, err = encode(answer, description); err != nil {
			return nil, err
		}
		var refusal *pgdiag.Diagnostic
		if answer, refusal = encodeRows(answer, o.Columns, o.Rows, nil); refusal != nil {
			return nil, refusal
		}
	}
	return encode(answer, &pgproto3.CommandComplete{CommandTag: []byte(o.Tag)})
}

// typeSize is pg_type.typlen.
func typeSize(oid uint32) int16 {
	switch oid {
	case uuidOID:
		return 16
	case nameOID:
		return 64
	}
	return -1
}

// encodeRows appends rows in the formats that a Bind asked for.
func encodeRows(dst []byte, columns []pgsession.Column, rows []pgsession.Row, formats []int) ([]byte, *pgdiag.Diagnostic) {
	for _, row := range rows {
		values := make([][]byte, len(row))
		for i, v := range row {
			if v.Null {
				continue
			}
			values[i] = []byte(v.Text)
			if formatOf(formats, i) != binaryFormat {
				continue
			}
			binary, ok := toBinary(columns[i].TypeOID, v.Text)
			if !ok {
				return nil, pgdiag.New("0A000", `column "`+columns[i].Name+`" has no binary format here`).
					WithHint("Ask for the text format.")
			}
			values[i] = binary
		}
		var err error
		if dst, err = encode(dst, &pgproto3.DataRow{Values: values}); err != nil {
			return nil, diagnose(err)
		}
	}
	return dst, nil
}

// formatOf applies Bind's rule: none means text, one is for all columns.
func formatOf(formats []int, column int) int {
	switch {
	case len(formats) == 1:
		return formats[0]
	case column < len(formats):
		return formats[column]
	}
	return textFormat
}

func toBinary(oid uint32, text string) ([]byte, bool) {
	switch oid {
	case nameOID, textOID, varcharOID:
		return []byte(text), true
	case uuidOID:
		b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		return b, err == nil && len(b) == 16
	}
	return nil, false
}
