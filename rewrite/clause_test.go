package rewrite_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/rewrite"
)

const staff = `
	create table staff (id integer, name text, team text, pay integer, tags text[]);
	insert into staff values
		(1, 'ann', 'red', 10, '{x,y}'), (2, 'bob', 'red', 30, '{}'), (3, 'cid', 'blue', 20, null), (4, 'dan', null, 40, '{z}');
	create table teams (team text, city text, pay integer);
	insert into teams values ('red', 'Oslo', 25), ('red', 'Rome', 5), ('green', 'Riga', 1);
	create table reserved ("end" integer, "order" text, "check" date, "user" text);
	insert into reserved values (1, 'a', '2024-01-01', 'me')`

// The rows follow from the meaning of each clause in the Databricks references.
func TestClausesThatPostgresLacksReturnWhatDatabricksReturns(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, staff)
	for query, want := range map[string]string{
		// QUALIFY
		"select id, team from staff qualify row_number() over (partition by team order by pay desc) = 1 order by id":                                                    "2 red; 3 blue; 4 NULL",
		"select id, rank() over (order by pay) as r from staff qualify r <= 2 order by id":                                                                              "1 1; 3 2",
		"select * from staff where team is not null qualify count(*) over (partition by team) = 1":                                                                      "3 cid blue 20 NULL",
		"select team, sum(pay) as total from staff group by team qualify rank() over (order by sum(pay) desc) = 1 order by team":                                        "red 40; NULL 40",
		"select distinct team from staff qualify count(*) over (partition by team) > 1":                                                                                 "red",
		"select id from staff window w as (order by id) qualify not row_number() over w > 2 and id < 3 order by id desc limit 1":                                        "2",
		"select x.id from (select id, row_number() over (order by pay desc) as n from staff qualify n = 1) x":                                                           "4",
		"with top as (select * from staff qualify row_number() over (order by pay desc) = 1) select id from top":                                                        "4",
		"select id from staff qualify row_number() over (order by pay) = 1 union all select id from staff qualify row_number() over (order by id desc) = 1 order by id": "1; 4",
		"select pay as id from staff qualify max(id) over () = id":                                                                                                      "40",

		// * EXCEPT
		"select * except (tags, pay) from staff where id = 1":                                              "1 ann red",
		"select s.* except (tags, pay, team), t.city from staff s join teams t using (team) order by 3, 1": "1 ann Oslo; 2 bob Oslo; 1 ann Rome; 2 bob Rome",
		"select * except (pay, tags, name) from staff qualify id = max(id) over ()":                        "4 NULL",
		"select team, count(*) from (select * except (tags) from staff) s group by all order by 1":         "blue 1; red 2; NULL 1",
		"with s as (select 1 as a, 2 as b), u as (select * except (a) from s) select * from u":             "2",

		// LATERAL VIEW
		"select id, tag from staff lateral view explode(tags) t as tag order by 1, 2":                                                "1 x; 1 y; 4 z",
		"select id, tag from staff lateral view outer explode(tags) t as tag order by 1, 2":                                          "1 x; 1 y; 2 NULL; 3 NULL; 4 z",
		"select id, pos, tag from staff lateral view posexplode(tags) t as pos, tag where id = 1 order by 2":                         "1 0 x; 1 1 y",
		"select id, t.col from staff lateral view explode(tags) t where t.col <> 'x' order by id":                                    "1 y; 4 z",
		"select tag, n from staff lateral view explode(tags) a tag lateral view explode(array(1, 2)) b as n where id = 4 order by n": "z 1; z 2",

		// SEMI and ANTI JOIN
		"select id from staff s left semi join teams t on s.team = t.team order by id":                                         "1; 2",
		"select * except (tags) from staff s left anti join teams t on s.team == t.team order by id":                           "3 cid blue 20; 4 dan NULL 40",
		"select id from staff s semi join teams t on s.team = t.team and s.pay > t.pay where s.pay < 30 or id = 9":             "1",
		"select id from staff s left semi join teams t on s.team = t.team left anti join teams u on u.pay > s.pay group by id": "2",
		"select count(*) from staff left semi join teams":                                                                      "4",

		// WITH ROLLUP and CUBE
		"select team, sum(pay) from staff where team is not null group by team with rollup order by 2":    "blue 20; red 40; NULL 60",
		"select team, name, count(*) from staff where id < 2 group by team, name with cube order by 1, 2": "red ann 1; red NULL 1; NULL ann 1; NULL NULL 1",

		// Names of the select list
		"select team, sum(pay) as total from staff group by team having total > 30 order by total + 1, team": "red 40; NULL 40",
		"select team, count(*) as pay from staff group by team, pay having pay > 30":                         "NULL 1",
		"select id, pay * 2 as double_pay from staff order by -double_pay limit 1":                           "4 80",
		"select id as n, pay as id from staff order by id + 0 limit 1":                                       "1 10",

		// Others
		"select /*+ BROADCAST(t) */ count(*) from staff t":                                                        "4",
		"select team from staff where team is not null minus select team from teams":                              "blue",
		"select id from staff where name like any ('a%', '%d') order by 1":                                        "1; 3",
		"select id from staff where name not like all ('a%', '%d') order by 1":                                    "2; 4",
		"select id from staff where name rlike '^[ab]' and not name rlike 'x' order by 1":                         "1; 2",
		"select end, order, check from reserved where order = 'a' and end in (1) order by end":                    "1 a 2024-01-01",
		"select array(pay, 7)[0] + array(1, 2)[1] from staff where id = 1":                                        "12",
		"select split(name, 'n')[0] from staff where id = 1":                                                      "a",
		"select team, collect_list(name) from staff group by all order by 1":                                      "blue {cid}; red {ann,bob}; NULL {dan}",
		"select team, max_by(name, pay), median(pay), percentile(pay, 0.5) from staff group by all order by team": "blue cid 20 20; red bob 20 20; NULL dan 40 40",
		"select (pay + 1) div 2 as half from staff where id = 1":                                                  "5",
	} {
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, diagnosing{catalog{t, c}}, rewrite.Lexical{})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		var lines []string
		for _, row := range rows(t, c, translation.SQL) {
			lines = append(lines, strings.Join(row, " "))
		}
		if got := strings.Join(lines, "; "); got != want {
			t.Errorf("%s became\n%s\ngot  %s\nwant %s", query, translation.SQL, got, want)
		}
	}
}

