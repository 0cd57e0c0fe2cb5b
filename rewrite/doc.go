// Package rewrite is everything rwproxy knows about SQL text: the lexer, the
// statement splitter, the grammar of rwproxy's own statements (one file a
// statement), the translation of Databricks spellings to PostgreSQL, and the
// generation of SQL.
//
// It is pure: no I/O, no clock, no goroutine. PostgreSQL stays the judge of
// validity: the package finds boundaries and token positions and edits text at
// them; it never prints a statement back from a syntax tree.
//
// It may import the standard library, the expression parser and
// internal/pgdiag.
package rewrite
