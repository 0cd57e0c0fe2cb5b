package refresh

import (
	"context"
	_ "embed" // SQL files
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

//go:embed selectable.sql
var selectableSQL string

// selectedFlow is a flow that an update may refresh.
type selectedFlow struct {
	flow, schema, table string
	sources             []string // the tables it reads, with their schemas
	permitted           bool

	chosen   bool
	full     bool
	mayKeep  bool    // full only if its table allows it
	override *string // its predicate
	after    []int   // the places of those it reads
	target   *flowstate.Target
}

// quotedPart is a part of a name in the quotes of PostgreSQL or of Databricks.
var quotedPart = regexp.MustCompile(`"(?:[^"]|"")+"|` + "`(?:[^`]|``)+`")

// withoutQuotes is a name with its quoted parts as they are.
func withoutQuotes(name string) string {
	return quotedPart.ReplaceAllStringFunc(name, func(part string) string {
		quote := part[:1]
		return strings.ReplaceAll(part[1:len(part)-1], quote+quote, quote)
	})
}

// isCalled reports whether a client may call the flow by a name.
func (s *selectedFlow) isCalled(name, database string, same func(a, b string) bool) bool {
	for _, own := range []string{s.flow, s.table} {
		for _, spelling := range []string{own, s.schema + "." + own, database + "." + s.schema + "." + own} {
			if same(spelling, name) || same(spelling, withoutQuotes(name)) {
				return true
			}
		}
	}
	return false
}

// selectFlows returns the flows of an update, each behind those it reads.
func selectFlows(ctx context.Context, c Client, u Update) ([]*selectedFlow, error) {
	flows, err := selectableFlows(ctx, c)
	if err != nil {
		return nil, err
	}
	if u.FullRefresh && len(u.RefreshSelection)+len(u.FullRefreshSelection) > 0 {
		return nil, pgdiag.New("22023", "full_refresh is of all tables and excludes a selection").
			WithHint("Name the tables in full_refresh_selection.")
	}
	for _, name := range u.RefreshSelection {
		s, err := findFlow(flows, c.Database(), name)
		if err != nil {
			return nil, err
		}
		s.chosen = true
	}
	for _, name := range u.FullRefreshSelection {
		s, err := findFlow(flows, c.Database(), name)
		if err != nil {
			return nil, err
		}
		s.chosen, s.full = true, true
	}
	if len(u.RefreshSelection)+len(u.FullRefreshSelection) == 0 {
		for _, s := range flows {
			s.chosen, s.full, s.mayKeep = s.permitted, u.FullRefresh, u.FullRefresh
		}
	}
	if err := addOverrides(flows, c.Database(), u.Overrides); err != nil {
		return nil, err
	}
	flows = slices.DeleteFunc(flows, func(s *selectedFlow) bool { return !s.chosen })
	if len(flows) == 0 {
		return nil, noFlows()
	}
	return inOrder(flows), nil
}

func noFlows() *pgdiag.Diagnostic {
	return pgdiag.New("42704", "there is no flow to refresh").
		WithHint("rwproxy.flows lists those that you may read; to refresh one takes INSERT and DELETE on its table.")
}

func selectableFlows(ctx context.Context, s pgsession.Session) ([]*selectedFlow, error) {
	rows, err := s.Query(ctx, selectableSQL)
	if err != nil {
		return nil, err
	}
	flows := make([]*selectedFlow, len(rows))
	for i, r := range rows {
		flows[i] = &selectedFlow{flow: r[0].Text, schema: r[1].Text, table: r[2].Text, permitted: r[4].Text == "t"}
		if err := json.Unmarshal([]byte(r[3].Text), &flows[i].sources); err != nil {
			return nil, fmt.Errorf("sources of a flow: %w", err)
		}
	}
	return flows, nil
}

// findFlow finds a flow by its name: as it is written, or else, as Databricks
// does, whatever the case of its letters.
func findFlow(flows []*selectedFlow, database, name string) (*selectedFlow, error) {
	equal := []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold}
	for _, same := range equal {
		var found []*selectedFlow
		for _, s := range flows {
			if s.isCalled(name, database, same) {
				found = append(found, s)
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], nil
		}
		return nil, pgdiag.New("42702", fmt.Sprintf("flow name %q is ambiguous", name)).
			WithDetail(fmt.Sprintf("It may be %s.%s or %s.%s.", found[0].schema, found[0].table, found[1].schema, found[1].table)).
			WithHint("Name the table with its schema.")
	}
	return nil, pgdiag.New("42P01", fmt.Sprintf("flow %q does not exist", name)).
		WithDetail("TABLE_OR_VIEW_NOT_FOUND").
		WithHint("rwproxy.flows lists the flows whose tables you may read.")
}

func addOverrides(flows []*selectedFlow, database string, overrides []Override) error {
	for _, o := range overrides {
		s, err := findFlow(flows, database, o.FlowName)
		switch {
		case err != nil:
			return err
		case !s.chosen:
			return pgdiag.New("22023", fmt.Sprintf("flow %q has a predicate, but is not part of the update", o.FlowName))
		case s.override != nil:
			return pgdiag.New("22023", fmt.Sprintf("flow %q has two predicates", o.FlowName))
		case s.full:
			return pgdiag.New("0A000", fmt.Sprintf("flow %q: a full refresh with a predicate is not supported", o.FlowName)).
				WithDetail("UNSUPPORTED_FEATURE").
				WithHint("A full refresh reloads the flow's own window and removes every other row; a predicate says which rows to replace.")
		}
		s.override = &o.Predicate
	}
	return nil
}

// inOrder puts each flow behind those it reads. Flows that read each other
// stay as they are.
func inOrder(flows []*selectedFlow) []*selectedFlow {
	of := make(map[string]*selectedFlow, len(flows))
	for _, s := range flows {
		of[s.schema+"."+s.table] = s
	}
	place := make(map[*selectedFlow]int, len(flows)) // -1 while those it reads are placed
	ordered := make([]*selectedFlow, 0, len(flows))
	var add func(s *selectedFlow)
	add = func(s *selectedFlow) {
		place[s] = -1
		for _, source := range s.sources {
			read := of[source]
			if read == nil {
				continue
			}
			if _, seen := place[read]; !seen {
				add(read)
			}
			if at := place[read]; at >= 0 {
				s.after = append(s.after, at)
			}
		}
		place[s] = len(ordered)
		ordered = append(ordered, s)
	}
	for _, s := range flows {
		if _, seen := place[s]; !seen {
			add(s)
		}
	}
	return ordered
}
