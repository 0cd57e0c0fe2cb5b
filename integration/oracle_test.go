package integration

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// How long the oracle plays, and what. The seed of a run is printed: with it,
// and as many rounds, the run happens again.
const (
	roundsVariable = "RWPROXY_ORACLE_ROUNDS" // refreshes a shape
	seedVariable   = "RWPROXY_ORACLE_SEED"
	defaultRounds  = 4
)

// enoughRounds is from how many rounds on a shape that can be refreshed
// incrementally must have been: fewer may change too much each time.
const enoughRounds = 40

// number is the value of an environment variable.
func number(t testing.TB, variable string, otherwise uint64) uint64 {
	t.Helper()
	text, found := os.LookupEnv(variable)
	if !found {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Every shape is refreshed again and again between random statements, and each
// time its whole target is compared with a recompute. RWPROXY_ORACLE_ROUNDS
// makes it thousands of times:
//
//	RWPROXY_ORACLE_ROUNDS=1000 go test -timeout 0 -run 'TestARefreshIsWhatARecomputeIs' ./integration
//
// With -v the techniques of each shape are printed.
func TestARefreshIsWhatARecomputeIs(t *testing.T) {
	t.Parallel()
	rounds := int(number(t, roundsVariable, defaultRounds))
	seed := number(t, seedVariable, rand.Uint64())
	t.Logf("%s=%d %s=%d", seedVariable, seed, roundsVariable, rounds)
	d := newDatabase(t)
	connect(t, d.direct).exec(`create extension citext schema public`)
	for i, sh := range append(shapes[:len(shapes):len(shapes)], keyShapes()...) {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			o := newOracle(t, d, sh, fmt.Sprintf("shape_%d", i), seed^hash(sh.name), server.Major())
			o.play(rounds)
			if rounds >= enoughRounds {
				o.checkTechniques()
			}
			t.Log(o.techniques())
		})
	}
}

// play does a number of rounds, which must all be right.
func (o *oracle) play(rounds int) {
	o.t.Helper()
	if wrong := o.firstWrong(rounds); wrong != "" {
		o.fatalf("%s", wrong)
	}
}

// firstWrong does a number of rounds and returns what is wrong with the first
// that is, "" if none. Every second round is a gentle one.
func (o *oracle) firstWrong(rounds int) string {
	o.t.Helper()
	for round := range rounds {
		if wrong := o.round(round%2 == 1); wrong != "" {
			return wrong
		}
	}
	return ""
}

// round writes, refreshes and compares.
func (o *oracle) round(gentle bool) string {
	o.t.Helper()
	o.write(gentle)
	return o.refresh(gentle)
}

// techniques lists what was done, for people.
func (o *oracle) techniques() string {
	var list []string
	for _, technique := range slices.Sorted(maps.Keys(o.used)) {
		list = append(list, fmt.Sprintf("%s %q", technique, slices.Sorted(maps.Keys(o.used[technique]))))
	}
	return strings.Join(list, ", ")
}

// gentleRounds is how many refreshes with little to do a shape gets to be
// incremental in, when it was not before.
const gentleRounds = 30

func (o *oracle) checkTechniques() {
	o.t.Helper()
	for range gentleRounds {
		if o.shape.expect != narrowed || o.used["INCREMENTAL"] != nil {
			break
		}
		// One statement: with more, most keys of so small a table have changed.
		o.endAll()
		o.do("", o.writers[0].session, o.maker.make(pick(o.random, o.shape.sources), 0, true))
		if wrong := o.refresh(true); wrong != "" {
			o.fatalf("%s", wrong)
		}
	}
	switch incremental := o.used["INCREMENTAL"] != nil; {
	case o.shape.expect == narrowed && !incremental:
		o.t.Errorf("never refreshed incrementally: %s", o.techniques())
	case o.shape.expect == never && incremental:
		o.t.Errorf("refreshed incrementally: %s", o.techniques())
	}
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // cannot fail
	return h.Sum64()
}
