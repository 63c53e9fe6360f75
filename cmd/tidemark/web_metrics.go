package main

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/storage"
)

const (
	// ownSeries is how many databases have metrics of their own; ten thousand
	// of them would cost more memory than the databases do.
	ownSeries   = 200
	labelDB     = "db"
	labelOthers = "others" // stands for all other databases
)

// metrics are those of one process.
type metrics struct {
	registry *prometheus.Registry
	bucket   *storage.Metrics
	others   databaseMetrics

	mu   sync.Mutex
	room int // how many more databases may have their own
	own  map[string]*series
}

// series are the metrics of one database.
type series struct {
	prometheus.Registerer
	collectors []prometheus.Collector
	databaseMetrics
}

// databaseMetrics are those that the parts of one database keep.
type databaseMetrics struct {
	capture    *capture.Metrics
	compaction *compaction.Metrics
}

func newDatabaseMetrics(reg prometheus.Registerer) databaseMetrics {
	return databaseMetrics{capture: capture.NewMetrics(reg), compaction: compaction.NewMetrics(reg)}
}

// MustRegister remembers what is registered, so that it can be taken back.
func (s *series) MustRegister(all ...prometheus.Collector) {
	s.Registerer.MustRegister(all...)
	s.collectors = append(s.collectors, all...)
}

// sums registers what can be added up over databases.
type sums struct{ prometheus.Registerer }

// MustRegister leaves gauges out: one that many set says nothing.
func (s sums) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if _, ok := c.(prometheus.Gauge); !ok {
			s.Registerer.MustRegister(c)
		}
	}
}

// newMetrics lets so many databases have metrics of their own.
func newMetrics(room int) *metrics {
	reg := prometheus.NewRegistry()
	m := &metrics{registry: reg, bucket: storage.NewMetrics(reg), room: room, own: map[string]*series{}}
	m.others = newDatabaseMetrics(sums{labeled(reg, labelOthers)})
	v := currentVersions()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tidemark_build_info", Help: "What the process is made of; always 1.",
		ConstLabels: prometheus.Labels{"version": v.Tidemark, "go": v.Go, "sqlite": v.SQLite},
	})
	build.Set(1)
	reg.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// ownSeries is how many databases may have their own, which nobody sees without
// an address.
func (c Config) ownSeries() int {
	if c.Addr == "" {
		return 0
	}
	return ownSeries
}

func labeled(reg prometheus.Registerer, db string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{labelDB: db}, reg)
}

// capture returns the metrics for capturing the database at path, the same ones
// each time: its own, or, when there is no room for more, those of all others.
func (m *metrics) capture(path string) *capture.Metrics { return m.of(path).capture }

// compaction returns those for compacting its replica.
func (m *metrics) compaction(path string) *compaction.Metrics { return m.of(path).compaction }

func (m *metrics) of(path string) databaseMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.own[path]; ok {
		return s.databaseMetrics
	}
	if m.room == 0 {
		return m.others
	}
	m.room--
	s := &series{Registerer: labeled(m.registry, path)}
	s.databaseMetrics = newDatabaseMetrics(s)
	m.own[path] = s
	return s.databaseMetrics
}

// forget makes room when a database is let go.
func (m *metrics) forget(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.own[path]
	if !ok {
		return
	}
	for _, c := range s.collectors {
		s.Unregister(c)
	}
	delete(m.own, path)
	m.room++
}

// label is the value of the label db for the database at path.
func (m *metrics) label(path string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.own[path]; ok {
		return path
	}
	return labelOthers
}
