package refresh

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// insertion is one INSERT that PostgreSQL does not have.
type insertion struct {
	engine    *Engine
	client    Client
	statement *rewrite.Insert
	settings  insertSettings
	frame     *frame
	began     time.Time
	target    insertTarget
	sql       rewrite.Overwrite
	deletes   []rewrite.Translation
	checks    insertChecks
	sources   string // the tables to lock before a snapshot is taken, "" if none
	deleted   int64
	inserted  int64
}

// insert runs an INSERT … REPLACE, an INSERT OVERWRITE, or a plain one in
// Databricks' grammar, and returns its command tag.
func (e *Engine) insert(ctx context.Context, c Client, st *rewrite.Insert) (tag string, err error) {
	if at := st.Parameter(); at >= 0 {
		return "", rewrite.NoParameter(st.Text, at)
	}
	i := &insertion{engine: e, client: c, statement: st, began: time.Now()}
	if err := e.installFunctions(ctx, c); err != nil {
		return "", err
	}
	if c.Joined() {
		err = i.joined(ctx)
	} else {
		err = i.owned(ctx)
	}
	if err != nil {
		return "", err
	}
	e.logger.Debug("inserted", zap.String(keyDatabase, c.Database()), zap.String(keyTarget, i.target.schema+"."+i.target.name),
		zap.Int64(keyDeleted, i.deleted), zap.Int64(keyInserted, i.inserted), zap.Duration(keyDuration, time.Since(i.began)))
	return "INSERT 0 " + strconv.FormatInt(i.inserted, 10), nil
}

// replaces reports that the statement deletes rows.
func (i *insertion) replaces() bool { return i.statement.Replaces != rewrite.ReplacesNothing }

// joined inserts inside the client's transaction, at its isolation level.
func (i *insertion) joined(ctx context.Context) error {
	if err := i.prepare(ctx); err != nil {
		return err
	}
	if i.replaces() {
		if err := lockInTransaction(ctx, i.client, i.target.oid); err != nil {
			return err
		}
	}
	if err := i.run(ctx); err != nil {
		return err
	}
	return i.frame.leave(ctx)
}

// prepare finds out what the statement means, in the transaction that is open.
func (i *insertion) prepare(ctx context.Context) error {
	var err error
	if i.settings, err = readInsertSettings(ctx, i.client, i.statement.Replaces); err != nil {
		return err
	}
	if err := i.enter(ctx); err != nil {
		return err
	}
	return i.plan(ctx)
}

// enter begins the frame in which the client's text is read: it may use the
// functions of Databricks, after everything that its own search_path finds.
// Where they are not installed nothing is found there.
func (i *insertion) enter(ctx context.Context) error {
	path := compatSchema
	if i.settings.searchPath != "" {
		path = i.settings.searchPath + ", " + compatSchema
	}
	var err error
	i.frame, err = enter(ctx, i.client, map[string]string{settingSearchPath: path}, i.began)
	return err
}

// owned inserts in a transaction of its own.
//
// A transaction before it prepares the statement and tells which tables the
// query reads: their locks have to come before the snapshot. A TRUNCATE or a
// rewriting ALTER TABLE that commits between the two does not respect the
// snapshot, and the source would be seen as empty.
func (i *insertion) owned(ctx context.Context) error {
	err := transaction(ctx, i.client, "begin", func() (err error) {
		if err = i.prepare(ctx); err == nil {
			i.sources, err = lockedTables(ctx, i.client)
		}
		return err
	})
	if err != nil {
		return err
	}
	if i.replaces() {
		unlock, err := lockTarget(ctx, i.client, i.target.oid)
		if err != nil {
			return err
		}
		defer unlock(ctx)
	}
	return retried(ctx, i.attempt)
}

func (i *insertion) attempt(ctx context.Context, exclusive bool) error {
	begin := "begin"
	if i.replaces() {
		begin = "begin isolation level " + i.settings.isolation
	}
	return transaction(ctx, i.client, begin, func() error {
		if err := i.lockSources(ctx, begin); err != nil {
			return err
		}
		if exclusive && i.replaces() && i.target.isTable {
			if _, err := i.client.Exec(ctx, "lock table "+i.sql.Target+" in share row exclusive mode"); err != nil {
				return withoutPosition(err)
			}
		}
		if err := i.enter(ctx); err != nil {
			return err
		}
		return i.run(ctx)
	})
}

// lockSources locks the tables that the query reads. A role that may read them
// only in part, by column, may not lock them; it goes on without.
func (i *insertion) lockSources(ctx context.Context, begin string) error {
	if i.sources == "" {
		return nil
	}
	_, err := i.client.Exec(ctx, "lock table "+i.sources+" in access share mode")
	if pgdiag.Code(err) != "42501" {
		return withoutPosition(err)
	}
	i.sources = ""
	if _, err := i.client.Exec(ctx, "rollback"); err != nil {
		return err
	}
	_, err = i.client.Exec(ctx, begin)
	return err
}

