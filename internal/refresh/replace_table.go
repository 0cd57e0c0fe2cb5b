package refresh

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// replaceTable is CREATE OR REFRESH of a streaming table that exists: its
// definition becomes the statement's, then its window is refreshed. Metadata
// that the statement does not repeat is removed; columns are only ever added.
// All of it commits together.
func (e *Engine) replaceTable(ctx context.Context, c Client, st *rewrite.CreateStreamingTable, target *flowstate.Target) error {
	if !target.OwnedByCaller {
		return notOwner(target.Name)
	}
	unlock, err := lockTarget(ctx, c, target.OID)
	if err != nil {
		return err
	}
	defer unlock(ctx)
	// What was waited for may have changed or dropped it.
	if target, err = e.lookup(ctx, c, st.Text, st.Target); err != nil {
		return err
	}
	switch {
	case target == nil || target.Table == nil:
		return undefinedTable(st.Text, st.Target)
	case st.Flow == nil && target.Table.Flow != nil && target.Table.Flow.View == "":
		return viewGone(st.Text, st.Target)
	}
	run := newRun(e, c, flowstate.KindWindow)
	err = inTransaction(ctx, c, func() error {
		settings := target.Table.Settings // of a flow that stays as it is
		if st.Flow != nil || target.Table.Flow == nil {
			if settings, err = authorSettings(ctx, c, st.Properties); err != nil {
				return err
			}
		}
		if run.frame, err = enter(ctx, c, settings, run.began); err != nil {
			return err
		}
		if err := e.redefine(ctx, run.frame, st, target, settings); err != nil {
			return err
		}
		if st.Schedule != nil {
			if err := e.mayRunFor(ctx, c, target.Owner, rewrite.CharPosition(st.Text, st.Schedule.Offset)); err != nil {
				return err
			}
		}
		if err := noticeStoredOnly(ctx, c, st); err != nil {
			return err
		}
		if st.Flow != nil || target.Table.Flow != nil {
			if err := run.inPlace(ctx, target.QualifiedName()); err != nil {
				return err
			}
		}
		return run.frame.leave(ctx)
	})
	return run.settle(ctx, err)
}

// redefine changes the stored definition and the table's columns.
func (e *Engine) redefine(ctx context.Context, f *frame, st *rewrite.CreateStreamingTable, target *flowstate.Target, settings map[string]string) error {
	s, name := f.session, target.QualifiedName()
	// Readers go on; other writers, who would meet half a definition, wait.
	if err := lockTable(ctx, s, name.SQL(), "share row exclusive"); err != nil {
		return err
	}
	old, err := columnsOf(ctx, s, name.SQL())
	if err != nil {
		return err
	}
	table := flowstate.StreamingTable{
		Target: name, Statement: st.Text, Properties: st.Properties, Comment: st.Comment,
		PartitionBy: partitionBy(st), Settings: settings, Declared: len(st.Columns) > 0, Flow: target.Table.Flow,
	}
	if err := storeClauses(ctx, f.session, st, &table); err != nil {
		return err
	}
	if err := declareInDialect(ctx, f, st, lexicalOf(settings)); err != nil {
		return err
	}
	if err := declareColumns(ctx, f, st, name, old); err != nil {
		return err
	}
	if st.Flow != nil {
		if table.Flow, err = e.redefineFlow(ctx, f, st, target, settings); err != nil {
			return err
		}
	}
	if err := checkPartitionBy(ctx, s, st, name); err != nil {
		return err
	}
	if err := writeComments(ctx, s, st, name, old); err != nil {
		return err
	}
	return atTrigger(flowstate.Replace(ctx, s, target.OID, table), st.Text, st.Schedule)
}

// declareColumns adds the declared columns that the table lacks, and refuses a
// declaration that would change a type.
func declareColumns(ctx context.Context, f *frame, st *rewrite.CreateStreamingTable, name rewrite.Name, old []column) error {
	existing := byName(old)
	for _, c := range st.Columns {
		was, found := existing[c.Name]
		if !found {
			element, add := c.Element(), "alter table "+name.SQL()+" add column "
			err := f.asFlow(ctx, func() error {
				_, err := f.session.Exec(ctx, add+element.SQL)
				return err
			})
			if err != nil {
				return relocate(err, st.Text, element, utf8.RuneCountInString(add))
			}
			continue
		}
		typ, err := typeName(ctx, f, c.Type)
		if err != nil {
			return placed(err, rewrite.CharPosition(st.Text, c.Written.Offset))
		}
		if typ != was.typ {
			return typeChange(c.Name, was.typ, typ).At(rewrite.CharPosition(st.Text, c.Offset))
		}
	}
	return nil
}

