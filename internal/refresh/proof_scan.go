package refresh

import (
	"slices"
	"strconv"
	"strings"
)

// planProof is what one plan proves. The plan computes the view's rows for one
// value of a key, or for no value (NULL).
//
// A scan whose condition is e = value, or e IS NULL, returns only rows of that
// value; the plan's result cannot depend on others. A scan is bound to another
// by a hop when its rows matter only if they match some row of the other, see
// bindings.
type planProof struct {
	root    *planNode
	sources *sources
	facts   *queryFacts
	// direct returns the term e of a condition that says e = value or e IS NULL,
	// nil of another.
	direct func(*term) *term
	// accepts reports whether e can be compared with the key.
	accepts func(*expression) bool
	groups  []*scanGroup
	byName  map[string]*scanGroup // nil where a name means several
}

// scanGroup is one table in FROM as the plan reads it: one scan, or those of
// all its partitions under an Append.
type scanGroup struct {
	source *source // nil when the table is a part of several, or unknown
	name   string  // under which EXPLAIN shows its columns above top
	top    *planNode
	scans  []*planNode
}

// path is how a source's changed rows lead to keys: over links to other
// sources, then by an expression on the last one's columns.
type path struct {
	links []link
	end   *expression
}

// link says that rows of one source matter only if they match rows of another:
// from = to.
type link struct {
	from, to *expression
	next     *source
}

// maxLinks bounds the length of a path.
const maxLinks = 3

func newPlanProof(root *planNode, all *sources, facts *queryFacts) *planProof {
	p := &planProof{root: root, sources: all, facts: facts, byName: map[string]*scanGroup{}}
	grouped := map[*planNode]bool{}
	root.walk(func(n *planNode) {
		if g := p.partitionGroup(n); g != nil {
			p.groups = append(p.groups, g)
			for _, scan := range g.scans {
				grouped[scan] = true
			}
		}
	})
	root.walk(func(n *planNode) {
		if tableScans[n.kind] && !grouped[n] {
			p.groups = append(p.groups, &scanGroup{source: p.sourceOf(n), name: n.alias, top: n, scans: []*planNode{n}})
		}
	})
	for _, g := range p.groups {
		if _, taken := p.byName[g.name]; taken {
			p.byName[g.name] = nil
			continue
		}
		p.byName[g.name] = g
	}
	return p
}

// sourceOf returns the source that a scan reads, nil if there is no one source.
func (p *planProof) sourceOf(scan *planNode) *source {
	if found := p.sources.roots[[2]string{scan.schema, scan.relation}]; len(found) == 1 {
		return found[0]
	}
	return nil
}

// partitionGroup returns the scans below an Append as one, nil if they are not
// all the partitions or children of one source, each read once and alike.
//
// Above an Append, EXPLAIN shows the columns of a partitioned table under the
// table's own name, which no scan has: theirs is that name, "_" and a number.
func (p *planProof) partitionGroup(n *planNode) *scanGroup {
	if n.kind != "Append" && n.kind != "Merge Append" || len(n.children) == 0 {
		return nil
	}
	g := &scanGroup{top: n}
	columns := ""
	read := map[string]bool{}
	for _, child := range n.children {
		scan := child
		for (scan.kind == "Sort" || scan.kind == "Incremental Sort") && len(scan.children) == 1 {
			scan = scan.children[0]
		}
		base, isNumbered := withoutNumber(scan.alias)
		found := p.sourceOf(scan)
		shown, isPlain := plainColumns(scan)
		switch {
		case child.relationship != "Member" || !tableScans[scan.kind] || !isNumbered || found == nil || !isPlain:
			return nil
		case read[scan.schema+"\x00"+scan.relation]:
			return nil
		case g.scans != nil && (base != g.name || found != g.source || shown != columns):
			return nil
		}
		read[scan.schema+"\x00"+scan.relation] = true
		g.name, g.source, columns = base, found, shown
		g.scans = append(g.scans, scan)
	}
	if p.facts.aliases[g.name] || strings.HasPrefix(g.name, "*") {
		return nil // the Append can be a UNION ALL that is called so
	}
	return g
}

// withoutNumber cuts "_" and a number off a name; false if it ends in none.
func withoutNumber(name string) (string, bool) {
	at := strings.LastIndexByte(name, '_')
	if at <= 0 || at == len(name)-1 || strings.Trim(name[at+1:], "0123456789") != "" {
		return name, false
	}
	return name[:at], true
}

// plainColumns returns what a scan returns, without the scan's name; false if
// it returns more than its columns as they are.
func plainColumns(scan *planNode) (string, bool) {
	var names []string
	for _, shown := range scan.output {
		terms := conjuncts(shown)
		if len(terms) != 1 || terms[0].kind != termColumn || terms[0].alias != scan.alias {
			return "", false
		}
		names = append(names, terms[0].name)
	}
	return strings.Join(names, "\x00"), true
}

// scanConditions returns what is known to hold of every row a scan returns.
func scanConditions(scan *planNode) []*term {
	var terms []*term
	for _, field := range []string{fieldIndexCond, fieldRecheckCond, fieldTidCond, fieldFilter} {
		if condition := scan.conditions[field]; condition != "" {
			terms = append(terms, conjuncts(condition)...)
		}
	}
	return terms
}

