package flowstate_test

import (
	"strconv"
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
)

func TestProgressIsShownWhileTheRefreshRuns(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, service := connect(t, url, ""), connect(t, url, "")
	const shown = "select state, progress from rwproxy.refreshes"
	oid := s.dailyTable()
	s.lock(oid)
	id := s.start(oid, flowstate.KindWindow)
	if got := service.value(shown); got != "RUNNING|null" {
		t.Errorf("before anything is noted: %s", got)
	}
	for _, c := range []struct {
		progress flowstate.Progress
		want     string
	}{
		{flowstate.Progress{Step: "planning", Rows: -1}, "planning, 00:00:00"},
		{flowstate.Progress{Step: "inserting", Rows: 0}, "inserting, 0 rows, 00:00:00"},
		{flowstate.Progress{Step: "inserting", Rows: 1234, Estimated: true}, "inserting, about 1234 rows, 00:00:00"},
	} {
		ok(t, flowstate.NoteProgress(t.Context(), service, id, c.progress))
		service.must("update rwproxy.refresh set started_at = clock_timestamp()", "update rwproxy.progress set updated_at = clock_timestamp()")
		if got := service.value(shown); got != "RUNNING|"+c.want {
			t.Errorf("shown %q, want %q", got, c.want)
		}
	}
	service.must("update rwproxy.refresh set started_at = clock_timestamp() - interval '30 hours 5 minutes 7 seconds'")
	if got := service.value(shown); got != "RUNNING|inserting, about 1234 rows, 30:05:07" {
		t.Errorf("after a day: %s", got)
	}
	service.must("update rwproxy.refresh set started_at = clock_timestamp()")
	if got := service.value(shown); got != "RUNNING|null" {
		t.Errorf("of an earlier attempt: %s", got)
	}
	service.must("update rwproxy.progress set updated_at = clock_timestamp()")
	s.unlock(oid)
	if got := service.value(shown); got != "FAILED|null" {
		t.Errorf("of a refresh whose session is lost: %s", got)
	}
}

func TestProgressOfRefreshesThatWereCutOffIsForgotten(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, service := connect(t, url, ""), connect(t, url, "")
	oid := s.dailyTable()
	cut := s.refresh(oid, flowstate.KindWindow, "true")
	s.lock(oid)
	running := s.start(oid, flowstate.KindWindow)
	const other = "00000000-0000-0000-0000-000000000001"
	for _, id := range []string{cut, running, other} {
		ok(t, flowstate.NoteProgress(t.Context(), service, id, flowstate.Progress{Step: "planning", Rows: -1}))
	}
	ok(t, flowstate.ForgetProgress(t.Context(), service, other))
	if got := service.value("select refresh_id from rwproxy.progress"); got != running {
		t.Errorf("left is %s", got)
	}
	ok(t, flowstate.ForgetProgress(t.Context(), service, running))
	if got := service.value("select count(*) from rwproxy.progress"); got != "0" {
		t.Errorf("%s left", got)
	}
}

func TestOnlyTheServiceNotesProgress(t *testing.T) {
	t.Parallel()
	url := installed(t)
	other := connect(t, url, newRole(t, url, "other"))
	const id = "00000000-0000-0000-0000-000000000001"
	refused(t, flowstate.NoteProgress(t.Context(), other, id, flowstate.Progress{Step: "planning"}), "42501", "permission denied")
	refused(t, flowstate.ForgetProgress(t.Context(), other, id), "42501", "permission denied")
	_, err := flowstate.EstimatedRows(t.Context(), other, 1)
	refused(t, err, "42501", "permission denied")
}

func TestRowsOfAnOpenTransactionAreEstimated(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, service := connect(t, url, ""), connect(t, url, "")
	s.must("create table plain (id bigint, name text)",
		"create table parted (id bigint, name text) partition by range (id)",
		"create table parted_1 partition of parted for values from (0) to (30000)",
		"create table parted_2 partition of parted for values from (30000) to (60000)")
	for _, table := range []string{"plain", "parted"} {
		oid, err := strconv.ParseUint(s.value("select '"+table+"'::regclass::oid"), 10, 32)
		ok(t, err)
		estimate := func() int64 {
			rows, err := flowstate.EstimatedRows(t.Context(), service, uint32(oid))
			ok(t, err)
			return rows
		}
		if rows := estimate(); rows != 0 {
			t.Errorf("%s is empty, and seems to hold %d rows", table, rows)
		}
		s.must("begin", "insert into "+table+" select n, 'name of ' || n from generate_series(0, 49999) n")
		if rows := estimate(); rows < 25_000 || rows > 100_000 {
			t.Errorf("%s seems to hold %d rows of 50000", table, rows)
		}
		s.must("commit", "analyze "+table)
		if rows := estimate(); rows < 45_000 || rows > 55_000 {
			t.Errorf("analyzed, %s seems to hold %d rows of 50000", table, rows)
		}
		s.must("begin", "lock table "+table+" in access exclusive mode")
		_, err = flowstate.EstimatedRows(t.Context(), service, uint32(oid))
		refused(t, err, "55P03", "lock timeout")
		s.must("rollback")
	}
}
