package main

import (
	"net/http"

	"github.com/tidemark-io/tidemark/internal/web"
)

// problem says why the database is not as it should be, if so. A database that
// does not exist yet is no problem.
func (r DatabaseReport) problem() (web.Problem, bool) {
	p := web.Problem{Name: r.Path, Error: r.Error, Since: r.FailingSince}
	switch {
	case r.State == stateFailing, r.State == stateFenced:
	case r.State == stateStarting:
		p.Error = "starting"
	case r.State == stateReplicating && r.Uploaded.TXID == 0:
		p.Error = "no full copy is on the replica yet"
	default:
		return p, false
	}
	return p, true
}

// problems are those of all databases.
func (r Report) problems() []web.Problem {
	var all []web.Problem
	for _, d := range r.Databases {
		if p, bad := d.problem(); bad {
			all = append(all, p)
		}
	}
	return all
}

// webHandler answers over HTTP.
func (s *sidecar) webHandler() http.Handler {
	return web.Handler(web.Views{
		Problems: func() []web.Problem { return s.Report().problems() },
		Status:   func() any { return s.Report() },
		Metrics:  s.buckets.metrics.registry,
	})
}
