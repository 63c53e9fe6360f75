package leaser

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/tidemark-io/tidemark/storage"
)

// Metrics tell what a Leaser does.
type Metrics struct {
	role       *prometheus.GaugeVec
	generation prometheus.Gauge
	remaining  prometheus.Gauge
	writes     *prometheus.CounterVec
	ended      *prometheus.CounterVec
}

// NewMetrics registers the metrics with reg, which takes them once; nil gives
// metrics that nobody sees.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	factory := promauto.With(reg)
	return &Metrics{
		role: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_lease_role",
			Help: "1 for the role of this process: primary, follower or cut off.",
		}, []string{"role"}),
		generation: factory.NewGauge(prometheus.GaugeOpts{
			Name: "tidemark_lease_generation",
			Help: "Generation of the lease that this process holds, 0 without.",
		}),
		remaining: factory.NewGauge(prometheus.GaugeOpts{
			Name: "tidemark_lease_remaining_seconds",
			Help: "Time for which this process may write unless it renews its lease, when it was last looked at.",
		}),
		writes: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_lease_writes_total",
			Help: "Writes of the lock, by their purpose and outcome.",
		}, []string{"purpose", "outcome"}),
		ended: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_lease_terms_ended_total",
			Help: "Terms of this process as the holder, by how they ended.",
		}, []string{"how"}),
	}
}

func (m *Metrics) wrote(k kind, err error) {
	outcome := "stored"
	switch {
	case errors.Is(err, storage.ErrPrecondition):
		outcome = "refused"
	case err != nil:
		outcome = "unknown"
	}
	m.writes.WithLabelValues(k.String(), outcome).Inc()
}

func (m *Metrics) observe(l *Leaser, now Reading) {
	for _, role := range []Role{Primary, Follower, CutOff} {
		value := 0.0
		if l.story.role.Shown() == role {
			value = 1
		}
		m.role.WithLabelValues(string(role)).Set(value)
	}
	generation := uint64(0)
	if l.term != nil {
		generation = l.term.generation
	}
	m.generation.Set(float64(generation))
	m.remaining.Set(l.protocol.remaining(now).Seconds())
}

// term counts the end of one.
func (m *Metrics) term(cause error) {
	how := "lost"
	if cause == nil {
		how = "released"
	}
	m.ended.WithLabelValues(how).Inc()
}

func (k kind) String() string {
	switch k {
	case take:
		return "take"
	case renew:
		return "renew"
	case release:
		return "release"
	}
	return "ask"
}

// unheard says that no answer came. A refusal is an answer.
func unheard(err error) bool {
	return err != nil && !errors.Is(err, storage.ErrPrecondition) && !errors.Is(err, storage.ErrNotFound)
}
