package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder returns a new folder with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestResultsAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read  func(string) (results, error)
		files map[string]string
		want  results
	}{
		"go test": {
			read: readGoTest,
			files: map[string]string{"gotest.json": `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"fail"}
{"Action":"pass","Package":"p","Test":"TestGood"}
what a test prints past testing.T
{"Action":"run","Package":"p","Test":"TestBad/file=/tmp/TestBad123/001/f"}
{"Action":"fail","Package":"p","Test":"TestBad/file=/tmp/TestBad123/001/f"}
{"Action":"run","Package":"p","Test":"TestLeftOut"}
{"Action":"skip","Package":"p","Test":"TestLeftOut"}
{"Action":"run","Package":"p","Test":"TestThatEndsTheProcess"}
{"Action":"fail","Package":"p"}
{"Action":"skip","Package":"without tests"}
{"Action":"pass","Package":"good"}
{"Action":"fail","Package":"that does not compile"}
`},
			want: results{
				"p TestGood":                    {status: passed},
				"p TestBad/file=/tmp/TestBad/f": {status: failed},
				"p TestLeftOut":                 {status: skipped},
				"p TestThatEndsTheProcess":      {status: failed},
				"that does not compile":         {status: failed},
			},
		},
		"JUnit": {
			read: readJUnit,
			files: map[string]string{
				"a.xml": `<testsuites><testsuite name="s"><properties/>
<testcase classname="c" name="good"><system-out>failure</system-out></testcase>
<testcase classname="c" name="bad"><failure message="m">text</failure></testcase>
<testcase classname="c" name="worse"><error/></testcase>
<testcase classname="c" name="left out"><skipped/></testcase>
</testsuite></testsuites>`,
				"b.xml": `<testsuite><testcase classname="c" name="good"><failure/></testcase></testsuite>`,
			},
			want: results{
				"c good":     {status: passed},
				"c bad":      {status: failed},
				"c worse":    {status: failed},
				"c left out": {status: skipped},
				"c good #2":  {status: failed},
			},
		},
		"pg_regress": {
			read: readRegress,
			files: map[string]string{
				"log": `============== running regression test queries        ==============
test tablespace                   ... ok          216 ms
parallel group (2 tests):  char boolean
     boolean                      ... FAILED       52 ms
     char                         ... failed (ignored)       40 ms
test crash                        ... FAILED (test process exited with exit code 2)      101 ms
`,
				"results/tablespace.out": "spaces",
				"results/boolean.out":    "true",
			},
			want: results{
				"tablespace": {status: passed, output: "spaces"},
				"boolean":    {status: failed, output: "true"},
				"char":       {status: failed},
				"crash":      {status: failed},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.read(folder(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
