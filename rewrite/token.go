package rewrite

// Kind is the class of a token.
type Kind uint8

// The token classes. White space and comments are not tokens.
const (
	Word             Kind = iota // bare identifier or keyword
	QuotedIdentifier             // "x" or U&"x"
	Backtick                     // `x`, Databricks' quoted identifier
	String                       // '…', E'…', U&'…', N'…', B'…', X'…'
	DollarString                 // $tag$…$tag$
	Number
	Parameter // $1
	Operator  // a maximal run of operator characters, by PostgreSQL's rules
	Punctuation
)

// Token is one token: sql[Start:End].
type Token struct {
	Kind       Kind
	Start, End int // byte offsets
}
