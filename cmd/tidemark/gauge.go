package main

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
)

// gauge shows how far a snapshot is.
type gauge struct {
	compaction.Snapshotter
	begun   atomic.Int64 // snapshots so far
	written atomic.Int64 // bytes of the one that was begun last
	whole   atomic.Bool  // it is written
}

// Snapshot implements compaction.Snapshotter.
func (g *gauge) Snapshot(ctx context.Context, w io.Writer) (ltx.Pos, error) {
	g.whole.Store(false)
	g.written.Store(0)
	g.begun.Add(1)
	pos, err := g.Snapshotter.Snapshot(ctx, gauged{w, g})
	g.whole.Store(err == nil)
	return pos, err
}

type gauged struct {
	io.Writer
	gauge *gauge
}

// Write implements io.Writer.
func (w gauged) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.gauge.written.Add(int64(n))
	return n, err
}

// keeper is a worker and the gauge of its snapshots.
type keeper struct {
	*compaction.Worker
	gauge *gauge
}