// resolver looks columns up in a group of scans, under one of its names.
func (p *planProof) resolver(g *scanGroup, name string) resolver {
	return resolver{
		column: func(alias, column string) *sourceColumn {
			if alias != name || g.source == nil || g.source.unreadable {
				return nil
			}
			return g.source.column(column)
		},
		castHidden: func(typ uint32) bool { return p.facts.anyCast || p.facts.implicit[typ] },
	}
}

// scansOf returns the groups that read a source or a part of it, and whether
// the plan reads it in no other way.
func (p *planProof) scansOf(s *source) ([]*scanGroup, bool) {
	var groups []*scanGroup
	for _, g := range p.groups {
		for _, scan := range g.scans {
			roots := p.sources.roots[[2]string{scan.schema, scan.relation}]
			switch {
			case len(roots) == 0:
				return nil, false // a table that the view does not depend on
			case !slices.Contains(roots, s):
			case g.source != s:
				return nil, false
			case !slices.Contains(groups, g):
				groups = append(groups, g)
			}
		}
	}
	return groups, true
}

// paths returns the paths that lead from a source's rows to the keys they can
// matter to; false if some rows may matter to others.
func (p *planProof) paths(s *source, prefer []path) ([]path, bool) {
	groups, all := p.scansOf(s)
	if !all {
		return nil, false
	}
	var found []path
	for _, g := range groups {
		for _, scan := range g.scans {
			paths, proved := p.scanPaths(g, scan, prefer, nil)
			if !proved {
				return nil, false
			}
			for _, candidate := range paths {
				if !slices.ContainsFunc(found, candidate.equal) {
					found = append(found, candidate)
				}
			}
		}
	}
	return found, true
}

// nullPaths are the paths to rows whose key is NULL. A path over an equality
// with the very expression that is NULL leads to none.
func (p *planProof) nullPaths(s *source, prefer []path) ([]path, bool) {
	found, proved := p.paths(s, prefer)
	return slices.DeleteFunc(found, func(candidate path) bool {
		last := len(candidate.links) - 1
		return last >= 0 && candidate.links[last].to.sql(columnText) == candidate.end.sql(columnText)
	}), proved
}

// scanPaths returns the paths of the rows that one scan reads. on are the
// groups that the path has come through.
func (p *planProof) scanPaths(g *scanGroup, scan *planNode, prefer []path, on []*scanGroup) ([]path, bool) {
	if direct := p.directPaths(g, scan); len(direct) > 0 {
		for _, candidate := range direct {
			if slices.ContainsFunc(prefer, candidate.equal) {
				return []path{candidate}, true
			}
		}
		return direct[:1], true
	}
	if len(on) == maxLinks {
		return nil, false
	}
	on = append(on[:len(on):len(on)], g)
	for _, b := range p.bindings(g, scan) {
		if slices.Contains(on, b.to) || b.to.source == nil {
			continue
		}
		if found, proved := p.boundPaths(b, prefer, on); proved {
			return found, true
		}
	}
	return nil, false
}

// directPaths returns one path for each e of a scan's conditions.
func (p *planProof) directPaths(g *scanGroup, scan *planNode) []path {
	var direct []path
	for _, t := range scanConditions(scan) {
		if of := p.direct(t); of != nil {
			if e := p.resolver(g, scan.alias).resolve(of); e != nil && len(e.columns()) > 0 && p.accepts(e) {
				direct = append(direct, path{end: e})
			}
		}
	}
	return direct
}

// boundPaths continues a binding at every scan of the group it leads to.
func (p *planProof) boundPaths(b binding, prefer []path, on []*scanGroup) ([]path, bool) {
	var found []path
	for _, scan := range b.to.scans {
		var rest []path
		for _, candidate := range prefer {
			if len(candidate.links) > 0 {
				rest = append(rest, path{links: candidate.links[1:], end: candidate.end})
			}
		}
		paths, proved := p.scanPaths(b.to, scan, rest, on)
		if !proved {
			return nil, false
		}
		for _, onward := range paths {
			links := append([]link{{from: b.fromExpression, to: b.toExpression, next: b.to.source}}, onward.links...)
			candidate := path{links: links, end: onward.end}
			if !slices.ContainsFunc(found, candidate.equal) {
				found = append(found, candidate)
			}
		}
	}
	return found, true
}

func (a path) equal(b path) bool { return a.text() == b.text() }

// text names the path, for comparing.
func (a path) text() string {
	var b strings.Builder
	for _, l := range a.links {
		b.WriteString(l.from.sql(columnText) + " = " + l.to.sql(columnText) + " > ")
	}
	b.WriteString(a.end.sql(columnText))
	return b.String()
}

// sources are those that the path leads through, the first one left out.
func (a path) sources() []*source {
	var through []*source
	for _, l := range a.links {
		through = append(through, l.next)
	}
	return through
}

// columnText names a column, for comparing.
func columnText(c *sourceColumn) string {
	return strconv.FormatUint(uint64(c.source), 10) + "." + strconv.Itoa(c.number)
}
