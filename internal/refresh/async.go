package refresh

import (
	"context"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// enqueue is REFRESH … ASYNC. What a refresh would be refused for it is refused
// for at once; then it is in the queue, when the client's transaction commits.
func (e *Engine) enqueue(ctx context.Context, c Client, st *rewrite.Refresh, result *Result) error {
	run, err := e.newRefresh(ctx, c, st)
	if err != nil {
		return err
	}
	if run.target.Table.Flow.View == "" {
		return viewGone(st.Text, st.Target)
	}
	if err := e.checkRunner(ctx, c); err != nil {
		return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
			if d.Code == "42501" {
				d.Hint += " Or leave ASYNC out."
			}
		})
	}
	var id string
	err = inTransaction(ctx, c, func() error {
		request, err := run.request(ctx)
		if err != nil {
			return err
		}
		id, err = flowstate.Enqueue(ctx, c, request)
		return err
	})
	if err != nil {
		return err
	}
	const uuidOID, textOID = 2950, 25
	result.Columns = []pgsession.Column{
		{Name: "update_id", TypeOID: uuidOID, TypeModifier: -1}, {Name: "status_url", TypeOID: textOID, TypeModifier: -1},
	}
	url := e.statusURL(c.Database(), id)
	result.Rows = []pgsession.Row{{{Text: id}, {Text: url, Null: url == ""}}}
	return nil
}

func (e *Engine) statusURL(database, updateID string) string {
	if e.StatusURL == nil {
		return ""
	}
	return e.StatusURL(database, updateID)
}

// checkRunner refuses a client whose role the service may not become.
func (e *Engine) checkRunner(ctx context.Context, c Client) error {
	rows, err := c.Query(ctx, "select current_user")
	if err != nil {
		return err
	}
	return e.service.CheckRunner(ctx, c.Database(), rows[0][0].Text)
}

// request is what the run is to do, once it has been checked as far as that can
// be done without reading a source.
func (r *run) request(ctx context.Context) (flowstate.Request, error) {
	request := flowstate.Request{Target: r.target.OID, Kind: r.kind}
	if err := refuseUnreadable(ctx, r.client, r.target.Table.Flow.View); err != nil {
		return request, err
	}
	var err error
	if r.frame, err = enter(ctx, r.client, r.target.Table.Settings, r.began); err != nil {
		return request, err
	}
	if _, err := r.window(ctx); err != nil {
		return request, err
	}
	if r.where != nil {
		request.Where = strings.TrimSpace(r.where.Text)
		request.Settings = map[string]string{settingStandardStrings: r.frame.own[settingStandardStrings]}
	}
	return request, r.frame.leave(ctx)
}

// refuseUnreadable is what Postgres answers to a query of a view that the
// session may not read. It waits for no lock of a source, as the query would.
func refuseUnreadable(ctx context.Context, s pgsession.Session, view string) error {
	rows, err := s.Query(ctx, `
		select pg_catalog.has_table_privilege(c.oid, 'SELECT'), c.relname
		  from pg_catalog.pg_class c
		 where c.oid = pg_catalog.to_regclass($1)`, view)
	if err != nil || len(rows) == 0 || rows[0][0].Text == "t" {
		return err
	}
	return viewError(pgdiag.New("42501", "permission denied for view "+rows[0][1].Text), view)
}

// refreshWhere is the statement REFRESH … WHERE of a predicate that stands by
// itself.
func refreshWhere(target rewrite.Name, predicate string, lexical rewrite.Lexical) (*rewrite.Refresh, error) {
	statement, err := rewrite.Parse("refresh streaming table "+target.SQL()+" where "+predicate, lexical)
	if err != nil {
		return nil, err
	}
	st, is := statement.(*rewrite.Refresh)
	if !is || st.Where == nil || st.Full || st.Async {
		return nil, pgdiag.New("42601", "a predicate is expected").WithDetail("PARSE_SYNTAX_ERROR")
	}
	return st, nil
}
