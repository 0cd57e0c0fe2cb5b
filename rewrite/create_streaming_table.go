package rewrite

import "strings"

const createStreamingTableForm = "CREATE [OR REFRESH] STREAMING TABLE name [(columns)] [clauses] " +
	"FLOW REPLACE WHERE predicate BY NAME query"

// createStreamingTable reads CREATE [OR REFRESH] STREAMING TABLE [IF NOT
// EXISTS] name [(columns)] [clauses] [flow].
func (p *parser) createStreamingTable() (Statement, error) {
	p.form = createStreamingTableForm
	s := &CreateStreamingTable{Text: p.statementText()}
	p.i++ // CREATE
	s.OrRefresh = p.accept("OR", "REFRESH")
	p.i++ // STREAMING
	if p.wordsAt(p.i, "LIVE", "TABLE") {
		return nil, p.unsupported(p.i, "STREAMING LIVE TABLE", "Leave LIVE out.")
	}
	if err := p.expect("TABLE"); err != nil {
		return nil, err
	}
	if p.wordsAt(p.i, "IF") {
		if s.OrRefresh {
			return nil, p.syntaxError(p.i, `syntax error at or near "`+p.text(p.i)+`": OR REFRESH and IF NOT EXISTS exclude each other`)
		}
		if err := p.expect("IF", "NOT", "EXISTS"); err != nil {
			return nil, err
		}
		s.IfNotExists = true
	}
	var err error
	if s.Target, err = p.tableName(); err != nil {
		return nil, err
	}
	if err := p.tableSpecification(s); err != nil {
		return nil, err
	}
	if err := p.tableClauses(s); err != nil {
		return nil, err
	}
	return s, nil
}

// tableClauses reads the clauses of a table up to its flow or the end.
func (p *parser) tableClauses(s *CreateStreamingTable) error {
	seen := map[string]bool{}
	for !p.atEnd() && s.Flow == nil {
		clause := p.tableClause()
		if clause == nil {
			return p.unknownClause()
		}
		if seen[clause.key()] {
			return p.syntaxError(p.i, "syntax error at or near \""+p.text(p.i)+"\": "+clause.twice())
		}
		seen[clause.key()] = true
		if err := clause.read(p, s); err != nil {
			return err
		}
	}
	return nil
}

// tableClause is one clause of CREATE STREAMING TABLE.
type tableClause struct {
	words string // it begins with
	// group is what the clause has in common with those it excludes.
	group string
	read  func(p *parser, s *CreateStreamingTable) error
}

func (c *tableClause) key() string {
	if c.group != "" {
		return c.group
	}
	return c.words
}

func (c *tableClause) twice() string {
	if c.group != "" {
		return "only one clause may give the " + c.group
	}
	return "the clause is given twice"
}

var tableClauses = []tableClause{
	{words: "PARTITIONED BY", group: "partitioning or clustering", read: readPartitionedBy},
	{words: "CLUSTER BY", group: "partitioning or clustering", read: readClusterBy},
	{words: "COMMENT", read: readComment},
	{words: "DEFAULT COLLATION", read: readDefaultCollation},
	{words: "TBLPROPERTIES", read: readProperties},
	{words: "SCHEDULE", group: "schedule", read: readSchedule},
	{words: "TRIGGER", group: "schedule", read: readSchedule},
	{words: "FLOW", read: readFlow},
	{words: "WITH ROW FILTER", read: refuseClause("a row filter", "Use row-level security on the tables the query reads.")},
	{words: "ROW FILTER", read: refuseClause("a row filter", "Use row-level security on the tables the query reads.")},
	{words: "USING", read: refuseClause("USING", "Leave the clause out: the table is an ordinary PostgreSQL table.")},
	{words: "LOCATION", read: refuseClause("LOCATION", "Leave the clause out: PostgreSQL stores the table.")},
	{words: "OPTIONS", read: refuseClause("OPTIONS", "Leave the clause out.")},
	{words: "AS", read: refuseClause("a streaming query (AS query)", batchFlowHint)},
}

