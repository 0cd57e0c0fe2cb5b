package flowstate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Target is a relation that a statement names.
type Target struct {
	OID    uint32
	Schema string
	Name   string
	Kind   string // pg_class.relkind
	Owner  string
	// OwnedByCaller reports whether the session's role has the rights of Owner.
	OwnedByCaller bool
	Table         *StreamingTable // nil if it is not a streaming table
}

// QualifiedName returns the name of t with its schema.
func (t *Target) QualifiedName() rewrite.Name {
	return rewrite.Name{Schema: t.Schema, Table: t.Name}
}

// StreamingTable is what is stored of a streaming table.
type StreamingTable struct {
	Target      rewrite.Name // with its schema
	Statement   string       // as typed
	Declared    bool         // its columns were declared, rather than taken from the query
	Properties  map[string]string
	Comment     *string
	PartitionBy []string
	ClusterBy   string            // the clause as typed; "" when there is none
	Schedule    string            // "" when there is none
	Settings    map[string]string // the session settings that the flow's text was written under
	Flow        *Flow             // nil until CREATE FLOW

	// The rest is read by Lookup; what is written does not have it.

	// DefinitionVersion moves when a refresh would compute something else.
	DefinitionVersion int
	// LastRefresh is the last refresh of the flow's own window, nil before the
	// first.
	LastRefresh *LastRefresh
}

// LastRefresh is what the next refresh is compared with.
type LastRefresh struct {
	Window            string // the predicate, resolved
	PredicateVolatile bool   // it, or that of an override since, called a volatile function
	DefinitionVersion int
}

// ResetAllowed reports whether a full refresh may delete the rows outside the
// window.
func (t *StreamingTable) ResetAllowed() bool {
	return !strings.EqualFold(t.Properties["pipelines.reset.allowed"], "false")
}

// Flow is the flow of a streaming table.
type Flow struct {
	Name              string
	Statement         string // CREATE FLOW as typed; "" for a flow defined with its table
	Comment           *string
	View              string // the view with the query, as SQL; "" when it was dropped
	ViewOID           uint32 // read by Lookup; 0 when the view was dropped
	ViewOwner         string // read by Lookup
	Predicate         string // as typed
	Condition         string // the predicate as PostgreSQL, over the target's bare columns
	PredicateVolatile bool   // the predicate calls a volatile function
	Query             string // as typed
	// PredicateColumns are the columns of the target that the predicate reads:
	// a write to the target by others than refreshes is logged with their
	// values. They are written, not read by Lookup.
	PredicateColumns []string
}

// Lookup returns the relation of a name as the session resolves it, nil if
// there is none. It returns 42501 for a streaming table that the session's role
// may neither SELECT nor act as the owner of.
func Lookup(ctx context.Context, s pgsession.Session, name rewrite.Name) (*Target, error) {
	row, err := newRequest("lookup").name("target", name).send(ctx, s,
		"oid", "schema", "name", "kind", "owner", "owned_by_caller", "id", "statement", "declared_columns", "properties", "comment",
		"partition_by", "schedule", "settings", "definition_version", "last_window", "last_window_volatile",
		"last_definition_version", "flow_name", "flow_statement", "flow_comment", "view", "view_oid", "view_owner",
		"predicate", "condition", "condition_volatile", "query")
	if err != nil || row["oid"].Null {
		return nil, err
	}
	target := &Target{
		OID:           uint32(integer(row["oid"])),
		Schema:        row["schema"].Text,
		Name:          row["name"].Text,
		Kind:          row["kind"].Text,
		Owner:         row["owner"].Text,
		OwnedByCaller: row["owned_by_caller"].Text == "true",
	}
	if row["id"].Null {
		return target, nil
	}
	table := &StreamingTable{
		Target:            target.QualifiedName(),
		Statement:         row["statement"].Text,
		Declared:          row["declared_columns"].Text == "true",
		Comment:           pointer(row["comment"]),
		Schedule:          row["schedule"].Text,
		DefinitionVersion: int(integer(row["definition_version"])),
	}
	if version := row["last_definition_version"]; !version.Null {
		table.LastRefresh = &LastRefresh{
			Window:            row["last_window"].Text,
			PredicateVolatile: row["last_window_volatile"].Text == "true",
			DefinitionVersion: int(integer(version)),
		}
	}
	for part, into := range map[string]any{
		"properties": &table.Properties, "partition_by": &table.PartitionBy, "settings": &table.Settings,
	} {
		if err := json.Unmarshal([]byte(row[part].Text), into); err != nil {
			return nil, fmt.Errorf("stored %s of a streaming table: %w", part, err)
		}
	}
	if !row["flow_name"].Null {
		table.Flow = &Flow{
			Name:              row["flow_name"].Text,
			Statement:         row["flow_statement"].Text,
			Comment:           pointer(row["flow_comment"]),
			View:              row["view"].Text,
			ViewOID:           uint32(integer(row["view_oid"])),
			ViewOwner:         row["view_owner"].Text,
			Predicate:         row["predicate"].Text,
			Condition:         row["condition"].Text,
			PredicateVolatile: row["condition_volatile"].Text == "true",
			Query:             row["query"].Text,
		}
	}
	target.Table = table
	return target, nil
}

