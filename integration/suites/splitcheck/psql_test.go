package main

import "testing"

func TestWhatBelongsToPsqlIsLeftOut(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"\\set a 1\nselect 1;":                              "select 1;",
		"select 1 \\gset prefix_\nselect 2":                 "select 1 ;\nselect 2",
		"select 1\n\\g\nselect 2":                           "select 1\n;\nselect 2",
		"select 1\\; select 2;":                             "select 1; select 2;",
		"select 1; \\echo done":                             "select 1;",
		"select :'a', :\"b\", :c, 'd'::\"char\", 1::int":    "select 'a', \"b\", c, 'd'::\"char\", 1::int",
		"copy t from stdin;\n1\t;\n\\.\nselect 1;":          "copy t from stdin;\nselect 1;",
		"copy t (no) from stdin;\nselect 1;\n1\n\\.":        "copy t (no) from stdin;\nselect 1;\n1",
		"\\copy t from stdin\n1\n\\.\nselect 1;":            "select 1;",
		"select '\n:'\n;":                                   "select '\n:'\n;",
		"copy t from stdin;\n1\n\\.\ncopy t from stdin;\n2": "copy t from stdin;\ncopy t from stdin;\n2",
	} {
		if got := withoutPsql(script); got != want {
			t.Errorf("%q\ngot  %q\nwant %q", script, got, want)
		}
	}
}
