package flowstate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Changes is what has happened since the last refresh of a flow's own window.
type Changes struct {
	HasCursor         bool            // there was such a refresh; the rest is about the time since
	ClusterChanged    bool            // the database was restored from a dump since, or upgraded
	Fingerprint       string          // of the definitions now
	CursorFingerprint string          // of the definitions then, "" without a cursor
	Proof             json.RawMessage // [StoredProof].Detail, nil unless it has this Fingerprint
	Sources           []SourceChanges // every table that the view reads, through views too
	TargetTracked     bool            // writes to the target are recorded
	TargetObstacle    string          // why not, as one clause
	TargetHint        string          // the way out, as a sentence; "" if the next refresh may find one
	TargetUnrecorded  bool            // they are not, although they could be
	// External is a relation as SQL, "" if it is empty: the columns of the
	// predicate, under their own names, of the target's rows that others than
	// refreshes wrote, old and new. The session may read it.
	External string
	// ExternalUnknown reports that others wrote rows whose values are not known.
	ExternalUnknown bool
}

// SourceChanges is what has happened to one table.
type SourceChanges struct {
	OID      uint32
	Name     string // with its schema, quoted where needed
	Tracked  bool   // every change since the last refresh is recorded
	Obstacle string // why not, as one clause
	Hint     string // the way out, as a sentence; "" if the next refresh may find one
	// Unrecorded reports that changes are not recorded, although they could be.
	Unrecorded bool
	Changed    bool
	Rows       int64 // how many rows of the log tell so
	// Route is the index of the first usable route of the proof, -1 if none is,
	// and Keys are the tuples that it leads to, at most [MaxKeys].
	Route int
	Keys  [][]pgsession.Value
}

// MaxKeys is how many tuples a route may lead to: the planner takes milliseconds
// for each thousand. A statement that changes more of them is logged by fewer of
// their columns.
const MaxKeys = 16_000

// SameDefinitions reports whether two fingerprints differ at most in the files
// of the tables, which TRUNCATE, VACUUM FULL and a rewriting ALTER TABLE
// replace.
func SameDefinitions(a, b string) bool {
	definitions, _, _ := strings.Cut(a, ".")
	others, _, _ := strings.Cut(b, ".")
	return definitions == others
}

// ReadChanges returns what has changed for the flow of a target. The session is
// in a transaction, whose settings are those of the flow, and has locked the
// flow's sources. id is the refresh that is to take the changes in: its cursor
// is set to the snapshot that they were read in. Without one, "", nothing is
// written. Errors as [Start].
func ReadChanges(ctx context.Context, s pgsession.Session, target uint32, id string) (*Changes, error) {
	row, err := newRequest("read_changes").
		number("target", int64(target)).
		optional("id", id).
		number("limit", MaxKeys).
		send(ctx, s, "changes")
	if err != nil {
		return nil, err
	}
	var read struct {
		HasCursor         bool            `json:"has_cursor"`
		ClusterChanged    bool            `json:"cluster_changed"`
		Fingerprint       string          `json:"fingerprint"`
		CursorFingerprint string          `json:"cursor_fingerprint"`
		Proof             json.RawMessage `json:"proof"`
		TargetObstacle    *string         `json:"target_obstacle"`
		TargetHint        string          `json:"target_hint"`
		TargetUnrecorded  bool            `json:"target_unrecorded"`
		External          string          `json:"external"`
		ExternalUnknown   bool            `json:"external_unknown"`
		Sources           []struct {
			OID        uint32   `json:"oid"`
			Name       string   `json:"name"`
			Obstacle   *string  `json:"obstacle"`
			Hint       string   `json:"hint"`
			Unrecorded bool     `json:"unrecorded"`
			Rows       int64    `json:"rows"`
			Route      int      `json:"route"`
			Keys       []string `json:"keys"` // as rows are printed
		} `json:"sources"`
	}
	if err := json.Unmarshal([]byte(row["changes"].Text), &read); err != nil {
		return nil, fmt.Errorf("changes of a flow: %w", err)
	}
	c := &Changes{
		HasCursor:         read.HasCursor,
		ClusterChanged:    read.ClusterChanged,
		Fingerprint:       read.Fingerprint,
		CursorFingerprint: read.CursorFingerprint,
		TargetTracked:     read.TargetObstacle == nil,
		TargetHint:        read.TargetHint,
		TargetUnrecorded:  read.TargetUnrecorded,
		External:          read.External,
		ExternalUnknown:   read.ExternalUnknown,
	}
	if read.TargetObstacle != nil {
		c.TargetObstacle = *read.TargetObstacle
	}
	if string(read.Proof) != "null" {
		c.Proof = read.Proof
	}
	for _, source := range read.Sources {
		changes := SourceChanges{
			OID:        source.OID,
			Name:       source.Name,
			Tracked:    source.Obstacle == nil,
			Hint:       source.Hint,
			Unrecorded: source.Unrecorded,
			Changed:    source.Rows > 0,
			Rows:       source.Rows,
			Route:      source.Route,
			Keys:       make([][]pgsession.Value, len(source.Keys)),
		}
		if source.Obstacle != nil {
			changes.Obstacle = *source.Obstacle
		}
		for i, tuple := range source.Keys {
			if changes.Keys[i], err = parseRow(tuple); err != nil {
				return nil, err
			}
		}
		c.Sources = append(c.Sources, changes)
	}
	return c, nil
}

// parseRow reads a row as Postgres prints it ("Composite Type Input and Output
// Syntax" in the manual).
func parseRow(text string) ([]pgsession.Value, error) {
	malformed := fmt.Errorf("malformed row %q", text)
	if !strings.HasPrefix(text, "(") {
		return nil, malformed
	}
	var values []pgsession.Value
	var field strings.Builder
	quoted, written := false, false
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case (c == '"' || c == '\\') && i+1 < len(text) && quoted && text[i+1] == c:
			field.WriteByte(c)
			i++
		case c == '"':
			quoted, written = !quoted, true
		case quoted || c != ',' && c != ')':
			field.WriteByte(c)
			written = true
		default:
			values = append(values, pgsession.Value{Text: field.String(), Null: !written})
			field.Reset()
			written = false
			if c == ')' && i == len(text)-1 {
				return values, nil
			}
		}
	}
	return nil, malformed
}
