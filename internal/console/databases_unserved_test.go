package console

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
)

// Without the series no alert could tell.
func TestADatabaseThatCannotBeServedIsNotUp(t *testing.T) {
	t.Parallel()
	service, err := flowstate.NewService("postgres://127.0.0.1:1/postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	registry := prometheus.NewRegistry()
	registry.MustRegister(newDatabases(t.Context(), func() []string { return nil },
		func() []string { return []string{"foreign", "foreign"} }, service, zap.NewNop()))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "rwproxy_database_up" {
			continue
		}
		metrics := family.GetMetric()
		if len(metrics) != 1 || metrics[0].GetLabel()[0].GetValue() != "foreign" || metrics[0].GetGauge().GetValue() != 0 {
			t.Errorf("got %v", metrics)
		}
		return
	}
	t.Error("nothing is shown of the database")
}