// Create stores a streaming table, with its flow if it has one. The table and
// the flow's view exist. Errors: 42501 unless the session's role has the rights
// of the table's owner and is the view's; 42710 if a flow of this name exists.
func Create(ctx context.Context, s pgsession.Session, t StreamingTable) error {
	_, err := newRequest("create_table").relation("target", t.Target.SQL()).table(t).send(ctx, s)
	return err
}

// Replace makes everything stored of a streaming table that of t, and drops the
// view of the flow it had if t has another. Errors as Create, and 42809 if it
// is not a streaming table.
func Replace(ctx context.Context, s pgsession.Session, target uint32, t StreamingTable) error {
	_, err := newRequest("replace_table").number("target", int64(target)).table(t).send(ctx, s)
	return err
}

// AddFlow gives a streaming table its flow: statement is the CREATE FLOW that
// was typed. Errors as Replace, and 42710 if the table has a flow.
func AddFlow(ctx context.Context, s pgsession.Session, target uint32, f Flow, settings map[string]string, statement string) error {
	f.Statement = statement
	_, err := newRequest("add_flow").number("target", int64(target)).flow(&f).object("settings", settings).send(ctx, s)
	return err
}

// Drop forgets a streaming table and drops its flow's view; it does nothing for
// another table. The table itself is the session's to drop, afterwards: a view
// that reads it would be in the way. With cascade, so do the views that others
// have built on the flow's. It returns 42501 if the session's role may not drop
// the table, 2BP01 if something depends on the view.
func Drop(ctx context.Context, s pgsession.Session, target uint32, cascade bool) error {
	_, err := newRequest("drop_table").number("target", int64(target)).boolean("cascade", cascade).send(ctx, s)
	return err
}

// Sweep forgets the streaming tables that were dropped without rwproxy, by
// DROP SCHEMA … CASCADE or past the proxy. It is cheap when there are none, and
// leaves what it would have to wait for to the next call.
func Sweep(ctx context.Context, s pgsession.Session) error {
	_, err := newRequest("sweep").send(ctx, s)
	return err
}

// name is the OID of a name as the session resolves it.
func (r *request) name(field string, n rewrite.Name) *request {
	parts := ""
	for _, part := range []string{n.Catalog, n.Schema, n.Table} {
		if part != "" {
			parts += ", pg_catalog.quote_ident(" + r.parameter(part) + ")"
		}
	}
	return r.field(field, "pg_catalog.to_regclass(pg_catalog.concat_ws('.'"+parts+"))::pg_catalog.oid::pg_catalog.int8")
}

func (r *request) table(t StreamingTable) *request {
	return r.text("statement", t.Statement).
		boolean("declared_columns", t.Declared).
		object("properties", t.Properties).
		pointer("comment", t.Comment).
		list("partition_by", t.PartitionBy).
		optional("cluster_by", t.ClusterBy).
		optional("schedule", t.Schedule).
		object("settings", t.Settings).
		flow(t.Flow)
}

func (r *request) flow(f *Flow) *request {
	if f == nil {
		return r
	}
	return r.text("flow_name", f.Name).
		optional("flow_statement", f.Statement).
		pointer("flow_comment", f.Comment).
		relation("view", f.View).
		text("predicate", f.Predicate).
		text("condition", f.Condition).
		boolean("condition_volatile", f.PredicateVolatile).
		text("query", f.Query).
		list("predicate_columns", f.PredicateColumns)
}

func pointer(v pgsession.Value) *string {
	if v.Null {
		return nil
	}
	return &v.Text
}

// integer reads a number of our own functions, 0 for NULL.
func integer(v pgsession.Value) int64 {
	n, _ := strconv.ParseInt(v.Text, 10, 64)
	return n
}
