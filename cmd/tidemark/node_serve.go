package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tidemark-io/tidemark/internal/web"
)

// serve answers where the node is asked, until ctx ends.
func (n *node) serve(ctx context.Context, l listeners) error {
	if l.web != nil {
		n.buckets.metrics.registry.MustRegister(newReportCollector(n.Report, n.buckets.metrics.label), newRoleCollector(n.Role))
	}
	views := web.Views{
		Problems: n.problems,
		Status:   func() any { return n.Report() },
		Metrics:  n.buckets.metrics.registry,
	}
	return l.serve(ctx, n.Handler(), primaryHandler(web.Handler(views), n.Role), n.log)
}

// problems are those of the databases, and not to know who is the primary.
func (n *node) problems() []web.Problem {
	r := n.Report()
	all := append(r.problems(), n.troubles.now(n.leaser.Status())...)
	if r.Lease.Role == roleCutOff {
		all = append(all, web.Problem{Name: "lease", Since: r.Lease.Since, Error: orDash(r.Lease.Error)})
	}
	return all
}

// Handler answers GET /status, and orders: those about a database go to the
// sidecar of the term.
func (n *node) Handler() http.Handler {
	mux := http.NewServeMux()
	n.orders(mux)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { web.WriteJSON(w, n.Report()) })
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		t := n.term
		n.mu.Unlock()
		if t != nil {
			t.sidecar.Handler().ServeHTTP(w, r)
			return
		}
		if !n.knows(r.URL.Query().Get("db")) {
			http.Error(w, "this sidecar does not replicate that database", http.StatusNotFound)
			return
		}
		role := n.Role()
		text := fmt.Sprintf("node %s is no primary (%s); ask the primary", role.Node, role.Role)
		if role.Holder != "" {
			text += fmt.Sprintf(", node %s %s", role.Holder, role.Primary)
		}
		if err := json.NewEncoder(w).Encode(answer{Error: text}); err != nil {
			n.log.Debug("the answer to an order was not read", "error", err)
		}
	})
	return mux
}

// knows tells whether the database at a path is one of this node.
func (n *node) knows(path string) bool {
	for _, f := range n.databases {
		if sameFile(f.cfg.Path, path) {
			return true
		}
	}
	return false
}