const batchFlowHint = "Use FLOW REPLACE WHERE predicate BY NAME query."

// tableClause returns the clause that is next, nil if none is.
func (p *parser) tableClause() *tableClause {
	for i := range tableClauses {
		if p.wordsAt(p.i, strings.Fields(tableClauses[i].words)...) {
			return &tableClauses[i]
		}
	}
	return nil
}

// unknownClause returns the error for what is no table clause, with the
// clause it may have been meant to be.
func (p *parser) unknownClause() error {
	err := p.expected(p.i, "a table clause or FLOW")
	switch {
	case p.wordsAt(p.i, "REPLACE"):
		err = p.expected(p.i, "FLOW before REPLACE")
	case p.wordsAt(p.i, "PARTITION"):
		err = p.expected(p.i, "PARTITIONED BY")
	case p.kindAt(p.i, Word):
		if meant := nearestClause(p.text(p.i)); meant != "" {
			err.Hint = "Perhaps you meant " + meant + "."
		}
	}
	return err
}

func nearestClause(word string) string {
	for _, clause := range tableClauses {
		first, _, _ := strings.Cut(clause.words, " ")
		if len(first) > 3 && editDistance(strings.ToUpper(excerpt(word)), first) <= 1+len(first)/4 {
			return first
		}
	}
	return ""
}

// editDistance is the number of letters to insert, delete or change to get
// from a to b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func refuseClause(what, hint string) func(*parser, *CreateStreamingTable) error {
	return func(p *parser, _ *CreateStreamingTable) error { return p.unsupported(p.i, what, hint) }
}

func readPartitionedBy(p *parser, s *CreateStreamingTable) (err error) {
	p.i += 2
	s.PartitionBy, err = p.plainColumns()
	return err
}

func readClusterBy(p *parser, s *CreateStreamingTable) error {
	start := p.i
	p.i += 2
	if !p.accept("AUTO") && !p.accept("NONE") {
		if !p.symbolAt(p.i, "(") {
			return p.expected(p.i, `"(", AUTO or NONE`)
		}
		if _, err := p.columnNames(); err != nil {
			return err
		}
	}
	span := p.span(start, p.i)
	s.ClusterBy = &span
	return nil
}

func readComment(p *parser, s *CreateStreamingTable) error {
	p.i++
	comment, err := p.stringValue("the comment as a string")
	s.Comment = &comment
	return err
}

func readDefaultCollation(p *parser, _ *CreateStreamingTable) error {
	p.i += 2
	if !p.wordsAt(p.i, "UTF8_BINARY") {
		return p.unsupported(p.i, "a default collation other than UTF8_BINARY", "Give a COLLATE clause to the columns.")
	}
	p.i++
	return nil
}

// readFlow reads the flow, the end of the statement.
func readFlow(p *parser, s *CreateStreamingTable) (err error) {
	p.i++
	switch {
	case p.wordsAt(p.i, "INSERT"):
		return p.unsupported(p.i, "FLOW INSERT, a streaming query,", batchFlowHint)
	case p.wordsAt(p.i, "AUTO"), p.wordsAt(p.i, "APPLY"):
		return p.unsupported(p.i, "FLOW AUTO CDC", batchFlowHint)
	case p.wordsAt(p.i, "REPLACE", "USING"):
		return p.unsupported(p.i, "FLOW REPLACE USING", batchFlowHint)
	case p.wordsAt(p.i, "BY", "NAME"):
		return p.syntaxError(p.i, `syntax error at or near "`+p.text(p.i)+`": in CREATE STREAMING TABLE, BY NAME stands between the predicate and the query`)
	}
	if err := p.expect("REPLACE", "WHERE"); err != nil {
		return err
	}
	s.Flow, err = p.replaceWhere()
	return err
}
