package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/socket"
)

// replicateAndCrash commits for a while and kills the sidecar half way.
func (d *demonstration) replicateAndCrash(ctx context.Context) error {
	sidecar, err := d.startSidecar()
	if err != nil {
		return err
	}
	defer sidecar.kill()
	writer, err := d.startWriter()
	if err != nil {
		return err
	}
	defer writer.kill()

	begin := time.Now()
	if err := d.watch(ctx, writer, begin, d.length/2); err != nil {
		return err
	}
	sidecar.kill()
	d.say("%6.1fs  sidecar killed with SIGKILL, the writer goes on", time.Since(begin).Seconds())
	second, err := d.startSidecar()
	if err != nil {
		return err
	}
	defer second.kill()
	d.say("%6.1fs  sidecar started again", time.Since(begin).Seconds())
	if err := d.watch(ctx, writer, begin, d.length); err != nil {
		return err
	}
	if err := writer.stop(); err != nil {
		return fmt.Errorf("demo writer: %w", err)
	}
	d.say("%6.1fs  writer stopped after %d commits", time.Since(begin).Seconds(), writer.commits.Load())
	if err := second.stop(); err != nil {
		return fmt.Errorf("demo sidecar: %w", err)
	}
	d.say("%6.1fs  sidecar stopped, last commit uploaded", time.Since(begin).Seconds())
	return nil
}

// watch prints where writer and sidecar are until the time is over.
func (d *demonstration) watch(ctx context.Context, w *demoProcess, begin time.Time, until time.Duration) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	over := time.After(time.Until(begin.Add(until)))
	for {
		select {
		case <-ctx.Done():
			return errors.New("demo interrupted")
		case <-over:
			return nil
		case <-w.ended:
			return errors.New("the demo writer ended early")
		case <-tick.C:
			d.say("%6.1fs  commits %-6d %s", time.Since(begin).Seconds(), w.commits.Load(), d.position(ctx))
		}
	}
}

// position asks the sidecar over its socket.
func (d *demonstration) position(ctx context.Context) string {
	paths, _ := filepath.Glob(filepath.Join(d.dir, "tidemark", "*.sock"))
	for _, path := range paths {
		var r Report
		if socket.Get(ctx, path, "/status", &r) != nil || len(r.Databases) == 0 {
			continue
		}
		db := r.Databases[0]
		return fmt.Sprintf("captured txid %-6d replicated txid %-6d lag %s",
			db.Captured.TXID, db.Uploaded.TXID, showLag(db.LagSeconds))
	}
	return "the sidecar does not answer yet"
}

// demoProcess is another process of this binary.
type demoProcess struct {
	process *os.Process
	commits atomic.Int64 // of a writer
	ended   chan struct{}
	group   errgroup.Group
}

// stop ends the process in order and returns how that went.
func (p *demoProcess) stop() error {
	if err := p.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.group.Wait()
}

// kill ends it at once; it may have ended already.
func (p *demoProcess) kill() {
	_ = p.process.Kill()
	_ = p.group.Wait()
}
