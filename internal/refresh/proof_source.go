package refresh

import (
	"context"
	_ "embed" // SQL files
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// sourceColumn is one column of a source, or of the view.
type sourceColumn struct {
	source        uint32 // OID of the relation
	number        int
	name          string
	typ           uint32 // OID of the base type: domains are resolved
	typeName      string // quoted, qualified
	isEnum        bool
	collation     string // quoted, qualified; "" for a type without
	deterministic bool   // its collation finds equal what is the same text only
	generated     bool
	unique        bool // belongs to the narrowest unique index
}

// isKey reports whether the column's values can be keys: its type has a default
// equality that the planner spreads, and values that survive as text.
func (c *sourceColumn) isKey() bool {
	return c.deterministic && (c.isEnum || keyTypes[c.typ] != "")
}

// source is a relation that the view reads: a table, or the topmost of the
// partitioned or inherited tables that the view names.
type source struct {
	oid       uint32
	name      string // quoted, qualified
	columns   []*sourceColumn
	reads     []string // nil for all
	members   []uint32 // the source and the parts of it that the view names
	inherited bool     // has partitions or children
	// unreadable says that EXPLAIN may show the source's columns under names
	// that are not theirs.
	unreadable bool
	// runsFunctions says that planning a query of the source can run somebody's
	// functions.
	runsFunctions bool
}

func (s *source) column(name string) *sourceColumn {
	for _, c := range s.columns {
		if c.name == name {
			return c
		}
	}
	return nil
}

// sources are everything that a view reads.
type sources struct {
	list  []*source               // in the order of their OIDs
	roots map[[2]string][]*source // by schema and name of a table that a plan can scan
	rules []viewRule
	view  []*sourceColumn // the view's own columns
}

// viewRule is the stored query of the view or of one that it reads.
type viewRule struct {
	name   string // of the view
	action string // pg_node_tree
}

func (all *sources) byOID(oid uint32) *source {
	for _, candidate := range all.list {
		if candidate.oid == oid {
			return candidate
		}
	}
	return nil
}

var (
	//go:embed proof_relations.sql
	proofRelationsSQL string
	//go:embed proof_members.sql
	proofMembersSQL string
	//go:embed proof_columns.sql
	proofColumnsSQL string
)

// readSources reads what a view, given by its quoted and qualified name,
// depends on.
func readSources(ctx context.Context, s pgsession.Session, view string) (*sources, error) {
	rows, err := s.Query(ctx, proofRelationsSQL, view)
	if err != nil {
		return nil, err
	}
	all := &sources{roots: map[[2]string][]*source{}}
	named := map[uint32]*source{}
	for _, r := range rows {
		oid := parseOID(r[0].Text)
		if r[3].Text == "v" {
			all.rules = append(all.rules, viewRule{name: r[2].Text, action: r[4].Text})
			continue
		}
		found := &source{oid: oid, name: rewrite.QuoteIdentifier(r[1].Text) + "." + rewrite.QuoteIdentifier(r[2].Text)}
		if err := json.Unmarshal([]byte(r[5].Text), &found.reads); err != nil {
			return nil, err
		}
		named[oid] = found
	}
	if err := all.addMembers(ctx, s, named); err != nil {
		return nil, err
	}
	return all, all.addColumns(ctx, s, view)
}

// addMembers finds the topmost relations and what lies below them. A table
// below two of them is a part of both.
func (all *sources) addMembers(ctx context.Context, session pgsession.Session, named map[uint32]*source) error {
	oids := make([]uint32, 0, len(named))
	for oid := range named {
		oids = append(oids, oid)
	}
	slices.Sort(oids)
	rows, err := session.Query(ctx, proofMembersSQL, oidArray(oids))
	if err != nil {
		return err
	}
	below := map[uint32]bool{}
	for _, r := range rows {
		root, member := parseOID(r[0].Text), parseOID(r[1].Text)
		if root != member {
			below[member] = true
			named[root].inherited = true
		}
	}
	for _, r := range rows {
		root, member := parseOID(r[0].Text), parseOID(r[1].Text)
		if below[root] {
			continue
		}
		name := [2]string{r[2].Text, r[3].Text}
		all.roots[name] = append(all.roots[name], named[root])
		named[root].runsFunctions = named[root].runsFunctions || r[4].Text == "t"
		if part := named[member]; part != nil {
			named[root].members = append(named[root].members, member)
			named[root].reads = append(named[root].reads, part.reads...)
			// The names that EXPLAIN shows for parts of a part are not checked.
			named[root].unreadable = named[root].unreadable || part != named[root] && part.inherited
		}
	}
	for _, oid := range oids {
		if !below[oid] {
			all.list = append(all.list, named[oid])
		}
	}
	return nil
}

func (all *sources) addColumns(ctx context.Context, session pgsession.Session, view string) error {
	rows, err := session.Query(ctx, "select $1::pg_catalog.regclass::pg_catalog.oid", view)
	if err != nil {
		return err
	}
	viewOID := parseOID(rows[0][0].Text)
	oids := []uint32{viewOID}
	for _, source := range all.list {
		oids = append(oids, source.oid)
	}
	if rows, err = session.Query(ctx, proofColumnsSQL, oidArray(oids)); err != nil {
		return err
	}
	for _, r := range rows {
		number, err := strconv.Atoi(r[1].Text)
		if err != nil {
			return err
		}
		c := &sourceColumn{
			source: parseOID(r[0].Text), number: number, name: r[2].Text, typ: parseOID(r[3].Text), typeName: r[4].Text,
			isEnum: r[5].Text == "t", collation: r[6].Text, deterministic: r[7].Text == "t", generated: r[8].Text == "t",
			unique: r[9].Text == "t",
		}
		if c.source == viewOID {
			all.view = append(all.view, c)
			continue
		}
		source := all.byOID(c.source)
		source.columns = append(source.columns, c)
	}
	for _, source := range all.list {
		source.completeReads()
	}
	return nil
}

// completeReads gives up on a list of columns that misses some: those that a
// generated column is made of, and those that only a partition has.
func (s *source) completeReads() {
	slices.Sort(s.reads)
	s.reads = slices.Compact(s.reads)
	for _, name := range s.reads {
		if c := s.column(name); c == nil || c.generated {
			s.reads = nil
			return
		}
	}
	if s.reads == nil {
		s.reads = []string{} // no column at all: count(*)
	}
}

// parseOID reads an OID that Postgres has sent.
func parseOID(text string) uint32 {
	oid, _ := strconv.ParseUint(text, 10, 32) // Postgres sends nothing else
	return uint32(oid)
}

// oidArray is an array literal.
func oidArray(oids []uint32) string {
	texts := make([]string, len(oids))
	for i, oid := range oids {
		texts[i] = strconv.FormatUint(uint64(oid), 10)
	}
	return "{" + strings.Join(texts, ",") + "}"
}
