package rewrite

// Insert is an INSERT that PostgreSQL does not have: INSERT OVERWRITE, one
// with a REPLACE clause, or a plain one with BY NAME, PARTITION or TABLE. What
// it replaces goes and what its query returns comes in one step.
type Insert struct {
	Text      string
	With      *Span // the WITH clause in front
	Target    Name
	Alias     *ColumnName // of the target
	Columns   []ColumnName
	ByName    bool
	Partition []PartitionColumn
	Replaces  Replaced
	Condition Span         // of REPLACE WHERE and REPLACE ON
	Using     []ColumnName // of REPLACE USING
	Query     Span
	// Values is the number of columns of a VALUES query, 0 for another one.
	Values int
	// HasDefault says that the query holds the word DEFAULT, which only VALUES
	// gives a meaning.
	HasDefault  bool
	SourceAlias *ColumnName // of the query, for REPLACE ON

	lexical Lexical
}

// Replaced is which rows of its target an Insert deletes.
type Replaced uint8

// What an Insert deletes before it inserts.
const (
	ReplacesNothing   Replaced = iota
	ReplacesWhere              // rows for which the condition is true
	ReplacesUsing              // rows that equal a source row in some columns
	ReplacesOn                 // rows for which a source row makes the condition true
	ReplacesPartition          // INSERT OVERWRITE: everything, or a partition
)

// ColumnName is a name in a statement, folded or unquoted.
type ColumnName struct {
	Name   string
	Offset int // in bytes from the start of the statement
}

// PartitionColumn is one column of a PARTITION clause.
type PartitionColumn struct {
	ColumnName
	Value *Span // nil when the query gives it
}

// Parameter returns the offset of the first parameter ($1) in bytes, -1 if
// there is none.
func (s *Insert) Parameter() int { return FirstParameter(s.Text, s.lexical) }

// Tag implements Statement. The row count is known when it has run.
func (*Insert) Tag() string { return "INSERT" }
