package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// timeLayout is how times are written, in UTC and with all that Postgres keeps.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// defaultResults is how many entries a page has when nothing is asked for.
const defaultResults = 25

// maxPageToken bounds a page token, which holds a filter.
const maxPageToken = 16 << 10

// position is where a page begins: what a page token says, and the part of a
// request that it stands for. It is no secret and proves nothing: whatever it
// holds is read as if the request had it.
type position struct {
	Filter  string   `json:"f,omitempty"`
	OrderBy []string `json:"o,omitempty"`
	Until   string   `json:"u,omitempty"` // an update
	// Key is that of the entry next to the page: the one before it, or with Back
	// the one after it.
	Key  []string `json:"k,omitempty"`
	Back bool     `json:"b,omitempty"`
}

// token returns the page token for the page next to an entry.
func (p position) token(back bool, key ...string) string {
	p.Key, p.Back = key, back
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings only
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// tokens returns the tokens of a page's neighbours. more says that there are
// entries beyond the page in the direction it was read in.
func (p position) tokens(more bool, first, last []string) (t pageTokens) {
	if p.Back || more {
		t.Next = p.token(false, last...)
	}
	if p.Key != nil && (!p.Back || more) {
		t.Previous = p.token(true, first...)
	}
	return t
}

// readPosition reads what a list is asked for. isKey checks the key of an entry.
func readPosition(query url.Values, isKey func([]string) bool) (position, error) {
	token := query.Get("page_token")
	if token == "" {
		return position{Filter: query.Get("filter"), OrderBy: orderBy(query), Until: query.Get("until_update_id")}, nil
	}
	for _, other := range []string{"filter", "order_by", "until_update_id"} {
		if query.Get(other) != "" {
			return position{}, invalid("page_token: " + other + " cannot be given with it, it is part of the token")
		}
	}
	var p position
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || len(token) > maxPageToken || !isKey(p.Key) {
		return position{}, invalid("page_token: not one of this list")
	}
	return p, nil
}

// orderBy returns the wanted order: the parameter may be repeated.
func orderBy(query url.Values) []string {
	var order []string
	for _, value := range query["order_by"] {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.ToLower(strings.Join(strings.Fields(part), " ")); part != "" {
				order = append(order, part)
			}
		}
	}
	return order
}

// ordered returns which of the known orders is asked for, the first one if
// none is.
func (p position) ordered(known ...string) (string, error) {
	switch {
	case len(p.OrderBy) == 0:
		return known[0], nil
	case len(p.OrderBy) == 1 && slices.Contains(known, p.OrderBy[0]):
		return p.OrderBy[0], nil
	case len(p.OrderBy) == 1 && slices.Contains(known, p.OrderBy[0]+" asc"):
		return p.OrderBy[0] + " asc", nil
	}
	return "", invalid("order_by: not one of " + strings.Join(known, ", "))
}

// maxResults returns how many entries a page may have.
func maxResults(query url.Values, limit int) (int, error) {
	text := query.Get("max_results")
	if text == "" {
		return defaultResults, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 0 || n > limit:
		return 0, invalid(fmt.Sprintf("max_results: not a number from 1 to %d", limit))
	case n == 0:
		return defaultResults, nil
	}
	return n, nil
}
