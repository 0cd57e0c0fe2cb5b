package refresh

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/rewrite"
)

// expression is a term over the columns of one relation that may run on the
// relation's change log: it never fails, and its value depends on nothing but
// the columns and the flow's pinned settings.
type expression struct {
	kind      termKind
	typ       uint32        // OID of the base type
	column    *sourceColumn // of termColumn
	name      string        // function, operator; pg_catalog's
	literal   string        // of a constant: quoted, with its type
	args      []*expression
	collation string // quoted, qualified; of text, "" where it is mixed or there is none
}

// Type OIDs of pg_type.dat.
const (
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidOid         = 26
	oidFloat4      = 700
	oidFloat8      = 701
	oidBpchar      = 1042
	oidVarchar     = 1043
	oidDate        = 1082
	oidTime        = 1083
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidUUID        = 2950
)

// keyTypes are the types that a key or a join column may have, with their
// qualified names. Enumerations can be keys too.
var keyTypes = map[uint32]string{
	oidBool: "pg_catalog.bool", oidBytea: "pg_catalog.bytea", oidInt8: "pg_catalog.int8", oidInt2: "pg_catalog.int2",
	oidInt4: "pg_catalog.int4", oidText: "pg_catalog.text", oidOid: "pg_catalog.oid", oidFloat4: "pg_catalog.float4",
	oidFloat8: "pg_catalog.float8", oidBpchar: "pg_catalog.bpchar", oidVarchar: "pg_catalog.varchar",
	oidDate: "pg_catalog.date", oidTime: `pg_catalog."time"`, oidTimestamp: `pg_catalog."timestamp"`,
	oidTimestamptz: "pg_catalog.timestamptz", oidNumeric: `pg_catalog."numeric"`,
	oidUUID: "pg_catalog.uuid",
}

// imageTypes are the types whose equal values are the same bytes. Only of those
// may a function be taken: 1.0 and 1.00 are equal, one group of a GROUP BY, and
// have different texts. The planner pushes a condition on the text below the
// grouping, where it keeps one of the two rows, which the other one's change
// would not find.
var imageTypes = map[uint32]bool{
	oidBool: true, oidBytea: true, oidInt8: true, oidInt2: true, oidInt4: true, oidText: true, oidOid: true,
	oidVarchar: true, oidDate: true, oidTime: true, oidTimestamp: true, oidTimestamptz: true, oidUUID: true,
}

// printedTypes are the types by the name that EXPLAIN gives them.
var printedTypes = map[string]uint32{
	"boolean": oidBool, "bigint": oidInt8, "smallint": oidInt2, "integer": oidInt4, "text": oidText,
	"double precision": oidFloat8, "character varying": oidVarchar, "date": oidDate,
	"timestamp without time zone": oidTimestamp, "timestamp with time zone": oidTimestamptz,
	"numeric": oidNumeric, "uuid": oidUUID,
}

// vettedCasts are the casts that never fail. A date can lie outside the range
// of timestamps; its cast is rendered so that it is NULL then.
var vettedCasts = map[[2]uint32]bool{
	{oidInt2, oidInt4}: true, {oidInt2, oidInt8}: true, {oidInt4, oidInt8}: true,
	{oidInt2, oidNumeric}: true, {oidInt4, oidNumeric}: true, {oidInt8, oidNumeric}: true,
	{oidInt2, oidText}: true, {oidInt4, oidText}: true, {oidInt8, oidText}: true,
	{oidVarchar, oidText}: true, {oidText, oidVarchar}: true,
	{oidUUID, oidText}: true, {oidDate, oidText}: true, {oidBool, oidText}: true,
	{oidTimestamp, oidDate}: true, {oidTimestamptz, oidDate}: true, {oidTimestamptz, oidTimestamp}: true,
	{oidTimestamp, oidTimestamptz}: true, {oidDate, oidTimestamp}: true, {oidDate, oidTimestamptz}: true,
}

// unitsOfTime are the units that date_trunc and EXTRACT take of any timestamp
// without failing. Longer ones than a year reach past the first timestamp.
var unitsOfTime = map[string]bool{
	"year": true, "quarter": true, "month": true, "week": true, "day": true, "hour": true, "minute": true, "second": true,
	"isoyear": true, "dow": true, "isodow": true, "doy": true,
}

// dateFormat is what a format of to_char may consist of.
var dateFormat = regexp.MustCompile(`^(?:YYYY|MM|DD|DDD|HH24|MI|SS|Q|IYYY|IW|ID|[-/:_ .])*$`)

