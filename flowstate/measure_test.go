package flowstate_test

import (
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
)

func (s *session) measure(service *flowstate.Service) flowstate.Measurement {
	s.t.Helper()
	m, err := service.Measure(s.t.Context(), s.conn.Config().Database)
	ok(s.t, err)
	return m
}

func TestADatabaseWithoutFlowsIsMeasured(t *testing.T) {
	t.Parallel()
	url := installed(t)
	m := connect(t, url, "").measure(newService(t, url))
	if m.Queued != 0 || m.Running != 0 || m.OldestQueued != 0 || m.FlowCount != 0 || len(m.Flows) != 0 || len(m.Logs) != 0 {
		t.Errorf("%+v", m)
	}
}

func TestFlowsAndLogsAreMeasured(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
	flow := func() flowstate.MeasuredFlow {
		t.Helper()
		m := c.measure(c.service)
		if m.FlowCount != 1 || len(m.Flows) != 1 {
			t.Fatalf("%+v", m)
		}
		return m.Flows[0]
	}
	pending := func(want string) {
		t.Helper()
		got := "unknown"
		if p := flow().Pending; p != nil {
			got = map[bool]string{true: "yes", false: "no"}[*p]
		}
		if got != want {
			t.Errorf("pending: %s, want %s", got, want)
		}
	}
	c.must("update rwproxy.streaming_table set created_at = clock_timestamp() - interval '1 hour'")
	if f := flow(); f.Schema != "public" || f.Table != "daily" || f.Failed || f.Lag < 3600 || f.Lag > 4000 {
		t.Errorf("never refreshed: %+v", f)
	}
	pending("unknown")
	c.capture("source", []string{"day"}, []string{"day", "amount"})
	c.take()
	pending("no")
	if f := flow(); f.Lag < 0 || f.Lag > 600 {
		t.Errorf("just refreshed: %+v", f)
	}
	late := connect(t, c.url, "")
	late.must("begin", "insert into source values ('2024-01-02', 1)")
	c.must("insert into source values ('2024-01-01', 1)")
	pending("yes")
	c.take()
	pending("no")
	late.must("commit")
	pending("yes")
	c.take()
	pending("no")

	c.must("insert into source select '2024-01-01'::date + n, 1 from generate_series(1, 16) n")
	m := c.measure(c.service)
	if len(m.Logs) != 2 || m.Logs[0].Schema != "public" || m.Logs[0].Table != "source" || m.Logs[0].Bytes == 0 || m.Logs[0].Rows == 0 {
		t.Errorf("logs: %+v", m.Logs)
	}
	// More than is read in passing.
	log := c.value("select log from rwproxy.capture where relation = 'source'::regclass")
	c.must("insert into " + log + " (xid, known, own) select '1', 0, false from generate_series(1, 250000)")
	c.take()
	pending("yes")
}

func TestRefreshesThatWaitRunAndFailAreMeasured(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, service := connect(t, url, ""), newService(t, url)
	oid := s.dailyTable()
	s.lock(oid)
	s.start(oid, flowstate.KindWindow)
	if m := s.measure(service); m.Running != 1 || m.Queued != 0 || m.Flows[0].Failed {
		t.Errorf("running: %+v", m)
	}
	s.unlock(oid)
	if m := s.measure(service); m.Running != 0 {
		t.Errorf("its session has let go of it: %+v", m)
	}
	s.refresh(oid, flowstate.KindWindow, "true") // which finds the other one lost
	if m := s.measure(service); m.Flows[0].Failed {
		t.Errorf("completed: %+v", m)
	}
	s.must("update rwproxy.refresh set state = 'FAILED' where state = 'COMPLETED'")
	if m := s.measure(service); !m.Flows[0].Failed {
		t.Errorf("failed: %+v", m)
	}
	s.must("update rwproxy.refresh set state = 'QUEUED', ended_at = null, due_at = clock_timestamp() - interval '1 minute'")
	if m := s.measure(service); m.Queued != 2 || m.OldestQueued < 60 || m.OldestQueued > 600 {
		t.Errorf("queued: %+v", m)
	}
	s.must("update rwproxy.refresh set state = 'RUNNING', durable = true")
	if m := s.measure(service); m.Queued != 2 || m.Running != 0 {
		t.Errorf("lost, and to run again: %+v", m)
	}
}

func TestADatabaseThatIsLockedIsNotMeasured(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, service := connect(t, url, ""), newService(t, url)
	s.must("begin", "lock table rwproxy.refresh in access exclusive mode")
	_, err := service.Measure(t.Context(), s.conn.Config().Database)
	refused(t, err, "57014", "statement timeout")
}

func TestTheServiceCountsItsConnections(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, service := connect(t, url, ""), newService(t, url)
	s.measure(service)
	if busy, idle := service.Connections(); busy != 0 || idle != 1 {
		t.Errorf("%d busy, %d idle", busy, idle)
	}
}
