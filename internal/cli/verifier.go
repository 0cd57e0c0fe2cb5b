package cli

import (
	"context"
	_ "embed"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

//go:embed verifier.sql
var verifierQuery string

// verifier returns what Postgres keeps of a role's password, "" if there is no
// such role or it has none. It is read on the service connection, in the
// database that the upstream setting names: rights on pg_authid are each
// database's own.
func (i *instance) verifier(ctx context.Context, role string) (text string, err error) {
	err = i.service.Do(ctx, i.upstream.Service.Database, func(s pgsession.Session) error {
		rows, err := s.Query(ctx, verifierQuery, role)
		if err == nil && len(rows) > 0 {
			text = rows[0][0].Text
		}
		return err
	})
	return text, err
}
