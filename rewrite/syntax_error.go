package rewrite

// The SQLSTATEs of what the grammar refuses.
const (
	syntaxErrorCode         = "42601"
	featureNotSupportedCode = "0A000"
	invalidParameterCode    = "22023"
)
