package server

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Type OIDs of pg_type.dat whose binary format is their text.
const (
	nameOID    = 19
	textOID    = 25
	varcharOID = 1043
)

// typeSizes are pg_type.typlen of types of a fixed length.
var typeSizes = map[uint32]int16{
	16: 1, 18: 1, nameOID: 64, 20: 8, 21: 2, 23: 4, 24: 4, 26: 4, // bool "char" name int8 int2 int4 regproc oid
	700: 4, 701: 8, 1082: 4, 1083: 8, 1114: 8, 1184: 8, 1186: 16, 2205: 4, 2950: 16, // float4 float8 date time timestamp timestamptz interval regclass uuid
}

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
		if answer, err = encodeRows(answer, o.Rows); err != nil {
			return nil, err
		}
	}
	return encode(answer, &pgproto3.CommandComplete{CommandTag: []byte(o.Tag)})
}

// typeSize is pg_type.typlen.
func typeSize(oid uint32) int16 {
	if size, fixed := typeSizes[oid]; fixed {
		return size
	}
	return -1
}

// encodeRows appends rows as they are.
func encodeRows(dst []byte, rows []pgsession.Row) ([]byte, error) {
	for _, row := range rows {
		values := make([][]byte, len(row))
		for i, v := range row {
			if !v.Null {
				values[i] = []byte(v.Text)
			}
		}
		var err error
		if dst, err = encode(dst, &pgproto3.DataRow{Values: values}); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// toFormats returns rows in the formats that a Bind asked for. Postgres knows
// the binary format of every type: it is given the text and asked for it.
func (s *session) toFormats(columns []pgsession.Column, rows []pgsession.Row, formats []int) ([]pgsession.Row, *pgdiag.Diagnostic, error) {
	var binary []int
	for i, c := range columns {
		if formatOf(formats, i) == binaryFormat && !isTextual(c.TypeOID) {
			binary = append(binary, i)
		}
	}
	if len(binary) == 0 || len(rows) == 0 {
		return rows, nil, nil
	}
	converted := make([]pgsession.Row, len(rows))
	refusal, err := s.handle(true, func(c *injector) error {
		parse := &pgproto3.Parse{}
		for n, i := range binary {
			parse.Query += ", $" + strconv.Itoa(n+1)
			parse.ParameterOIDs = append(parse.ParameterOIDs, columns[i].TypeOID)
		}
		parse.Query = "select " + strings.TrimPrefix(parse.Query, ", ")
		for r, row := range rows {
			bind := &pgproto3.Bind{DestinationPortal: injectedName, PreparedStatement: injectedName, ResultFormatCodes: []int16{binaryFormat}}
			for _, i := range binary {
				var value []byte
				if !row[i].Null {
					value = append([]byte{}, row[i].Text...)
				}
				bind.Parameters = append(bind.Parameters, value)
			}
			result, err := c.round(s.ctx, parse, step{owesBind, bind}, executeStep, closePortal)
			if err != nil {
				return err
			}
			converted[r] = slices.Clone(row)
			for n, i := range binary {
				converted[r][i] = result.rows[0][n]
			}
		}
		return nil
	})
	return converted, refusal, err
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

// isTextual reports a type whose binary format is its text.
func isTextual(oid uint32) bool {
	return oid == nameOID || oid == textOID || oid == varcharOID
}
