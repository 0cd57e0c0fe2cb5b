package flowstate

import (
	"context"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// request is one step asked of rwproxy.request: a statement under construction.
//
// Texts go to Postgres as parameters of their own, never through a JSON encoder
// of ours: they are in the client's encoding, which need not be UTF-8.
type request struct {
	step   string
	fields []string // 'name', expression
	values []any
}

func newRequest(step string) *request {
	return &request{step: step, values: []any{step}}
}

// parameter adds a value and returns its placeholder.
func (r *request) parameter(value any) string {
	r.values = append(r.values, value)
	return "$" + strconv.Itoa(len(r.values))
}

func (r *request) field(name, expression string) *request {
	r.fields = append(r.fields, "'"+name+"', "+expression)
	return r
}

func (r *request) text(name, value string) *request {
	return r.field(name, r.parameter(value)+"::pg_catalog.text")
}

// optional is a text that is null when it is empty.
func (r *request) optional(name, value string) *request {
	if value == "" {
		return r
	}
	return r.text(name, value)
}

func (r *request) pointer(name string, value *string) *request {
	if value == nil {
		return r
	}
	return r.text(name, *value)
}

func (r *request) boolean(name string, value bool) *request {
	return r.field(name, r.parameter(value)+"::pg_catalog.bool")
}

func (r *request) number(name string, value int64) *request {
	return r.field(name, r.parameter(value)+"::pg_catalog.int8")
}

// relation is the OID of a relation by its SQL name, resolved by the caller: the
// schema's owner need not have the right to look into the caller's schemas.
func (r *request) relation(name, sqlName string) *request {
	return r.field(name, "pg_catalog.to_regclass("+r.parameter(sqlName)+")::pg_catalog.oid::pg_catalog.int8")
}

func (r *request) list(name string, values []string) *request {
	return r.field(name, "pg_catalog.to_jsonb("+r.parameter(append([]string{}, values...))+"::pg_catalog.text[])")
}

// json is a JSON document, null when there is none.
func (r *request) json(name string, document []byte) *request {
	if document == nil {
		return r
	}
	return r.field(name, r.parameter(string(document))+"::pg_catalog.jsonb")
}

func (r *request) object(name string, values map[string]string) *request {
	keys, texts := make([]string, 0, len(values)), make([]string, 0, len(values))
	for k, v := range values {
		keys, texts = append(keys, k), append(texts, v)
	}
	return r.field(name, "pg_catalog.jsonb_object("+r.parameter(keys)+"::pg_catalog.text[], "+
		r.parameter(texts)+"::pg_catalog.text[])")
}

// send runs the step and returns the named parts of its result.
func (r *request) send(ctx context.Context, s pgsession.Session, parts ...string) (map[string]pgsession.Value, error) {
	sql := "insert into rwproxy.request (step, arguments) values ($1, pg_catalog.jsonb_build_object(" +
		strings.Join(r.fields, ", ") + ")) returning result is null"
	for _, part := range parts {
		sql += ", pg_catalog.jsonb_extract_path_text(result, '" + part + "')"
	}
	rows, err := s.Query(ctx, sql, r.values...)
	if err != nil {
		return nil, withoutContext(err)
	}
	if len(rows) != 1 || len(rows[0]) != 1+len(parts) || rows[0][0].Text != "f" {
		return nil, pgdiag.New("55000", "the triggers of schema rwproxy do not fire in this session").
			WithHint("Set session_replication_role to origin.")
	}
	result := make(map[string]pgsession.Value, len(parts))
	for i, part := range parts {
		result[part] = rows[0][1+i]
	}
	return result, nil
}

// withoutContext leaves out where in our functions an error was raised: it
// tells the user nothing.
func withoutContext(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) { d.Position, d.Where = 0, "" })
}
