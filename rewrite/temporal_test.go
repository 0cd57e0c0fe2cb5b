package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/rewrite"
)

func TestTheClockIsReplacedWhereItIsRead(t *testing.T) {
	t.Parallel()
	for predicate, want := range map[string]string{
		`day >= current_date - 7`:                           `day >= <current_date> - 7`,
		`day = CURRENT_DATE or Day = Current_Date`:          `day = <current_date> or Day = <current_date>`,
		`ts > now() and ts > NOW ( )`:                       `ts > <now()> and ts > <now()>`,
		`ts > current_timestamp(3)`:                         `ts > <current_timestamp(3)>`,
		`ts > current_timestamp`:                            `ts > <current_timestamp>`,
		`t < localtime or t < localtime(0)`:                 `t < <localtime> or t < <localtime(0)>`,
		`t < current_time and ts < localtimestamp`:          `t < <current_time> and ts < <localtimestamp>`,
		`ts > transaction_timestamp() - interval '1 day'`:   `ts > <transaction_timestamp()> - interval '1 day'`,
		`ts > statement_timestamp()`:                        `ts > <statement_timestamp()>`,
		`ts > pg_catalog.now()`:                             `ts > <pg_catalog.now()>`,
		`f(current_date, 'current_date')`:                   `f(<current_date>, 'current_date')`,
		`curdate() > unix_timestamp() - unix_timestamp(ts)`: `<curdate()> > <unix_timestamp()> - unix_timestamp(ts)`,
		// What only looks like it.
		`ts > clock_timestamp()`:                              `ts > clock_timestamp()`,
		`ts > other.now() and other.pg_catalog.now() is null`: `ts > other.now() and other.pg_catalog.now() is null`,
		`now = 1 and x.now = 2 and now(1) = 3`:                `now = 1 and x.now = 2 and now(1) = 3`,
		`x.current_date = 1 and "current_date" = 2`:           `x.current_date = 1 and "current_date" = 2`,
		`'now()' = E'\'now()' and $$now()$$ = "now()"`:        `'now()' = E'\'now()' and $$now()$$ = "now()"`,
		`a = 1 /* now() */ and true -- current_date`:          `a = 1 /* now() */ and true -- current_date`,
		`age(ts) > interval '1 day'`:                          `age(ts) > interval '1 day'`,
	} {
		calls := map[string]int{}
		got, err := rewrite.ResolveTemporal(predicate, rewrite.Lexical{}, func(expression string) (string, error) {
			calls[expression]++
			return "<" + expression + ">", nil
		})
		if err != nil || got != want {
			t.Errorf("%s became %s, %v", predicate, got, err)
		}
		for expression, n := range calls {
			if n != 1 {
				t.Errorf("%s: value was called %d times for %s", predicate, n, expression)
			}
		}
	}
}

func TestAValueThatCannotBeHadIsAnError(t *testing.T) {
	t.Parallel()
	failure := errors.New("no value")
	if _, err := rewrite.ResolveTemporal(`a = now()`, rewrite.Lexical{}, func(string) (string, error) { return "", failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

// The engine's way: the value of each expression as Postgres prints it.
func TestAResolvedPredicateMeansWhatItMeantAtThatTime(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, predicate := range []string{
		`current_date = now()::date and current_date + 0 = curdate()`,
		`now() = current_timestamp and current_timestamp = transaction_timestamp()`,
		`localtimestamp(0) between localtimestamp - interval '1 second' and localtimestamp + interval '1 second'`,
		`localtime = localtimestamp::time and current_time = current_timestamp::timetz`,
		`date_add(current_date, -7) = date_sub(current_date, 7) and current_date::text = (current_date)::text`,
		`unix_timestamp() = floor(extract(epoch from now())) and current_date - date '2024-01-01' > 0`,
	} {
		execute(t, c, "begin")
		resolved, err := rewrite.ResolveTemporal(predicate, rewrite.Lexical{}, func(expression string) (string, error) {
			return rows(t, c, "select quote_literal(("+expression+")::text) || '::' || pg_typeof("+expression+")::text")[0][0], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := rows(t, c, "select ("+resolved+"\n)"); got[0][0] != "t" {
			t.Errorf("%s became %s", predicate, resolved)
		}
		if lower := strings.ToLower(resolved); strings.Contains(lower, "now(") || strings.Contains(lower, "current") {
			t.Errorf("%s became %s", predicate, resolved)
		}
		execute(t, c, "rollback")
	}
}
