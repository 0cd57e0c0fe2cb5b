package refresh

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// viewSchema holds every flow's view. It is never on a search_path.
const viewSchema = "rwproxy_flows"

// flowQuery is a flow's query as Postgres is to read it.
type flowQuery struct {
	typed       rewrite.Span
	translation rewrite.Translation
	statement   string // the whole statement, for positions
	lexical     rewrite.Lexical
	pseudo      bool // a column is a row without a type
}

// Type OIDs of pg_type.dat.
const (
	oidJSON        = 114
	oidNumeric     = 1700
	oidRecord      = 2249
	oidRecordArray = 2287
)

// readQuery translates a query and has Postgres check it. It fails as the
// query itself would, at the same place of the client's own text.
func readQuery(ctx context.Context, f *frame, statement string, q rewrite.Span, lexical rewrite.Lexical) (*flowQuery, error) {
	query := &flowQuery{typed: q, statement: statement, lexical: lexical}
	var description pgsession.Description
	err := f.asFlow(ctx, func() (err error) {
		if query.translation, err = rewrite.TranslateQuery(q, catalog{ctx, f.session}, lexical); err != nil {
			return rewrite.Locate(err, statement)
		}
		if description, err = f.session.Describe(ctx, query.translation.SQL); err != nil {
			return query.locate(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, c := range description.Columns {
		query.pseudo = query.pseudo || c.TypeOID == oidRecord || c.TypeOID == oidRecordArray
	}
	if len(description.Parameters) > 0 {
		return nil, noParameter(statement, q, lexical)
	}
	if len(description.Columns) == 0 {
		return nil, pgdiag.New("42601", "a flow's query must return columns").
			WithHint("Use SELECT, WITH ... SELECT, VALUES or TABLE.").
			At(rewrite.CharPosition(statement, q.Offset))
	}
	return query, nil
}

// locate puts a position that Postgres reported in the translated query into
// the statement the client sent.
func (q *flowQuery) locate(err error) error {
	return relocate(err, q.statement, q.translation, 0)
}

// createView stores the query as a view of the client's own, so that it reads
// the sources with the author's rights, and returns its quoted, qualified name.
func (q *flowQuery) createView(ctx context.Context, f *frame, target rewrite.Name) (string, error) {
	view := viewSchema + "." + rewrite.QuoteIdentifier(viewName(target.Table))
	err := f.asFlow(ctx, func() error { return quietly(ctx, f.session, "create view "+view+" as\n"+q.translation.SQL) })
	if err != nil {
		if pgdiag.Code(err) == "42P16" && !q.pseudo {
			return "", pgdiag.New("42P16", "a flow cannot read temporary tables").
				WithHint("Other sessions refresh it too; create the source as an ordinary table.").
				At(rewrite.CharPosition(q.statement, q.typed.Offset))
		}
		return "", withoutPosition(err)
	}
	if err := q.refuseFrozenWords(ctx, f.session, view); err != nil {
		return "", err
	}
	return view, nil
}

// quietly runs a statement whose notices would be about names that the user
// has not written.
func quietly(ctx context.Context, s pgsession.Session, sql string) error {
	const set = "select pg_catalog.current_setting('client_min_messages'), pg_catalog.set_config('client_min_messages', $1, true)"
	rows, err := s.Query(ctx, set, "warning")
	if err != nil {
		return err
	}
	if _, err := s.Exec(ctx, sql); err != nil {
		return err
	}
	_, err = s.Exec(ctx, set, rows[0][0].Text)
	return err
}

// viewName is the table's name, so that a person recognises it, with a random
// ending, so that it is free.
func viewName(table string) string {
	const longest = 63 - 1 - 8 // bytes of an identifier, less the ending
	for len(table) > longest {
		table = table[:len(table)-1]
	}
	var ending [4]byte
	_, _ = rand.Read(ending[:]) // never fails since Go 1.24
	return strings.ToValidUTF8(table, "") + "_" + hex.EncodeToString(ending[:])
}

// refuseFrozenWords refuses a query in which a string such as 'today' became a
// constant date: the view would keep the day it was created on for ever.
func (q *flowQuery) refuseFrozenWords(ctx context.Context, s pgsession.Session, view string) error {
	rows, err := s.Query(ctx, "select pg_get_viewdef($1::regclass)", view)
	if err != nil {
		return err
	}
	if frozen := frozenWord(q.translation.SQL, rows[0][0].Text, q.lexical); frozen != nil {
		return frozenError(frozen.word).
			At(originPosition(q.statement, q.translation, rewrite.CharPosition(q.translation.SQL, frozen.offset)))
	}
	return nil
}

func frozenError(word string) *pgdiag.Diagnostic {
	return pgdiag.New("0A000", "the date/time string '"+word+"' cannot be used in a flow").
		WithDetail("Postgres would replace it by the date and time of this statement, once and for ever.").
		WithHint("Use current_date, current_date - 1, current_date + 1 or now().")
}

type frozen struct {
	word   string
	offset int // in bytes, in the text that was stored
}

// frozenWord returns the first special date/time string of text that is no
// longer in what Postgres stored of it, nil if all are there still.
func frozenWord(text, stored string, lexical rewrite.Lexical) *frozen {
	inStored := map[string]int{}
	for _, f := range specialWords(stored, rewrite.Lexical{}) {
		inStored[f.word]++
	}
	for _, f := range specialWords(text, lexical) {
		inStored[f.word]--
		if inStored[f.word] < 0 {
			return &f
		}
	}
	return nil
}

// dateWords are the strings that Postgres reads as the current date or time,
// alone, and as a bound or element of a range or an array.
var dateWords = regexp.MustCompile(`(?i)\b(?:now|today|tomorrow|yesterday)\b`)

// specialWords returns the date/time words in the strings of a text.
func specialWords(text string, lexical rewrite.Lexical) []frozen {
	tokens, err := rewrite.Tokens(text, lexical)
	if err != nil {
		return nil // Postgres has accepted the text; it prints no unterminated string
	}
	var words []frozen
	for _, t := range tokens {
		if t.Kind != rewrite.String && t.Kind != rewrite.DollarString {
			continue
		}
		for _, word := range dateWords.FindAllString(rewrite.StringValue(text[t.Start:t.End], lexical), -1) {
			words = append(words, frozen{word: strings.ToLower(word), offset: t.Start})
		}
	}
	return words
}
