package refresh

import (
	"context"
	"errors"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// alterStreamingTable is ALTER STREAMING TABLE.
func (e *Engine) alterStreamingTable(ctx context.Context, c Client, st *rewrite.AlterStreamingTable) error {
	target, err := e.lookup(ctx, c, st.Text, st.Target)
	switch {
	case err != nil:
		return err
	case target == nil:
		return undefinedTable(st.Text, st.Target)
	case target.Table == nil:
		return notStreamingTable(st.Text, st.Target)
	}
	return inTransaction(ctx, c, func() error {
		if err := alter(ctx, c, st, target); err != nil {
			return err
		}
		if set, is := st.Action.(rewrite.SetSchedule); is {
			if err := e.mayRunFor(ctx, c, target.Owner, rewrite.CharPosition(st.Text, set.Schedule.Offset)); err != nil {
				return err
			}
		}
		return notifyAll(ctx, c, st.Notices)
	})
}

func alter(ctx context.Context, c Client, st *rewrite.AlterStreamingTable, target *flowstate.Target) error {
	name := rewrite.CharPosition(st.Text, st.Target.Offset)
	switch a := st.Action.(type) {
	case rewrite.SetSchedule:
		schedule, err := scheduleText(ctx, c, st.Text, a.Schedule)
		if err != nil {
			return err
		}
		set := flowstate.AlterSchedule
		if a.Add {
			set = flowstate.AddSchedule
		}
		return atTrigger(placed(set(ctx, c, target.OID, schedule), name), st.Text, &a.Schedule)
	case rewrite.DropSchedule:
		return placed(flowstate.DropSchedule(ctx, c, target.OID), name)
	case rewrite.SetProperties:
		return placed(flowstate.SetProperties(ctx, c, target.OID, a.Properties), name)
	case rewrite.UnsetProperties:
		return placed(flowstate.UnsetProperties(ctx, c, target.OID, a.Keys, a.IfExists), rewrite.CharPosition(st.Text, a.Offset))
	case rewrite.CommentColumn:
		_, err := c.Exec(ctx, "comment on column "+target.QualifiedName().SQL()+"."+rewrite.QuoteIdentifier(a.Column)+
			" is "+rewrite.QuoteLiteral(a.Comment))
		return placed(err, rewrite.CharPosition(st.Text, a.Offset))
	case rewrite.SetOwner:
		return placed(setOwner(ctx, c, target, a.Role), rewrite.CharPosition(st.Text, a.Offset))
	}
	return errors.New("no such action")
}

// setOwner gives a table and the view of its flow to a role. With the view goes
// the authorship: the query reads its sources with the new owner's rights.
func setOwner(ctx context.Context, s pgsession.Session, target *flowstate.Target, role string) error {
	_, err := s.Exec(ctx, "alter table "+target.QualifiedName().SQL()+" owner to "+role)
	if err != nil || target.Table.Flow == nil || target.Table.Flow.View == "" {
		return err
	}
	_, err = s.Exec(ctx, "alter view "+target.Table.Flow.View+" owner to "+role)
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		if d.Code != "42501" {
			return
		}
		d.Detail = "The view holds the flow's query, which reads its sources with the rights of the view's owner, " +
			target.Table.Flow.ViewOwner + "."
		d.Hint = "Use ALTER TABLE ... OWNER TO to give away the table alone."
	})
}

// placed gives an error without a position one in the client's statement.
func placed(err error, position int) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) { d.Position = position })
}

// storedOnly says that a clause is stored and has no effect here.
func storedOnly(clause, hint string) *pgdiag.Diagnostic {
	return pgdiag.New("01000", clause+" is stored but has no effect").WithHint(hint)
}
