package rewrite

import (
	"strings"

	cockroach "github.com/auxten/postgresql-parser/pkg/sql/parser"
	"github.com/auxten/postgresql-parser/pkg/sql/sem/tree"
	"github.com/auxten/postgresql-parser/pkg/sql/types"
)

// The parser is handed no more than it can read in little time and stack.
const (
	maxExpressionLength = 64 << 10 // bytes
	maxExpressionDepth  = 200      // nested brackets
)

// readExpression parses an expression of PostgreSQL; false if the parser does
// not read it. The parser's grammar is CockroachDB's: it misreads operators
// and types that do not matter for the names in an expression, so a tree tells
// which columns and functions there are, and nothing else.
func readExpression(text string) (expression tree.Expr, ok bool) {
	if len(text) > maxExpressionLength || depth(text) > maxExpressionDepth || !isASCII(text) {
		return nil, false
	}
	defer func() {
		if recover() != nil {
			expression, ok = nil, false
		}
	}()
	var p cockroach.Parser
	statements, err := p.ParseWithInt("SELECT "+text, types.Int4)
	if err != nil || len(statements) != 1 {
		return nil, false
	}
	query, isSelect := statements[0].AST.(*tree.Select)
	if !isSelect {
		return nil, false
	}
	clause, isClause := query.Select.(*tree.SelectClause)
	if !isClause || len(clause.Exprs) != 1 || clause.Exprs[0].As != "" ||
		clause.Distinct || len(clause.From.Tables) > 0 || clause.Where != nil || query.OrderBy != nil || query.Limit != nil {
		return nil, false
	}
	return clause.Exprs[0].Expr, true
}

// isASCII: the parser folds and normalises other letters, Postgres does not.
func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
}

// depth is an upper bound for how deep the brackets of text are nested.
func depth(text string) int {
	open, deepest := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[':
			open++
			deepest = max(deepest, open)
		case ')', ']':
			open = max(open-1, 0)
		}
	}
	return deepest
}

// refersOutside says whether the expression certainly has a column reference
// that is not in the arguments of an aggregate.
func refersOutside(text string, isAggregate func(name string) bool) bool {
	expression, ok := readExpression(text)
	if !ok {
		return false
	}
	v := columnVisitor{isAggregate: isAggregate}
	return v.visit(expression) && len(v.columns) > 0
}

// columnVisitor collects the column names of an expression.
type columnVisitor struct {
	isAggregate func(name string) bool // nil: look into every call
	columns     []string
	qualified   bool // some column has a qualifier
	subquery    bool
}

// visit returns false if the tree could not be walked.
func (v *columnVisitor) visit(e tree.Expr) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	tree.WalkExprConst(v, e)
	return true
}

// VisitPre implements tree.Visitor.
func (v *columnVisitor) VisitPre(e tree.Expr) (recurse bool, same tree.Expr) {
	switch e := e.(type) {
	case *tree.UnresolvedName:
		v.qualified = v.qualified || e.NumParts > 1
		v.columns = append(v.columns, e.Parts[0])
	case *tree.Subquery:
		v.subquery = true
		return false, e
	case *tree.FuncExpr:
		if name, isName := e.Func.FunctionReference.(*tree.UnresolvedName); isName && v.isAggregate != nil {
			return !v.isAggregate(joinedName(name)), e
		}
	}
	return true, e
}

// VisitPost implements tree.Visitor.
func (*columnVisitor) VisitPost(e tree.Expr) tree.Expr { return e }

// joinedName returns the parts of a name with dots between them.
func joinedName(n *tree.UnresolvedName) string {
	var parts []string
	for i := n.NumParts - 1; i >= 0; i-- {
		parts = append(parts, n.Parts[i])
	}
	return strings.Join(parts, ".")
}
