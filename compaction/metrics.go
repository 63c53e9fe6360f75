package compaction

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/tidemark-io/tidemark/ltx"
)

// Metrics counts what one Worker does.
type Metrics struct {
	files       prometheus.Counter
	bytes       prometheus.Counter
	snapshots   prometheus.Counter
	snapshotEnd prometheus.Gauge
	expired     prometheus.Counter
	holes       prometheus.Gauge
}

// NewMetrics registers the metrics with reg; nil gives working metrics that
// nobody sees. Give each database its own registerer, wrapped with its label.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "tidemark", Subsystem: "compaction", Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Namespace: "tidemark", Subsystem: "compaction", Name: name, Help: help})
	}
	return &Metrics{
		files:       counter("files_total", "Files merged."),
		bytes:       counter("bytes_total", "Size of the files merged."),
		snapshots:   counter("snapshots_total", "Snapshots made."),
		snapshotEnd: gauge("snapshot_timestamp_seconds", "When the newest snapshot of this process was stored."),
		expired:     counter("expired_total", "Files deleted by retention."),
		holes:       gauge("holes", "Ranges of transactions that are missing and stop a level."),
	}
}

func (m *Metrics) merged(f ltx.FileInfo) {
	m.files.Inc()
	m.bytes.Add(float64(f.Size))
}

func (m *Metrics) snapshot(f ltx.FileInfo) {
	m.snapshots.Inc()
	m.snapshotEnd.Set(float64(f.ModTime.Unix()))
}

func (m *Metrics) deleted(files []ltx.FileInfo) { m.expired.Add(float64(len(files))) }
