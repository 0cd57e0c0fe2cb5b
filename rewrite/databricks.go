package rewrite

var databricksTypeNames = map[string]string{}
var databricksCalls = map[string]func(*tokenText, call) error{}

func (t *tokenText) databricksString(r tokenRange) (string, error) { return "", nil }
