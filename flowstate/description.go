package flowstate

import (
	"context"
	_ "embed" // SQL files
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Description is what the readers of a streaming table are told of it. Reading
// it writes nothing.
type Description struct {
	OID    uint32
	Target rewrite.Name // with its schema
	Owner  string
	// OwnedByCaller reports whether the session's role has the rights of Owner.
	OwnedByCaller bool
	CreatedAt     string // as Postgres prints it, like every time here
	Comment       *string
	Properties    map[string]string
	PartitionBy   []string
	ClusterBy     string // the clause; "" when there is none
	Schedule      string // "" when there is none
	NextRun       string // "" when it is not known, as before a trigger fires
	Flow          *FlowDescription
	Settings      map[string]string

	LastRefreshed string // when the last completed refresh ended, "" before the first
	LastTechnique string
	LatestRefresh string // id of the one that was last asked for, "" before the first
	LatestState   string
}

// FlowDescription is the flow of a [Description].
type FlowDescription struct {
	Name      string
	Comment   *string
	Predicate string // as typed
	Query     string // as typed
}

//go:embed description.sql
var descriptionSQL string

// Describe returns what a name as the session resolves it stands for, nil if
// that is no streaming table. It returns 42501 if the session's role may not
// read the table.
func Describe(ctx context.Context, s pgsession.Session, name rewrite.Name) (*Description, error) {
	rows, err := s.Query(ctx, `
		select c.oid, c.relname
		  from pg_catalog.pg_class c
		 where c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid
		   and rwproxy.is_streaming_table(c.oid)`, name.SQL())
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	oid, err := strconv.ParseUint(rows[0][0].Text, 10, 32)
	if err != nil {
		return nil, err
	}
	relname := rows[0][1].Text
	if rows, err = s.Query(ctx, descriptionSQL, int64(oid)); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, pgdiag.New("42501", "permission denied for table "+relname)
	}
	r := rows[0]
	d := &Description{
		OID:           uint32(oid),
		Target:        rewrite.Name{Schema: r[0].Text, Table: r[1].Text},
		Owner:         r[2].Text,
		CreatedAt:     r[3].Text,
		Comment:       pointer(r[4]),
		ClusterBy:     r[7].Text,
		Schedule:      r[8].Text,
		LastRefreshed: r[14].Text,
		LastTechnique: r[15].Text,
		LatestRefresh: r[16].Text,
		LatestState:   r[17].Text,
		OwnedByCaller: r[18].Text == "t",
		NextRun:       r[19].Text,
	}
	for i, into := range map[int]any{5: &d.Properties, 6: &d.PartitionBy, 13: &d.Settings} {
		if err := json.Unmarshal([]byte(r[i].Text), into); err != nil {
			return nil, fmt.Errorf("stored definition of a streaming table: %w", err)
		}
	}
	if !r[9].Null {
		d.Flow = &FlowDescription{Name: r[9].Text, Comment: pointer(r[10]), Predicate: r[11].Text, Query: r[12].Text}
	}
	return d, nil
}
