package rewrite

// Dialect is whose meaning a text has that PostgreSQL and Databricks both
// accept and read differently.
type Dialect uint8

const (
	// Postgres is the default: what psql prints for a SELECT is what a flow
	// writes. Databricks' spellings are accepted where PostgreSQL has none.
	Postgres Dialect = iota
	// Databricks gives a text the meaning that it has there, in the ANSI mode
	// that Databricks SQL is in; what cannot be translated exactly is refused.
	Databricks
)

// ParseDialect returns the dialect of a name as rwproxy.dialect takes it; false
// if there is none.
func ParseDialect(name string) (Dialect, bool) {
	switch foldASCII(name) {
	case "", "postgres":
		return Postgres, true
	case "databricks":
		return Databricks, true
	}
	return Postgres, false
}

// String returns the name of d.
func (d Dialect) String() string {
	if d == Databricks {
		return "databricks"
	}
	return "postgres"
}
