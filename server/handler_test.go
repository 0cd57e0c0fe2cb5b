package server_test

import (
	"context"
	"errors"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
	"github.com/rwproxy/rwproxy/server"
)

// unreachable is the handler of tests in which no statement is ours.
type unreachable struct{}

func (unreachable) Run(context.Context, server.Client, rewrite.Statement) (server.Outcome, error) {
	return server.Outcome{}, errors.New("not a statement of ours")
}

func (unreachable) Prepare(context.Context, server.Client, rewrite.Statement, []string) ([]uint32, error) {
	return nil, errors.New("not a statement of ours")
}

// handlerFunc is a handler that is a function.
type handlerFunc func(context.Context, server.Client, rewrite.Statement) (server.Outcome, error)

func (f handlerFunc) Run(ctx context.Context, c server.Client, s rewrite.Statement) (server.Outcome, error) {
	return f(ctx, c, s)
}

// Prepare infers types as the refresh engine does, with table typed in
// the place of a refresh's target.
func (f handlerFunc) Prepare(ctx context.Context, c server.Client, s rewrite.Statement, declared []string) ([]uint32, error) {
	refresh, ok := s.(*rewrite.Refresh)
	if !ok || refresh.Where == nil {
		return nil, pgdiag.New("42P02", "a stored statement cannot have parameters")
	}
	predicate, err := rewrite.DeclareParameters(refresh.Where.Text, rewrite.Lexical{}, declared)
	if err != nil {
		return nil, err
	}
	description, err := c.Describe(ctx, "select from typed where ("+predicate.SQL+"\n)")
	return description.Parameters, err
}

// refreshing stands for the refresh engine: REFRESH STREAMING TABLE inserts a
// row into log, in a transaction of its own unless it is joined. The table's
// name says what else happens.
var refreshing = handlerFunc(func(ctx context.Context, c server.Client, s rewrite.Statement) (server.Outcome, error) {
	refresh, ok := s.(*rewrite.Refresh)
	if !ok {
		return forwarding(ctx, c, s)
	}
	run := func() (server.Outcome, error) {
		if _, err := c.Exec(ctx, "insert into log values ($1, $2)", refresh.Target.Table, c.Joined()); err != nil {
			return server.Outcome{}, err
		}
		return behaviours[refresh.Target.Table](ctx, c)
	}
	if c.Joined() {
		return run()
	}
	if _, err := c.Exec(ctx, "begin isolation level repeatable read"); err != nil {
		return server.Outcome{}, err
	}
	outcome, err := run()
	if err != nil {
		_, _ = c.Exec(ctx, "rollback") // as the engine does; the first error counts
		return outcome, err
	}
	_, err = c.Exec(ctx, "commit")
	return outcome, err
})

const valuesOfTypes = `select 'é'::text, '00112233-4455-6677-8899-aabbccddeeff'::uuid, 9007199254740993::bigint, true, null::bool,
	'2024-01-31 10:00:00.000001+05'::timestamptz, 1.50::numeric, '{1,null}'::int[], '-1 day'::interval, date '2024-02-29', 'n'::name`

var behaviours = map[string]func(context.Context, server.Client) (server.Outcome, error){
	"good": func(context.Context, server.Client) (server.Outcome, error) {
		return server.Outcome{Tag: "REFRESH STREAMING TABLE"}, nil
	},
	// refused fails without asking Postgres.
	"refused": func(context.Context, server.Client) (server.Outcome, error) {
		return server.Outcome{}, pgdiag.New("55000", "not now").WithHint("Try later.").At(11)
	},
	"broken": func(context.Context, server.Client) (server.Outcome, error) {
		return server.Outcome{}, errors.New("out of luck")
	},
	// divided fails in Postgres.
	"divided": func(ctx context.Context, c server.Client) (server.Outcome, error) {
		_, err := c.Exec(ctx, "select 1/0")
		return server.Outcome{}, err
	},
	// copying asks the client for data that it cannot have.
	"copying": func(ctx context.Context, c server.Client) (server.Outcome, error) {
		_, err := c.Exec(ctx, "copy log from stdin")
		return server.Outcome{}, err
	},
	// slow waits in Postgres until somebody ends it.
	"slow": func(ctx context.Context, c server.Client) (server.Outcome, error) {
		_, err := c.Exec(ctx, "select pg_sleep(600)")
		return server.Outcome{}, err
	},
	"panicking": func(context.Context, server.Client) (server.Outcome, error) { panic("a bug") },
	// talkative sends notices, one of its own between two of Postgres's.
	"talkative": func(ctx context.Context, c server.Client) (server.Outcome, error) {
		for _, text := range []string{"first", "second"} {
			if _, err := c.Exec(ctx, "do $$ begin raise notice '"+text+"'; end $$"); err != nil {
				return server.Outcome{}, err
			}
			if text == "first" {
				c.Notice(pgdiag.New("00000", "between"))
			}
		}
		_, err := c.Query(ctx, "select set_config('application_name', 'talked', true), pg_notify('talk', 'x')")
		return server.Outcome{Tag: "REFRESH STREAMING TABLE"}, err
	},
	// types returns a row of the types that a statement of ours may return.
	"types": func(ctx context.Context, c server.Client) (server.Outcome, error) {
		description, err := c.Describe(ctx, valuesOfTypes)
		if err != nil {
			return server.Outcome{}, err
		}
		rows, err := c.Query(ctx, valuesOfTypes)
		return server.Outcome{Tag: "REFRESH STREAMING TABLE", Columns: description.Columns, Rows: rows}, err
	},
	// rows returns three rows.
	"rows": func(context.Context, server.Client) (server.Outcome, error) {
		row := func(id, text string, null bool) pgsession.Row {
			return pgsession.Row{{Text: id}, {Text: text, Null: null}}
		}
		return server.Outcome{
			Tag:     "REFRESH STREAMING TABLE",
			Columns: []pgsession.Column{{Name: "id", TypeOID: 2950, TypeModifier: -1}, {Name: "url", TypeOID: 25, TypeModifier: -1}},
			Rows: []pgsession.Row{
				row("00112233-4455-6677-8899-aabbccddeeff", "", true),
				row("00112233-4455-6677-8899-aabbccddee00", "", false),
				row("00112233-4455-6677-8899-aabbccddee11", "here", false),
			},
		}, nil
	},
}