// resolver looks up the columns of one relation.
type resolver struct {
	column func(alias, name string) *sourceColumn // nil if there is none
	// castHidden reports that values of a type may have gone through an implicit
	// cast that EXPLAIN leaves out: under an explicit one, EXTRACT and AT TIME
	// ZONE.
	castHidden func(typ uint32) bool
}

// resolve returns the term as an expression, nil if it is not vetted.
func (r resolver) resolve(t *term) *expression {
	switch t.kind {
	case termColumn:
		c := r.column(t.alias, t.name)
		if c == nil || !c.deterministic || strings.Contains(c.name+c.collation, "{") {
			return nil // a brace could be taken for a placeholder of a route
		}
		return &expression{kind: termColumn, typ: c.typ, column: c, collation: c.collation}
	case termConstant:
		return constantExpression(t)
	case termCast:
		return r.resolveCast(t)
	case termExtract:
		args := r.resolveAll(t.args)
		if args == nil || !unitsOfTime[t.name] || r.castHidden(args[0].typ) || !isTimestamp(args[0].typ) && (args[0].typ != oidDate || isClockUnit(t.name)) {
			return nil
		}
		return &expression{kind: termExtract, typ: oidNumeric, name: t.name, args: args}
	case termOperator:
		return r.resolveOperator(t)
	case termCall:
		return r.resolveCall(t)
	}
	return nil
}

func constantExpression(t *term) *expression {
	name := t.typ
	if name == "" {
		if _, err := strconv.ParseInt(t.value, 10, 32); err != nil {
			return nil
		}
		name = "integer"
	}
	typ, known := printedTypes[name]
	if !known || strings.Contains(t.value, "{") {
		return nil
	}
	qualified := keyTypes[typ]
	return &expression{kind: termConstant, typ: typ, name: t.value, literal: rewrite.QuoteLiteral(t.value) + "::" + qualified}
}

// resolveAll returns the vetted arguments of a function, nil if one of them
// is none or has equal values of different images.
func (r resolver) resolveAll(terms []*term) []*expression {
	var args []*expression
	for _, t := range terms {
		a := r.resolve(t)
		if a == nil || a.kind != termConstant && !imageTypes[a.typ] {
			return nil
		}
		args = append(args, a)
	}
	return args
}

func (r resolver) resolveCast(t *term) *expression {
	of := r.resolve(t.args[0])
	typ, known := printedTypes[t.typ]
	switch {
	case of == nil || !known:
		return nil
	case of.typ == typ:
		return of // a domain as its base type
	case !imageTypes[of.typ] || !vettedCasts[[2]uint32{of.typ, typ}] || r.castHidden(of.typ):
		return nil
	}
	return &expression{kind: termCast, typ: typ, args: []*expression{of}, collation: of.collation}
}

func (r resolver) resolveOperator(t *term) *expression {
	args := r.resolveAll(t.args)
	if len(args) != 2 {
		return nil
	}
	left, right := args[0], args[1]
	e := &expression{kind: termOperator, name: t.name, args: args}
	switch {
	case t.name == "||" && isText(left.typ) && isText(right.typ):
		e.typ, e.collation = oidText, commonCollation(args)
	case (t.name == "/" || t.name == "%") && isInteger(left.typ) && left.typ == right.typ && isPositive(right):
		e.typ = left.typ
	default:
		return nil
	}
	return e
}

func (r resolver) resolveCall(t *term) *expression {
	args := r.resolveAll(t.args)
	if args == nil {
		return nil
	}
	e := &expression{kind: termCall, name: t.name, args: args}
	first, last := args[0], args[len(args)-1]
	isUnary, isBinary := len(args) == 1, len(args) == 2
	switch t.name {
	case "date_trunc":
		if !isBinary || !isTimestamp(last.typ) || first.kind != termConstant || !unitsOfTime[strings.ToLower(first.name)] {
			return nil
		}
		e.typ = last.typ
	case "timezone":
		if !isBinary || first.kind != termConstant || first.typ != oidText || !isTimestamp(last.typ) || r.castHidden(last.typ) {
			return nil
		}
		if e.typ = oidTimestamptz; last.typ == oidTimestamptz {
			e.typ = oidTimestamp
		}
	case "date":
		if !isUnary || !isTimestamp(first.typ) {
			return nil
		}
		e.typ = oidDate
	case "to_char":
		if !isBinary || !isTimestamp(first.typ) || last.kind != termConstant || !dateFormat.MatchString(last.name) {
			return nil
		}
		e.typ = oidText
	case "lower", "upper", "initcap":
		if !isUnary || !isText(first.typ) || first.collation == "" {
			return nil
		}
		e.typ, e.collation = oidText, first.collation
	case "btrim", "ltrim", "rtrim", "md5":
		if !isUnary || !isText(first.typ) {
			return nil
		}
		e.typ, e.collation = oidText, first.collation
	case "left", "right":
		if !isBinary || !isText(first.typ) || last.typ != oidInt4 || last.kind != termConstant {
			return nil
		}
		e.typ, e.collation = oidText, first.collation
	case "coalesce":
		for _, a := range args {
			if a.typ != first.typ {
				return nil
			}
		}
		e.typ, e.collation = first.typ, commonCollation(args)
	default:
		return nil
	}
	return e
}

