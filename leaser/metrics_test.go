package leaser_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
)

// sum adds up the values of a metric, or those that have a label's value.
func sum(t *testing.T, reg *prometheus.Registry, name, label string) (total float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			counts := f.GetName() == name && label == ""
			for _, l := range m.GetLabel() {
				counts = counts || f.GetName() == name && l.GetValue() == label
			}
			if counts {
				total += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return total
}

func TestMetricsTellTheRole(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		m, reg := prepare(t, b, "a"), prometheus.NewRegistry()
		l := leaser.New(m.bucket, m.node, leaser.DefaultConfig(), leaser.Options{Clock: m.clock, Metrics: leaser.NewMetrics(reg)})
		ctx, end := context.WithCancel(t.Context())
		m.done.Go(func() error { return l.Elect(ctx, leaser.Roles{Standby: m.standby, Primary: m.primary}) })
		pass(30 * time.Second)
		if sum(t, reg, "tidemark_lease_role", "primary") != 1 || sum(t, reg, "tidemark_lease_role", "follower") != 0 {
			t.Error("the role is not that of a primary")
		}
		if g := sum(t, reg, "tidemark_lease_generation", ""); g != 1 {
			t.Errorf("generation %v", g)
		}
		if left := sum(t, reg, "tidemark_lease_remaining_seconds", ""); left < 4 || left > 10 {
			t.Errorf("%v s remain", left)
		}
		if n := sum(t, reg, "tidemark_lease_writes_total", "renew"); n < 6 || n > 10 {
			t.Errorf("%v renewals", n)
		}
		end()
		_ = m.done.Wait()
		if sum(t, reg, "tidemark_lease_role", "primary") != 0 || sum(t, reg, "tidemark_lease_terms_ended_total", "released") != 1 {
			t.Error("the end of the term is not told")
		}
		_ = m.node.Close()
	})
}
