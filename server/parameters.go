package server

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// withParameters is what Postgres is given for a statement of ours with
// parameters. Their types are declared with it, so that Postgres checks and
// describes them as its own. The shadow of an INSERT has them itself.
func withParameters(statement rewrite.Statement) string {
	if _, insert := statement.(*rewrite.Insert); insert {
		return "DO ''"
	}
	return statement.Shadow()
}

// parameter is a parameter of a prepared statement of ours.
type parameter struct {
	oid  uint32
	name string // of the type, qualified and quoted
}

// hasParameters reports that an item of ours has parameters that the server is
// to fill in. Those of a statement that runs natively are Postgres's.
func (i item) hasParameters() bool {
	return i.ours != nil && !rewrite.RunsNatively(i.ours) && rewrite.FirstParameter(i.text, i.lexical) >= 0
}

// parseDeclared reads the parameter types of a Parse; 0 leaves one to Postgres.
func parseDeclared(content []byte) (types []uint32, ok bool) {
	types, err := parseParameters(content)
	return types, err == nil
}

// prepare handles the Parse of a statement of ours that the handler is asked
// about: what types its parameters have, or whether it is ours.
func (s *session) prepare(name string, i item, declared []uint32) error {
	s.mu.Lock()
	status := s.status
	s.mu.Unlock()
	parsed := &prepared{statement: i.ours, shift: i.shift, shadow: i.ours.Shadow()}
	types := declared
	if status != statusAborted { // else Postgres refuses it in its own words
		refusal, err := s.handle(true, func(c *injector) error {
			parameters, err := c.parameterTypes(s.ctx, i.ours, declared)
			if i.hasParameters() {
				parsed.text, parsed.lexical, parsed.parameters, parsed.shadow = i.text, i.lexical, parameters, withParameters(i.ours)
				types = nil
				for _, p := range parameters {
					types = append(types, p.oid)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		if refusal != nil {
			if at := rewrite.FirstParameter(i.text, i.lexical); refusal.Position == 0 && at >= 0 {
				refusal = refusal.At(rewrite.CharPosition(i.text, at))
			}
			return s.failJoined(shifted(refusal, i.shift))
		}
	}
	s.owe(owesParse, &note{statementName: name, prepared: parsed, mayBeOurs: true})
	return s.sendBackend(&pgproto3.Parse{Name: name, Query: parsed.shadow, ParameterOIDs: types})
}

// parameterTypes asks the handler for the types of a statement's parameters,
// and Postgres for their names.
func (c *injector) parameterTypes(ctx context.Context, statement rewrite.Statement, declared []uint32) ([]parameter, error) {
	names, err := c.typeNames(ctx, declared)
	if err != nil {
		return nil, err
	}
	types, err := c.session.server.config.Handler.Prepare(ctx, c, statement, names)
	if err != nil {
		return nil, err
	}
	for i, oid := range declared {
		switch {
		case i == len(types):
			types = append(types, oid)
		case oid != 0:
			types[i] = oid
		}
	}
	if names, err = c.typeNames(ctx, types); err != nil {
		return nil, err
	}
	parameters := make([]parameter, len(types))
	for i := range types {
		parameters[i] = parameter{types[i], names[i]}
	}
	return parameters, nil
}

// typeNames returns the names of types, qualified and quoted; "" for 0.
func (c *injector) typeNames(ctx context.Context, types []uint32) ([]string, error) {
	names := make([]string, len(types))
	oids := make([]string, len(types))
	known := false
	for i, oid := range types {
		oids[i] = strconv.FormatUint(uint64(oid), 10)
		known = known || oid != 0
	}
	if !known {
		return names, nil
	}
	rows, err := c.Query(ctx, `
		select pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(t.typname)
		  from pg_catalog.unnest($1::pg_catalog.oid[]) with ordinality as wanted (oid, place)
		  left join pg_catalog.pg_type t on t.oid = wanted.oid
		  left join pg_catalog.pg_namespace n on n.oid = t.typnamespace
		 order by wanted.place`, oids)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if row[0].Null && types[i] != 0 {
			return nil, pgdiag.New("42704", "type with OID "+oids[i]+" does not exist")
		}
		names[i] = row[0].Text
	}
	return names, nil
}

// bindValues are the parameters of a Bind.
type bindValues struct {
	formats []int16
	values  [][]byte // nil is NULL
}

// parseBindValues reads the parameters of a Bind that Postgres has accepted.
func parseBindValues(content []byte) bindValues {
	b := body{rest: content}
	b.skipText()
	b.skipText()
	var v bindValues
	for range b.int16() & 0xffff {
		v.formats = append(v.formats, int16(b.int16()))
	}
	for range b.int16() & 0xffff {
		size := b.int32()
		if b.bad {
			break
		}
		var value []byte
		if size >= 0 {
			value = append([]byte{}, b.take(size)...)
		}
		v.values = append(v.values, value)
	}
	return v
}

// fillIn puts typed constants in the place of the parameters of a portal's
// statement.
func (s *session) fillIn(p *portal) (*pgdiag.Diagnostic, error) {
	if len(p.prepared.parameters) == 0 {
		return nil, nil
	}
	return s.handle(true, func(c *injector) error {
		values, err := c.readParameters(s.ctx, p.prepared.parameters, parseBindValues(p.bind))
		if err != nil {
			return err
		}
		var names []string
		text, err := rewrite.SubstituteParameters(p.prepared.text, p.prepared.lexical, func(n int) string {
			constant := "null::" + p.prepared.typeOf(n)
			if n <= len(values) && !values[n-1].Null {
				constant = rewrite.QuoteLiteral(values[n-1].Text) + "::" + p.prepared.typeOf(n)
			}
			names = append(names, rewrite.Bracketed(constant), "$"+strconv.Itoa(n))
			return constant
		})
		if err != nil {
			return err
		}
		p.filledIn, p.constants = &text, strings.NewReplacer(names...)
		p.statement, err = rewrite.Parse(text.SQL, p.prepared.lexical)
		return err
	})
}

func (p *prepared) typeOf(n int) string {
	if n > len(p.parameters) {
		return "pg_catalog.text"
	}
	return p.parameters[n-1].name
}

// refused returns an error of the portal's statement as the client is told it:
// with the names of its parameters, where it quotes what stands for them.
func (p *portal) refused(d *pgdiag.Diagnostic) *pgdiag.Diagnostic {
	if p.filledIn != nil {
		named := *p.filledIn.Relocated(d, p.prepared.text)
		named.Message = p.constants.Replace(named.Message)
		named.Detail = p.constants.Replace(named.Detail)
		named.Hint = p.constants.Replace(named.Hint)
		d = &named
	}
	return shifted(d, p.prepared.shift)
}

// maxColumns is how many parameters are read at once, below Postgres's limit
// of 1664 columns.
const maxColumns = 1600

// The settings that decide how a value is written, and those under which it
// reads the same whatever the settings of its reader: a refresh runs under
// those of its flow.
const (
	writingSettings = `
		select pg_catalog.current_setting('DateStyle'), pg_catalog.current_setting('IntervalStyle'),
		       pg_catalog.current_setting('extra_float_digits'), pg_catalog.current_setting('search_path')`
	setWriting = `pg_catalog.set_config('DateStyle', $1, true), pg_catalog.set_config('IntervalStyle', $2, true),
		pg_catalog.set_config('extra_float_digits', $3, true), pg_catalog.set_config('search_path', $4, true)`
)

var neutralWriting = strings.NewReplacer("$1", "'ISO'", "$2", "'postgres'", "$3", "'1'", "$4", "''").Replace(setWriting)

// readParameters has Postgres read the bytes of a Bind and write them as text.
// They are read under the client's settings, as any Bind is; the settings are
// changed by the row that they are part of, before it is written.
func (c *injector) readParameters(ctx context.Context, types []parameter, bound bindValues) (pgsession.Row, error) {
	own, err := c.Query(ctx, writingSettings)
	if err != nil {
		return nil, err
	}
	var oids []uint32
	for _, t := range types {
		oids = append(oids, t.oid)
	}
	var values pgsession.Row
	for from := 0; from < len(types); from += maxColumns {
		var list strings.Builder
		to := min(from+maxColumns, len(types))
		for n := from; n < to; n++ {
			list.WriteString("$" + strconv.Itoa(n+1) + ", ")
		}
		r, err := c.round(ctx, &pgproto3.Parse{Query: "select " + list.String() + neutralWriting, ParameterOIDs: oids},
			bindStep(bound.formats, bound.values), executeStep, closePortal)
		if err != nil {
			return nil, err
		}
		values = append(values, r.rows[0][:to-from]...)
		_, err = c.Exec(ctx, "select "+setWriting, own[0][0].Text, own[0][1].Text, own[0][2].Text, own[0][3].Text)
		if err != nil {
			return nil, err
		}
	}
	return values, c.session.checkReadable(values)
}

// checkReadable refuses a value whose bytes our lexer would misread.
func (s *session) checkReadable(values pgsession.Row) error {
	s.mu.Lock()
	unsafe := s.unsafeText
	s.mu.Unlock()
	for n, v := range values {
		if unsafe && !isASCII(v.Text) {
			return pgdiag.New("0A000", "parameter $"+strconv.Itoa(n+1)+" has characters that cannot be read in this client_encoding").
				WithHint("SET client_encoding = 'UTF8', or another encoding in which the bytes of ASCII stand for ASCII only.")
		}
	}
	return nil
}