func isText(typ uint32) bool      { return typ == oidText || typ == oidVarchar }
func isInteger(typ uint32) bool   { return typ == oidInt2 || typ == oidInt4 || typ == oidInt8 }
func isTimestamp(typ uint32) bool { return typ == oidTimestamp || typ == oidTimestamptz }
func isCollated(typ uint32) bool  { return isText(typ) || typ == oidBpchar }

// isClockUnit reports whether EXTRACT refuses the unit of a date.
func isClockUnit(unit string) bool { return unit == "hour" || unit == "minute" || unit == "second" }

func isPositive(e *expression) bool {
	n, err := strconv.ParseInt(e.name, 10, 64)
	return e.kind == termConstant && err == nil && n > 0
}

// commonCollation is the collation of the arguments that have one, "" if they
// have several.
func commonCollation(args []*expression) string {
	common := ""
	for _, a := range args {
		switch {
		case a.collation == "":
		case common != "" && common != a.collation:
			return ""
		default:
			common = a.collation
		}
	}
	return common
}

// columns are the columns that the expression reads, each once, in its order.
func (e *expression) columns() []*sourceColumn {
	if e.kind == termColumn {
		return []*sourceColumn{e.column}
	}
	var columns []*sourceColumn
	for _, a := range e.args {
		for _, c := range a.columns() {
			if !slices.Contains(columns, c) {
				columns = append(columns, c)
			}
		}
	}
	return columns
}

// sql is the expression in SQL that means the same under every search_path,
// its columns written by column.
func (e *expression) sql(column func(*sourceColumn) string) string {
	switch e.kind {
	case termColumn:
		return column(e.column)
	case termConstant:
		return e.literal
	}
	args := make([]string, len(e.args))
	for i, a := range e.args {
		args[i] = a.sql(column)
	}
	switch e.kind {
	case termCast:
		return castSQL(args[0], e.args[0].typ, e.typ)
	case termOperator:
		return "(" + args[0] + " operator(pg_catalog." + e.name + ") " + args[1] + ")"
	case termExtract:
		return "extract(" + e.name + " from " + args[0] + ")"
	}
	switch e.name {
	case "coalesce":
		return "coalesce(" + strings.Join(args, ", ") + ")"
	case "lower", "upper", "initcap":
		args[0] = "(" + args[0] + ") collate " + e.collation
	}
	return "pg_catalog." + rewrite.QuoteIdentifier(e.name) + "(" + strings.Join(args, ", ") + ")"
}

// castSQL casts a value without ever failing: what has no value of the wider
// type's kind becomes NULL, and equals no key.
func castSQL(value string, from, to uint32) string {
	cast := "(" + value + ")::" + keyTypes[to]
	switch {
	case from == to:
		return value
	case from == oidDate && isTimestamp(to):
		return "case when not pg_catalog.isfinite(" + value + ") or " + value +
			" operator(pg_catalog.<=) '294276-12-31'::pg_catalog.date then " + cast + " end"
	case isInteger(from) && isInteger(to) && width(from) > width(to):
		limits := map[uint32][2]string{oidInt2: {"-32768", "32767"}, oidInt4: {"-2147483648", "2147483647"}}[to]
		return "case when " + value + " operator(pg_catalog.>=) (" + limits[0] + ") and " +
			value + " operator(pg_catalog.<=) " + limits[1] + " then " + cast + " end"
	}
	return cast
}

func width(typ uint32) int {
	return map[uint32]int{oidInt2: 2, oidInt4: 4, oidInt8: 8}[typ]
}

// comparable reports whether values of the types are equal exactly when one,
// cast to the other's type, is the same value there: the equality that the
// planner derives between them is no other.
func comparableTypes(a, b uint32) bool {
	return a == b || isText(a) && isText(b) || isInteger(a) && isInteger(b)
}
