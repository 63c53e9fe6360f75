// Package bench measures tidemark beside litestream: the same databases, the
// same S3 server, one run, ratios printed. It fails when a replica does not
// restore, never because of a figure. Run with -tags bench and -v.
package bench
