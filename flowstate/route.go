package flowstate

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// routeText is a route's query in pieces: text, and tables whose log goes
// between. Nothing is ever replaced within the text.
type routeText []any

type storedSource struct {
	Relation uint32        `json:"relation"`
	Routes   []storedRoute `json:"routes"`
}

type storedRoute struct {
	Needs    []storedNeed `json:"needs"`
	Parts    routeText    `json:"parts"`
	LogsOnly bool         `json:"logs_only"`
}

type storedNeed struct {
	Relation uint32   `json:"relation"`
	Columns  []string `json:"columns"`
}

// A string or quoted identifier, in which no placeholder is looked for, or a
// placeholder.
var routeToken = regexp.MustCompile(`(?i)\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\{log:(\d+)\}`)

// storedSources returns routes as they are stored.
func storedSources(sources []ProvedSource) (json.RawMessage, error) {
	stored := make([]storedSource, len(sources))
	for i, source := range sources {
		stored[i] = storedSource{Relation: source.Relation, Routes: make([]storedRoute, len(source.Routes))}
		for j, route := range source.Routes {
			r := &stored[i].Routes[j]
			r.LogsOnly = route.LogsOnly
			r.Needs = make([]storedNeed, len(route.Needs))
			for k, need := range route.Needs {
				r.Needs[k] = storedNeed{Relation: need.Relation, Columns: append([]string{}, need.Columns...)}
			}
			var err error
			if r.Parts, err = splitRoute(route.SQL); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(stored)
}

// splitRoute parts a route's query at its placeholders.
func splitRoute(sql string) (routeText, error) {
	var parts routeText
	end := 0
	for _, at := range routeToken.FindAllStringSubmatchIndex(sql, -1) {
		if at[2] < 0 {
			continue
		}
		oid, err := strconv.ParseUint(sql[at[2]:at[3]], 10, 32)
		if err != nil {
			return nil, pgdiag.New("22023", "a route names no table: "+sql[at[0]:at[1]])
		}
		parts = append(parts, sql[end:at[0]], uint32(oid))
		end = at[1]
	}
	return append(parts, sql[end:]), nil
}
