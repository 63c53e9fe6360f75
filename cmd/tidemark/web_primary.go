package main

import (
	"encoding/json"
	"io"
	"net/http"
)

// primaryHandler answers GET /primary, with 200 while this node is the primary
// and 503 with its role otherwise, and leaves all else to others.
func primaryHandler(others http.Handler, role func() RoleReport) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", others)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		others.ServeHTTP(w, r) // the list of pages
		_, _ = io.WriteString(w, "/primary\n")
	})
	mux.HandleFunc("GET /primary", func(w http.ResponseWriter, _ *http.Request) {
		r := role()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if r.Role != rolePrimary {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(r) // a client that is gone does not read it
	})
	return mux
}
