package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/rewrite"
)

// syntaxError is a SQLSTATE.
const syntaxError = "42601"

// splitFunc is rewrite.Split.
type splitFunc func(sql string, o rewrite.Lexical) []rewrite.Span

// suspect is a statement that Postgres cannot read: it may be the beginning of
// one. Every such beginning is a syntax error, as Postgres's grammar has
// semicolons in parentheses and BEGIN ATOMIC … END only.
type suspect struct{ start, number int }

// reach is how many more statements may belong to a suspect.
const reach = 10

// result is what was seen in one script.
type result struct {
	statements  int
	unreadable  int // of the statements: Postgres refuses their syntax, too
	differences []string
}

func (r *result) differ(what, sql string) {
	r.differences = append(r.differences, what+":\n\t"+strings.ReplaceAll(strings.TrimSpace(sql), "\n", "\n\t"))
}

// check cuts sql with split and compares with what Postgres makes of it.
func check(ctx context.Context, c *pgconn.PgConn, sql string, split splitFunc) (result, error) {
	var r result
	for sql != "" {
		read, err := r.run(ctx, c, sql, split)
		if err != nil {
			return r, err
		}
		sql = sql[read:]
	}
	return r, nil
}

// run checks the statements of sql up to one that changes how strings are read,
// and returns where it stopped.
func (r *result) run(ctx context.Context, c *pgconn.PgConn, sql string, split splitFunc) (int, error) {
	escapes := c.ParameterStatus("standard_conforming_strings") == "off"
	lexical := rewrite.Lexical{BackslashEscapes: escapes}
	end := 0 // of the last statement
	var suspects []suspect
	for _, span := range split(sql, lexical) {
		if err := r.checkGap(ctx, c, sql[end:span.Offset]); err != nil {
			return 0, err
		}
		end = span.Offset + len(span.Text)
		r.statements++
		cut, err := parse(ctx, c, span.Text)
		if err != nil {
			return 0, err
		}
		if cut == several {
			r.differ("Postgres cuts this", span.Text)
		}
		suspects = slices.DeleteFunc(suspects, func(s suspect) bool { return s.number+reach < r.statements })
		for _, s := range suspects {
			joined, err := parse(ctx, c, sql[s.start:end])
			if err != nil {
				return 0, err
			}
			if joined == one {
				r.differ("Postgres does not cut this", sql[s.start:end])
			}
		}
		if cut == unreadable {
			r.unreadable++
			suspects = append(suspects, suspect{start: span.Offset, number: r.statements})
		}
		r.checkNative(span.Text, lexical)
		if strings.Contains(strings.ToLower(span.Text), "standard_conforming_strings") {
			if _, err := c.Exec(ctx, span.Text).ReadAll(); err != nil && !isServerError(err) {
				return 0, err
			}
			if off := c.ParameterStatus("standard_conforming_strings") == "off"; off != escapes {
				return end, nil
			}
		}
	}
	return len(sql), r.checkGap(ctx, c, sql[end:])
}

// checkGap checks that Postgres finds no statement between two of ours.
func (r *result) checkGap(ctx context.Context, c *pgconn.PgConn, gap string) error {
	if strings.Trim(gap, "; \t\r\n\f\v") == "" {
		return nil
	}
	results, err := c.Exec(ctx, gap).ReadAll()
	if err != nil && !isServerError(err) {
		return err
	}
	// An empty query has a result without a tag.
	if err != nil || slices.ContainsFunc(results, func(r *pgconn.Result) bool { return r.CommandTag.String() != "" }) {
		r.differ("Postgres finds a statement in this", gap)
	}
	return nil
}

// checkNative checks that a statement is left to Postgres as it is. DROP TABLE
// is read because the tables may be ours, and runs as it is.
func (r *result) checkNative(sql string, lexical rewrite.Lexical) {
	statement, err := rewrite.Parse(sql, lexical)
	switch drop, isDrop := statement.(*rewrite.Drop); {
	case err != nil:
		r.differ(fmt.Sprintf("refused (%v)", err), sql)
	case isDrop && drop.Native == drop.Text && rewrite.MayBeOurs([]byte(sql)):
	case statement != nil:
		r.differ("taken for "+statement.Tag(), sql)
	}
}

// reading is what Postgres makes of a text.
type reading int

const (
	one        reading = iota // statement, valid or not, or none
	several                   // statements
	unreadable                // by the lexer or the grammar
)

// parse has Postgres read a text without running it.
func parse(ctx context.Context, c *pgconn.PgConn, sql string) (reading, error) {
	_, err := c.Prepare(ctx, "", sql, nil)
	var refusal *pgconn.PgError
	switch {
	case err == nil:
		return one, nil
	case !errors.As(err, &refusal):
		return 0, fmt.Errorf("parse %q: %w", sql, err)
	case refusal.Routine == "exec_parse_message" && refusal.Code == syntaxError:
		return several, nil
	case refusal.Routine == "scanner_yyerror":
		return unreadable, nil
	}
	return one, nil
}

func isServerError(err error) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal)
}