func TestWhatHasNoTranslationIsRefusedByName(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, staff)
	for query, want := range map[string]string{
		"select id from staff lateral view inline(x) t":                              "LATERAL VIEW with this function|lateral view inline(x) t",
		"select id from staff s left semi join teams t using (team)":                 "SEMI or ANTI JOIN with USING|semi join teams t using (team)",
		"select id from staff s left semi join teams t on true join teams u on true": "a SEMI or ANTI JOIN in front of another join|semi join",
		"select id, id from staff qualify row_number() over () = 1":                  "QUALIFY over columns without names of their own|qualify",
		"select id + 1 from staff qualify row_number() over () = 1":                  "QUALIFY over columns without names of their own|qualify",
		"select distinct on (id) id from staff qualify row_number() over () = 1":     "QUALIFY with DISTINCT ON|qualify",
		"select * except (id) from staff s join teams t on true":                     `EXCEPT with two columns called team|except`,
		"select id from staff where name rlike name":                                 "rlike with a pattern that is not a constant|name",
		"select regexp_extract(name, 'a|b') from staff":                              "alternatives, of which Java takes the first and PostgreSQL the longest in the pattern of regexp_extract|'a|b'",
		"select regexp_extract(name, '(ab)?c') from staff":                           "a group with a quantifier where the matched text matters in the pattern of regexp_extract|'(ab)?c'",
		"select regexp_extract(name, 'a+?') from staff":                              "a reluctant quantifier where the matched text matters in the pattern of regexp_extract|'a+?'",
		"select split(name, 'x*') from staff":                                        "a pattern that matches an empty text in the pattern of split|'x*'",
		"select split(name, ',', 2) from staff":                                      "split with a limit|2",
		`select rlike(name, '\p{L}') from staff`:                                     `the escape \p in the pattern of rlike|'\p{L}'`,
		`select name rlike 'a\b' from staff`:                                         `the escape \b in the pattern of rlike|'a\b'`,
		`select name rlike '(?<n>a)' from staff`:                                     "flags in a pattern in the pattern of rlike|'(?<n>a)'",
		`select name rlike 'a++' from staff`:                                         "a possessive quantifier in the pattern of rlike|'a++'",
		`select name rlike 'a(?s)b' from staff`:                                      "named groups, atomic groups and flags in the pattern of rlike|'a(?s)b'",
		`select name rlike '[a-z&&[^b]]' from staff`:                                 "a class in a class in the pattern of rlike|'[a-z&&[^b]]'",
		`select name rlike 'a{300}' from staff`:                                      "this quantifier in the pattern of rlike|'a{300}'",
		"select date_format(current_date, 'ww') from staff":                          `the date format "ww"|'ww'`,
		"select date_format(current_date, name) from staff":                          "date_format with a format that is not a constant|name",
		"select unix_timestamp(name, 'dd MMM yy') from staff":                        `the date format "MMM"|'dd MMM yy'`,
		"select try_cast(name as timestamp) from staff":                              "try_cast to this type|try_cast",
		"select percentile(pay, 0.5, 2) from staff":                                  "percentile with so many arguments|2",
		"select median(distinct pay) from staff":                                     "median with DISTINCT|distinct pay",
		"select cast(name as map<string, int>) from staff":                           "the type MAP|map<string, int>",
		"select cast(name as variant) from staff":                                    "the type VARIANT|variant",
		"select first(name) from staff":                                              "the function first|first(name)",
		"select xxhash64(name), sha2(name, 256) from staff":                          "the function xxhash64|xxhash64(name)",
		"select get_json_object(name, '$.a') from staff":                             "the function get_json_object|get_json_object",
		"select transform(tags, x -> upper(x)) from staff":                           "the function transform|transform",
		"select from_utc_timestamp(now(), 'CET') from staff":                         "the function from_utc_timestamp|from_utc_timestamp",
		"select window(now(), '1 hour') from staff":                                  "the function window|window",
		"select named_struct('a', 1), element_at(tags, 1) from staff":                "the function named_struct|named_struct",
		"select * from read_files('/a')":                                             "the function read_files|read_files",
		"select try_add(pay, 1) from staff":                                          "the function try_add|try_add",
		"select id from staff tablesample (10 percent)":                              "TABLESAMPLE without a method|tablesample",
		"select pay + 1 as x, x * 2 as y from staff":                                 "a name of the select list in the same select list|x * 2",
		"select id into copy from staff":                                             "SELECT INTO|into copy",
		"with x as (select id into copy from staff) select * from x":                 "SELECT INTO|into copy",
		"select pay >>> 1 from staff":                                                "the operator >>>|>>> 1",
		"select id from staff where id = ${x}":                                       "a variable in ${...}|${x}",
		"select split(name, 'a')[0:1] from staff":                                    "a slice of a function's result|[0:1]",
	} {
		construct, at, _ := strings.Cut(want, "|")
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query, Offset: len(before)}, diagnosing{catalog{t, c}}, rewrite.Lexical{})
		if err == nil {
			t.Errorf("%s became\n%s", query, translation.SQL)
			continue
		}
		got := errorText(before+query, err)
		if !strings.HasPrefix(got, "0A000: "+construct+" is not supported in a REPLACE WHERE flow\nHINT: ") || !strings.Contains(got, ".\nAT: "+at) {
			t.Errorf("%s\ngot %s\nwant %s", query, got, want)
		}
	}
}

func TestTheUsersOwnFunctionsAreNotTranslated(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `
		create function first(text) returns text language sql return 'own';
		create function median(integer) returns text language sql return 'own';
		create function split(text, text) returns text language sql return 'own';
		create function date_format(date, text) returns text language sql return $2;
		create schema elsewhere;
		create function elsewhere.rlike(text, text) returns boolean language sql return true`)
	query := "select first('a'), median(1), split('a', 'b'), date_format(current_date, 'ww'), elsewhere.rlike('a', '**')"
	translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, catalog{t, c}, rewrite.Lexical{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"own", "own", "own", "ww", "t"}}, rows(t, c, translation.SQL)); diff != "" {
		t.Errorf("%s\n-want +got\n%s", translation.SQL, diff)
	}
}
