package console

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiltersAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]condition{
		"":                  nil,
		" \t\n":             nil,
		"level='INFO'":      {{"level", "=", []string{"INFO"}}},
		"LEVEL = 'INFO'":    {{"level", "=", []string{"INFO"}}},
		"update_id='it''s'": {{"update_id", "=", []string{"it's"}}},
		"update_id=''''''":  {{"update_id", "=", []string{"''"}}},
		"level IN ('ERROR','WARN') And timestamp>='2024-05-01T12:00:00.123Z'": {
			{"level", "in", []string{"ERROR", "WARN"}}, {"timestamp", ">=", []string{"2024-05-01T12:00:00.123Z"}},
		},
		"update_id = 'a' AND event_type in ('update_progress','flow_progress')": {
			{"update_id", "=", []string{"a"}}, {"event_type", "in", []string{"update_progress", "flow_progress"}},
		},
	} {
		got, err := parseFilter(text, eventFields)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(condition{})); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestFiltersThatAreRefusedSayWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"level":                                  "expected one of the operators =, IN at character 6",
		"level =":                                "expected a value in single quotes at character 8",
		"level = INFO":                           "expected a value in single quotes at character 9",
		"level = 'INFO":                          "the quote at character 9 is not closed",
		"level > 'INFO'":                         "expected one of the operators =, IN at character 7",
		"level = 'info'":                         "the value at character 9 is not one of INFO, WARN, ERROR, METRICS",
		"level = 'INFO' OR level = 'WARN'":       "expected AND or the end at character 16",
		"level = 'INFO' AND":                     "expected the name of a field at character 19",
		"level in 'INFO'":                        "expected a list in parentheses at character 10",
		"level in ()":                            "expected a value in single quotes at character 11",
		"level in ('INFO'":                       "expected a comma",
		"level in ('INFO',)":                     "expected a value in single quotes at character 18",
		"'ä' = 'x'":                              "expected the name of a field at character 1",
		"update_id = 'ä' AND message = 'x'":      "expected one of the fields event_type, id, level, timestamp, update_id at character 21",
		"timestamp > 'yesterday'":                `the value at character 13 is not a time such as "2024-05-01T12:00:00.000Z"`,
		"id = 'x'":                               "the value at character 6 is not a UUID",
		"level = 'INFO'; drop table t":           "expected a field, an operator or a value in single quotes at character 15",
		"level = 'INFO' -- x":                    "expected a field, an operator or a value in single quotes at character 16",
		"update_id = 'a\x00b'":                   "expected a value without NUL",
		`level = "INFO"`:                         "expected a field, an operator or a value in single quotes at character 9",
		strings.Repeat("x", maxFilter+1):         "longer than 4096 bytes",
		strings.Repeat("id='' and ", 3) + "id=x": "the value at character 4 is not a UUID",
		strings.TrimSuffix(strings.Repeat("update_id='' and ", maxConditions+1), " and "):     "more than 20 conditions",
		"event_type in (" + strings.TrimSuffix(strings.Repeat("'',", maxValues+1), ",") + ")": "at most 100 values",
		"timestamp = '2024-13-01'":                    "the value at character 13 is not a time",
		"level = 'INFO' level = 'INFO'":               "expected AND or the end at character 16",
		"level <> 'INFO'":                             "expected one of the operators =, IN at character 7",
		"level in ('INFO') and level not in ('WARN')": "expected one of the operators =, IN at character 29",
		"name like 'x'":                               "expected one of the fields",
		"level = 'INFO' and (level = 'INFO')":         "expected the name of a field at character 20",
		"level\u00a0= 'INFO'":                         "character 6",
	} {
		_, err := parseFilter(text, eventFields)
		var failure *apiError
		if !errors.As(err, &failure) || failure.status != 400 || !strings.Contains(failure.message, want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestTimesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2024-05-01T12:00:00.123Z":      "2024-05-01T12:00:00.123000Z",
		"2024-05-01T12:00:00+02:00":     "2024-05-01T10:00:00.000000Z",
		"2024-05-01 12:00:00.5":         "2024-05-01T12:00:00.500000Z",
		"2024-05-01":                    "2024-05-01T00:00:00.000000Z",
		"2024-05-01T12:00:00.123456789": "2024-05-01T12:00:00.123456Z",
	} {
		got, err := parseTime(text)
		if err != nil || got.UTC().Format(timeLayout) != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}

// FuzzFilter checks that what is read is what the fields allow, and that it is
// read the same again from its own text.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		"", "level='INFO'", "level in ('ERROR','WARN') and timestamp > '2024-05-01T00:00:00Z'", "update_id='it''s'",
		"id = '00000000-0000-0000-0000-000000000000'", "level = '", "((", "event_type in ('a', 'b'", "a and b", "\x00", "ä='x'",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		conditions, err := parseFilter(text, eventFields)
		if err != nil {
			var failure *apiError
			if !errors.As(err, &failure) || failure.status != 400 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		var parts []string
		for _, c := range conditions {
			if eventColumns[c.field] == "" || len(c.values) == 0 {
				t.Fatalf("%q: %+v", text, c)
			}
			quoted := make([]string, len(c.values))
			for i, value := range c.values {
				quoted[i] = "'" + strings.ReplaceAll(value, "'", "''") + "'"
			}
			right := strings.Join(quoted, ",")
			if c.operator == "in" {
				right = "(" + right + ")"
			}
			parts = append(parts, c.field+" "+c.operator+" "+right)
		}
		written := strings.Join(parts, " AND ")
		if len(written) > maxFilter {
			return // spaces that were not there
		}
		again, err := parseFilter(written, eventFields)
		if err != nil {
			t.Fatalf("%q, written as %q: %v", text, written, err)
		}
		if diff := cmp.Diff(conditions, again, cmp.AllowUnexported(condition{})); diff != "" {
			t.Fatalf("%q, written as %q: %s", text, written, diff)
		}
		if _, err := eventListing(position{Filter: text}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
