package main

import (
	"github.com/prometheus/client_golang/prometheus"
)

// reportCollector shows a Report as metrics, at the time of a scrape.
type reportCollector struct {
	report func() Report
	label  func(path string) string
	descs  map[string]*prometheus.Desc // by short name
}

func newReportCollector(report func() Report, label func(string) string) *reportCollector {
	c := &reportCollector{report: report, label: label, descs: map[string]*prometheus.Desc{}}
	for name, help := range map[string]string{
		"databases": "Databases by their state.",
		"ready":     "Whether /readyz answers 200.",
	} {
		c.descs[name] = prometheus.NewDesc("tidemark_"+name, help, map[string][]string{"databases": {"state"}}[name], nil)
	}
	for name, help := range map[string]string{
		"database_failing":         "Databases that are not as they should be: 0 or 1 for each.",
		"upload_lag_seconds":       "Age of the oldest commit that is not on the replica; of several databases the largest.",
		"spool_bytes":              "Size of the files that wait for upload.",
		"spool_files":              "Files that wait for upload.",
		"captured_txid":            "Transaction that is captured.",
		"uploaded_txid":            "Transaction that is on the replica.",
		"proof_wrong":              "Databases of which something that was read again is not as it must be: 0 or 1 for each.",
		"quarantined_transactions": "Transactions that this node set aside because they are not part of the replica, and nobody acknowledged.",
		"compaction_failing":       "Databases whose replica is not merged, or whose expired files are not deleted: 0 or 1 for each.",
	} {
		c.descs[name] = prometheus.NewDesc("tidemark_"+name, help, []string{labelDB}, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *reportCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		descs <- d
	}
}

// figures are those of one database, or of several together.
type figures struct {
	failing, lag, spoolBytes, spoolFiles float64
	captured, uploaded, compaction       float64
	wrong, quarantined                   float64
}

func (f *figures) add(d DatabaseReport) {
	if _, bad := d.problem(); bad {
		f.failing++
	}
	if d.Compaction != nil && d.Compaction.Error != "" {
		f.compaction++
	}
	if d.Proof.bad() != "" {
		f.wrong++
	}
	f.quarantined += float64(d.Quarantined)
	f.lag = max(f.lag, d.LagSeconds)
	f.spoolBytes += float64(d.SpoolBytes)
	f.spoolFiles += float64(d.SpoolFiles)
	f.captured, f.uploaded = float64(d.Captured.TXID), float64(d.Uploaded.TXID)
}

// Collect implements prometheus.Collector.
func (c *reportCollector) Collect(out chan<- prometheus.Metric) {
	states := map[string]float64{
		stateStarting: 0, stateWaiting: 0, stateReplicating: 0, stateFailing: 0, stateFenced: 0, stateFollowing: 0,
	}
	all := map[string]*figures{}
	ready := 1.0
	for _, d := range c.report().Databases {
		states[d.State]++
		label := c.label(d.Path)
		if all[label] == nil {
			all[label] = &figures{}
		}
		all[label].add(d)
		if all[label].failing > 0 {
			ready = 0
		}
	}
	out <- c.gauge("ready", ready)
	for state, n := range states {
		out <- c.gauge("databases", n, state)
	}
	for label, f := range all {
		out <- c.gauge("database_failing", f.failing, label)
		out <- c.gauge("proof_wrong", f.wrong, label)
		out <- c.gauge("compaction_failing", f.compaction, label)
		out <- c.gauge("quarantined_transactions", f.quarantined, label)
		out <- c.gauge("upload_lag_seconds", f.lag, label)
		out <- c.gauge("spool_bytes", f.spoolBytes, label)
		out <- c.gauge("spool_files", f.spoolFiles, label)
		if label != labelOthers { // transactions of different databases do not add up
			out <- c.gauge("captured_txid", f.captured, label)
			out <- c.gauge("uploaded_txid", f.uploaded, label)
		}
	}
}

func (c *reportCollector) gauge(name string, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, value, labels...)
}
