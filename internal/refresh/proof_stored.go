package refresh

import "github.com/rwproxy/rwproxy/flowstate"

// source is the part of a proof about a source, nil if it has none.
func (p *proof) source(oid uint32) *sourceProof {
	for i := range p.Sources {
		if p.Sources[i].OID == oid {
			return &p.Sources[i]
		}
	}
	return nil
}

// stored is the proof as flowstate stores it.
func (p *proof) stored() []flowstate.ProvedSource {
	sources := make([]flowstate.ProvedSource, 0, len(p.Sources))
	for _, s := range p.Sources {
		stored := flowstate.ProvedSource{Relation: s.OID}
		for _, r := range s.Routes {
			route := flowstate.ProvedRoute{SQL: r.SQL, LogsOnly: r.LogsOnly}
			for _, n := range r.Needs {
				route.Needs = append(route.Needs, flowstate.LogColumns{Relation: n.Relation, Columns: n.Columns})
			}
			stored.Routes = append(stored.Routes, route)
		}
		sources = append(sources, stored)
	}
	return sources
}

// captured is what has to be logged of the sources for the proof to be of use.
func (p *proof) captured() []flowstate.CaptureSource {
	sources := make([]flowstate.CaptureSource, 0, len(p.Sources)+1)
	for _, s := range p.Sources {
		sources = append(sources, flowstate.CaptureSource{OID: s.OID, Columns: s.Columns, Reads: s.Reads})
	}
	return sources
}

// queryIssues are what makes a query's answer depend on more than rows.
func queryIssues(issues []issue) []flowstate.Issue {
	list := make([]flowstate.Issue, len(issues))
	for i, is := range issues {
		list[i] = flowstate.Issue{Type: reasonQueryVolatile, Function: is.Function}
	}
	return list
}
