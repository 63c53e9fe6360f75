// Package e2e holds the end-to-end tests: the real tidemark binary beside real
// applications, against a directory and a real S3 server, with litestream and
// DuckDB as peers. Every test ends by restoring and comparing with the live
// database. Run with -tags e2e; `make tools` builds what they need.
package e2e
