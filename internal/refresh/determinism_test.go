package refresh

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatMakesAQueryNotDeterministic(t *testing.T) {
	t.Parallel()
	p := newProver(t, sourcesOfShapes+`
		create function lookup(int) returns text language sql stable as 'select city from d where store = $1';
		create function pure(int) returns int language plpgsql immutable as 'begin return $1 + 1; end';
		create function lying(int) returns bigint immutable begin atomic select count(*) from d where store = $1; end;
		create function moody(int, int) returns int language plpgsql volatile as 'begin return $1; end';
		create aggregate moody_sum (int) (sfunc = moody, stype = int);
		create function close_to(int, int) returns bool language plpgsql stable as 'begin return $1 = $2; end';
		create operator ~~~ (leftarg = int, rightarg = int, function = close_to);
		create view clock as select now() as at;`)
	for _, test := range []struct {
		query string
		want  []issue
	}{
		{"select day, sum(amount) as a from s group by day", nil},
		{"select date_trunc('day', at) as d, to_char(at, 'YYYY') as y, at::text as t, concat(n, kind) as c from ev", nil},
		{"select json_agg(id order by id) as j, string_agg(region, ',' order by id) as t from s", nil},
		{"select pure(id) as x from s", nil},
		{"select id, random() as r from s", []issue{{issueVolatile, "random"}}},
		{"select id from s where day > now() - interval '1 day'", []issue{{issueClock, "now"}}},
		{"select id from s where day > current_date or region = current_user", []issue{{issueClock, "current_date"}, {issueClock, "current_user"}}},
		{"select id, localtimestamp(0) as t from s", []issue{{issueClock, "localtimestamp"}}},
		{"select age(at) as a, age(at, at) as b from ev", []issue{{issueClock, "age"}}},
		{"select s.id from s, clock", []issue{{issueClock, "now"}}},
		{"select id, lookup(store) as l from s", []issue{{issueUserFunction, "public.lookup"}}},
		{"select id, lying(store) as l from s", []issue{{issueOpaque, "public.lying"}}},
		{"select moody_sum(id) as l from s", []issue{{issueVolatile, "public.moody"}}},
		{"select id from s where id operator(public.~~~) store", []issue{{issueUserFunction, "public.close_to"}}},
		{"select id, current_setting('x.y', true) as c from s", []issue{{issueState, "current_setting"}}},
		{"select id, to_regclass(region) as c from s", []issue{{issueState, "to_regclass"}, {issueState, "regclass"}}},
		{"select id, pg_relation_size('s') as c from s", []issue{{issueVolatile, "pg_relation_size"}, {issueState, "regclass"}}},
		{"select id from s tablesample bernoulli (10)", []issue{{issueRowPlace, "tablesample"}}},
		{"select id, ctid::text as c from s", []issue{{issueRowPlace, "ctid"}}},
		{"select id, tableoid from p", []issue{{issueRowPlace, "tableoid"}}},
		{"select id from s where id in (select id from m for update skip locked)", []issue{{issueSkipLocked, "skip locked"}}},
		{"select (select max(x.r) from (select random() as r from m where m.id = s.id) as x) as r from s", []issue{{issueVolatile, "random"}}},
	} {
		proved := p.prove(test.query, "")
		got := proved.Issues
		sortIssues := cmp.Transformer("sorted", func(issues []issue) map[issue]bool {
			set := map[issue]bool{}
			for _, i := range issues {
				set[i] = true
			}
			return set
		})
		if diff := cmp.Diff(test.want, got, sortIssues); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.query, diff)
		}
		if proved.Deterministic != (len(test.want) == 0) {
			t.Errorf("%s: deterministic %t", test.query, proved.Deterministic)
		}
		for _, s := range proved.Sources {
			if !proved.Deterministic && len(s.Routes) > 0 {
				t.Errorf("%s: routes without determinism", test.query)
			}
		}
	}
}

func TestATreeIsReadAsPostgresWritesIt(t *testing.T) {
	t.Parallel()
	const tree = `({QUERY :alias {ALIAS :aliasname a\ b\(c :colnames ("x\ y" "" "\"z")} :aliasname :funcid :consts {CONST :constvalue 4 [ 1 0 -5 0 ]} :opnos (o 96 97) :none <>})`
	var nodes []*treeNode
	parseTree(tree).walk(func(n *treeNode) { nodes = append(nodes, n) })
	kinds := map[string]*treeNode{}
	for _, n := range nodes {
		kinds[n.kind] = n
	}
	alias := kinds["ALIAS"]
	if alias == nil || alias.atom("aliasname") != "a b(c" {
		t.Fatalf("got %+v", alias)
	}
	if diff := cmp.Diff([]string{"x y", "", `"z`}, alias.fields["colnames"].strings()); diff != "" {
		t.Error(diff)
	}
	query := kinds["QUERY"]
	if query.atom("aliasname") != ":funcid" || query.atom("funcid") != "" {
		t.Error("a value that begins with a colon is taken for a name")
	}
	if !query.fields["none"].isNull() || query.fields["alias"].isNull() {
		t.Error("isNull")
	}
	var opnos []string
	for _, v := range query.fields["opnos"].list {
		opnos = append(opnos, v.atom)
	}
	if got := strings.Join(opnos, " "); got != "o 96 97" {
		t.Errorf("opnos %q", got)
	}
	parseTree("({QUERY :x (") // ends in the middle
}
