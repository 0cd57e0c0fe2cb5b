package pgsession

import (
	"fmt"
	"strconv"
	"strings"
)

// EncodeArgument returns an argument of [Session] as the text that is sent;
// null reports that it is NULL instead.
func EncodeArgument(argument any) (text []byte, null bool, err error) {
	switch a := argument.(type) {
	case nil:
		return nil, true, nil
	case string:
		return []byte(a), false, nil
	case bool:
		return strconv.AppendBool(nil, a), false, nil
	case int:
		return strconv.AppendInt(nil, int64(a), 10), false, nil
	case int32:
		return strconv.AppendInt(nil, int64(a), 10), false, nil
	case int64:
		return strconv.AppendInt(nil, a, 10), false, nil
	case uint32:
		return strconv.AppendUint(nil, uint64(a), 10), false, nil
	case []string:
		return encodeArray(a), false, nil
	}
	return nil, false, fmt.Errorf("argument of type %T", argument)
}

// encodeArray writes an array as a PostgreSQL array literal, every element
// quoted ("Array Input and Output Syntax" in the manual).
func encodeArray(elements []string) []byte {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	literal := []byte{'{'}
	for i, e := range elements {
		if i > 0 {
			literal = append(literal, ',')
		}
		literal = append(literal, '"')
		literal = append(literal, escape.Replace(e)...)
		literal = append(literal, '"')
	}
	return append(literal, '}')
}