// typeName is a type as format_type prints it, so that spellings compare.
func typeName(ctx context.Context, f *frame, typ string) (string, error) {
	var description pgsession.Description
	err := f.asFlow(ctx, func() (err error) {
		description, err = f.session.Describe(ctx, "select null::"+typ)
		return err
	})
	if err != nil {
		return "", withoutPosition(err)
	}
	c := description.Columns[0]
	rows, err := f.session.Query(ctx, "select format_type($1::oid, $2::int)", c.TypeOID, c.TypeModifier)
	if err != nil {
		return "", err
	}
	return rows[0][0].Text, nil
}

func typeChange(column, from, to string) *pgdiag.Diagnostic {
	return pgdiag.New("42804", fmt.Sprintf("cannot change the type of column %q from %s to %s", column, from, to)).
		WithDetail("The rows outside the window keep the old type; the table and its definition are unchanged.").
		WithHint("Cast the expression to " + from + " in the query, or give the new expression another column name.")
}

// redefineFlow replaces the flow's view and adds the columns that are new in
// it. Roles that could read the old view can read the new one.
func (e *Engine) redefineFlow(ctx context.Context, f *frame, st *rewrite.CreateStreamingTable, target *flowstate.Target, settings map[string]string) (*flowstate.Flow, error) {
	s, name := f.session, target.QualifiedName()
	query, err := readQuery(ctx, f, st.Text, st.Flow.Query, lexicalOf(settings))
	if err != nil {
		return nil, err
	}
	view, err := query.createView(ctx, f, name)
	if err != nil {
		return nil, err
	}
	if err := giveToOwner(ctx, s, view, target.Owner); err != nil {
		return nil, err
	}
	flowName := name.Table
	if old := target.Table.Flow; old != nil {
		if old.Statement != "" {
			flowName = old.Name
		}
	}
	if old := target.Table.Flow; old != nil && old.View != "" {
		if err := refuseTypeChanges(ctx, s, st, name, old.View, view); err != nil {
			return nil, err
		}
		if err := copyGrants(ctx, s, old.View, view); err != nil {
			return nil, err
		}
	}
	if len(st.Columns) == 0 {
		if err := addViewColumns(ctx, s, name, view); err != nil {
			return nil, err
		}
	}
	return e.defineFlow(ctx, f, st.Text, flowName, name, *st.Flow, query, view)
}

// refuseTypeChanges refuses a query whose column has neither the type it had
// in the old query nor that of the target.
func refuseTypeChanges(ctx context.Context, s pgsession.Session, st *rewrite.CreateStreamingTable, name rewrite.Name, oldView, newView string) error {
	targetColumns, err := columnsOf(ctx, s, name.SQL())
	if err != nil {
		return err
	}
	oldColumns, err := columnsOf(ctx, s, oldView)
	if err != nil {
		return err
	}
	newColumns, err := columnsOf(ctx, s, newView)
	if err != nil {
		return err
	}
	inTarget, inOld := byName(targetColumns), byName(oldColumns)
	for _, c := range newColumns {
		was, found := inTarget[c.name]
		if found && c.typ != was.typ && c.typ != inOld[c.name].typ {
			return typeChange(c.name, was.typ, c.typ).At(rewrite.CharPosition(st.Text, st.Flow.Query.Offset))
		}
	}
	return nil
}

// giveToOwner makes a flow's view that of the target's owner: the query reads
// with that role's rights, whoever of those who may has changed it.
func giveToOwner(ctx context.Context, s pgsession.Session, view, owner string) error {
	rows, err := s.Query(ctx, "select current_user")
	if err != nil || rows[0][0].Text == owner {
		return err
	}
	_, err = s.Exec(ctx, "alter view "+view+" owner to "+rewrite.QuoteIdentifier(owner))
	return err
}

// copyGrants gives the roles that may read one view the right to read another.
func copyGrants(ctx context.Context, s pgsession.Session, from, to string) error {
	rows, err := s.Query(ctx, `
		select coalesce(quote_ident(r.rolname), 'public'), granted.is_grantable
		  from pg_catalog.pg_class c
		 cross join lateral pg_catalog.aclexplode(c.relacl) granted
		  left join pg_catalog.pg_roles r on r.oid = granted.grantee
		 where c.oid = $1::pg_catalog.regclass
		   and granted.privilege_type = 'SELECT'
		   and granted.grantee <> c.relowner`, from)
	if err != nil {
		return err
	}
	for _, r := range rows {
		grant := "grant select on " + to + " to " + r[0].Text
		if r[1].Text == "t" {
			grant += " with grant option"
		}
		if _, err := s.Exec(ctx, grant); err != nil {
			return err
		}
	}
	return nil
}

// lexicalOf is how a text is read under a flow's settings.
func lexicalOf(settings map[string]string) rewrite.Lexical {
	dialect, _ := rewrite.ParseDialect(settings[settingDialect]) // checked when it was stored
	return rewrite.Lexical{
		BackslashEscapes: strings.EqualFold(settings[settingStandardStrings], "off"),
		Dialect:          dialect,
	}
}
