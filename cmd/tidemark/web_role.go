package main

import (
	"github.com/prometheus/client_golang/prometheus"
)

// roleCollector shows the role of a node as metrics, at the time of a scrape.
type roleCollector struct {
	role         func() RoleReport
	is, degraded *prometheus.Desc
}

func newRoleCollector(role func() RoleReport) *roleCollector {
	return &roleCollector{
		role:     role,
		is:       prometheus.NewDesc("tidemark_role", "What this node is: 1 for its role, 0 for the others.", []string{"role"}, nil),
		degraded: prometheus.NewDesc("tidemark_role_degraded", "Whether the lease was not renewed for a while.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *roleCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.is, c.degraded} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *roleCollector) Collect(out chan<- prometheus.Metric) {
	r := c.role()
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for _, role := range []string{rolePrimary, roleFollower, roleCutOff} {
		out <- prometheus.MustNewConstMetric(c.is, prometheus.GaugeValue, flag(r.Role == role), role)
	}
	out <- prometheus.MustNewConstMetric(c.degraded, prometheus.GaugeValue, flag(r.Degraded))
}