// run writes. Nothing before it has.
func (i *insertion) run(ctx context.Context) error {
	return i.frame.asFlow(ctx, func() error {
		i.deleted, i.inserted = 0, 0
		if !i.replaces() && len(i.sql.Constants) == 0 && !i.sql.Converts() {
			var err error
			i.inserted, err = i.exec(ctx, i.sql.Plain())
			return err
		}
		return i.replace(ctx)
	})
}

func (i *insertion) replace(ctx context.Context) error {
	if err := i.keep(ctx); err != nil {
		return err
	}
	if err := i.checkKept(ctx); err != nil {
		return err
	}
	for _, statement := range i.deletes {
		if err := i.delete(ctx, statement); err != nil {
			return err
		}
	}
	if err := i.store(ctx); err != nil {
		return err
	}
	_, err := i.client.Exec(ctx, "drop table "+i.sql.Kept)
	return err
}

func (i *insertion) delete(ctx context.Context, statement rewrite.Translation) error {
	n, err := i.exec(ctx, statement)
	i.deleted += n
	if err != nil || !i.target.facts.beforeDelete {
		return err
	}
	remaining := "select exists (select from " + strings.TrimPrefix(statement.SQL, "delete from ") + ")"
	rows, err := i.client.Query(ctx, remaining)
	if err != nil || rows[0][0].Text == "f" {
		return withoutPosition(err)
	}
	return rowsKept(i.target.name)
}

// keep runs the query into the temporary table.
func (i *insertion) keep(ctx context.Context) error {
	if _, err := i.client.Exec(ctx, i.sql.CreateKept()); err != nil {
		return keptError(err)
	}
	if _, err := i.exec(ctx, i.sql.Keep()); err != nil {
		return err
	}
	if i.statement.Replaces == rewrite.ReplacesWhere {
		return nil
	}
	// Its rows are joined to the target's.
	_, err := i.client.Exec(ctx, "analyze "+i.sql.Kept)
	return err
}

// keptError explains why the temporary table cannot be made.
func keptError(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		d.Position = 0
		switch d.Code {
		case "42501":
			d.Hint = "This INSERT keeps its rows in a temporary table: the role needs GRANT TEMPORARY ON DATABASE."
		case "25006":
			d.Message = strings.Replace(d.Message, "CREATE TABLE", "INSERT", 1)
		}
	})
}

// exec runs a statement that holds parts of the client's.
func (i *insertion) exec(ctx context.Context, statement rewrite.Translation) (int64, error) {
	if err := i.frame.limit(ctx); err != nil {
		return 0, err
	}
	n, err := i.client.Exec(ctx, statement.SQL)
	return n, relocate(err, i.statement.Text, statement, 0)
}

// describe has Postgres parse a statement that holds parts of the client's.
func (i *insertion) describe(ctx context.Context, statement rewrite.Translation) (names []string, err error) {
	description, err := i.client.Describe(ctx, statement.SQL)
	if err != nil {
		return nil, withoutOverriding(relocate(err, i.statement.Text, statement, 0))
	}
	for _, c := range description.Columns {
		names = append(names, c.Name)
	}
	return names, nil
}

// asInsert words an error of a translation, which speaks of flows, for an
// INSERT.
var asInsert = strings.NewReplacer(" in a REPLACE WHERE flow", " in this INSERT", "A REPLACE WHERE flow", "An INSERT",
	"A flow ", "An INSERT ", "the flow's query", "the query", "The flow's query", "The query")

// located puts the error of a translation where it is in the statement.
func (i *insertion) located(err error) error {
	return pgdiag.Edited(rewrite.Locate(err, i.statement.Text), func(d *pgdiag.Diagnostic) {
		d.Message, d.Hint = asInsert.Replace(d.Message), asInsert.Replace(d.Hint)
	})
}

// fail returns an error at an offset of the statement.
func (i *insertion) fail(offset int, code, message, detail, hint string) *pgdiag.Diagnostic {
	return pgdiag.New(code, message).WithDetail(detail).WithHint(hint).
		At(rewrite.CharPosition(i.statement.Text, offset))
}

func (i *insertion) undefinedColumn(c rewrite.ColumnName) *pgdiag.Diagnostic {
	return i.fail(c.Offset, "42703", fmt.Sprintf("column %q of relation %q does not exist", c.Name, i.target.name),
		"UNRESOLVED_COLUMN", "")
}
