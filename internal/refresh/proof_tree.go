package refresh

import "strings"

// treeNode is one node of a pg_node_tree: the form in which Postgres stores a
// view's query. Only what a proof looks at is kept apart.
type treeNode struct {
	kind   string // "RANGETBLENTRY"
	fields map[string]treeValue
}

// treeValue is what a field of a node holds: an atom, a list, or a node.
type treeValue struct {
	atom string
	list []treeValue
	node *treeNode
}

// parseTree reads a pg_node_tree.
func parseTree(text string) treeValue {
	p := treeParser{text: text}
	return p.value()
}

type treeParser struct {
	text string
	pos  int
}

// token returns the next token, as pg_strtok of PostgreSQL's read.c cuts them:
// brackets and braces, and runs of anything else but blanks; a backslash takes
// the next byte as it is. It is kept in the token. "" is the end.
func (p *treeParser) token() string {
	for p.pos < len(p.text) && strings.IndexByte(" \n\t", p.text[p.pos]) >= 0 {
		p.pos++
	}
	start := p.pos
	if start == len(p.text) {
		return ""
	}
	if strings.IndexByte("(){}", p.text[start]) >= 0 {
		p.pos++
		return p.text[start:p.pos]
	}
	for p.pos < len(p.text) && strings.IndexByte(" \n\t(){}", p.text[p.pos]) < 0 {
		if p.text[p.pos] == '\\' {
			p.pos++
		}
		p.pos++
	}
	p.pos = min(p.pos, len(p.text))
	return p.text[start:p.pos]
}

func (p *treeParser) value() treeValue { return p.valueAt(p.token()) }

func (p *treeParser) valueAt(token string) treeValue {
	switch token {
	case "(":
		var list []treeValue
		for t := p.token(); t != ")" && t != ""; t = p.token() {
			list = append(list, p.valueAt(t))
		}
		return treeValue{list: list}
	case "{":
		n := &treeNode{kind: p.token(), fields: map[string]treeValue{}}
		for t := p.token(); t != "}" && t != ""; t = p.token() {
			// A name has a value, which can begin with a colon too. The bytes of a
			// constant follow its length without a name.
			if strings.HasPrefix(t, ":") {
				n.fields[t[1:]] = p.value()
			}
		}
		return treeValue{node: n}
	}
	return treeValue{atom: unescapeTree(token)}
}

func unescapeTree(token string) string {
	if !strings.Contains(token, `\`) {
		return token
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if token[i] == '\\' && i+1 < len(token) {
			i++
		}
		b.WriteByte(token[i])
	}
	return b.String()
}

// walk calls visit for every node.
func (v treeValue) walk(visit func(*treeNode)) {
	if v.node != nil {
		visit(v.node)
		for _, field := range v.node.fields {
			field.walk(visit)
		}
	}
	for _, element := range v.list {
		element.walk(visit)
	}
}

// isNull reports whether a field holds no node and no list.
func (v treeValue) isNull() bool {
	return v.node == nil && v.list == nil && (v.atom == "<>" || v.atom == "")
}

// strings returns the elements of a list of strings.
func (v treeValue) strings() []string {
	texts := make([]string, len(v.list))
	for i, element := range v.list {
		texts[i] = strings.TrimSuffix(strings.TrimPrefix(element.atom, `"`), `"`)
	}
	return texts
}

// atom returns a field's text, "" if it holds none.
func (n *treeNode) atom(field string) string { return n.fields[field].atom }

func (n *treeNode) has(field string) bool {
	_, has := n.fields[field]
	return has
}
