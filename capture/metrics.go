package capture

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what one Capturer does.
type Metrics struct {
	commits     prometheus.Counter
	pages       prometheus.Counter
	files       prometheus.Counter
	resyncs     prometheus.Counter
	bases       prometheus.Counter
	conversions prometheus.Counter
	checkpoints prometheus.Counter
	locks       prometheus.Counter
	held        prometheus.Histogram
	spoolBytes  prometheus.Gauge
	walFrames   prometheus.Gauge
	walOver     prometheus.Gauge
}

// NewMetrics registers the metrics with reg; nil gives working metrics that
// nobody sees. Give each database its own registerer, wrapped with its label.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "tidemark", Subsystem: "capture", Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Namespace: "tidemark", Subsystem: "capture", Name: name, Help: help})
	}
	return &Metrics{
		commits:     counter("commits_total", "Commits read from the write-ahead log."),
		pages:       counter("pages_total", "Pages written to LTX files."),
		files:       counter("files_total", "LTX files added to the spool."),
		resyncs:     counter("resyncs_total", "Comparisons of the whole database with the page sums."),
		bases:       counter("bases_total", "Full copies."),
		conversions: counter("conversions_total", "Switches from rollback journal to WAL."),
		checkpoints: counter("checkpoints_total", "PASSIVE checkpoints."),
		locks:       counter("write_locks_total", "Times the write lock was held to let the write-ahead log restart."),
		held: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: "tidemark", Subsystem: "capture", Name: "write_lock_seconds",
			Help:    "How long the write lock was held each time.",
			Buckets: []float64{.005, .01, .025, .05, .1},
		}),
		spoolBytes: gauge("spool_bytes", "Size of the files that wait for upload."),
		walFrames:  gauge("wal_frames", "Frames of the write-ahead log that are not copied back."),
		walOver:    gauge("wal_over_limit", "1 while the write-ahead log is above wal-limit (32MiB where that is 0) by a quarter."),
	}
}
