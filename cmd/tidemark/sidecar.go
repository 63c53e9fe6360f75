package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
)

// sidecar replicates several databases; none of them stops another.
type sidecar struct {
	databases []*replicated
	fleet     *fleet
	watcher   *capture.Watcher
	buckets   *buckets
	workshop  *workshop
	prover    *prover
	log       *slog.Logger
	started   time.Time
	fenced    func(error) // called when a replica is written by somebody else; nil: by nobody
}

func newSidecar(ctx context.Context, cfg Config, b *buckets, log *slog.Logger) (*sidecar, error) {
	s := &sidecar{buckets: b, log: log, started: time.Now()}
	s.prover = &prover{every: cfg.VerifyInterval, log: log, states: map[string]*proofState{}}
	s.watcher = capture.NewWatcher(log)
	var err error
	if s.workshop, err = newWorkshop(cfg.Scratch); err != nil {
		return nil, err
	}
	s.fleet = newFleet(cfg, s.buckets, s.workshop, s.watcher)
	for _, d := range cfg.Databases {
		d.warnRetention(log)
		if d.Dir != "" {
			if err := s.buckets.prepare(ctx, d.Replica); err != nil {
				return nil, err
			}
			log.Info("replicating", "dir", d.Dir, "pattern", d.Pattern, "to", d.Replica.where())
			continue
		}
		r, err := newReplicated(ctx, d, s.buckets, log)
		if err != nil {
			return nil, err
		}
		r.from.watcher, r.from.workshop = s.watcher, s.workshop
		r.log.Info("replicating", "to", r.remote.place.String(), "bucket", logged(r.remote.bucket))
		s.databases = append(s.databases, r)
	}
	return s, nil
}

// Run replicates until ctx ends or no database is left that may be replicated.
// It returns the errors of those that were given up.
func (s *sidecar) Run(ctx context.Context) error {
	watching, end := context.WithCancel(ctx)
	defer end()
	var group errgroup.Group
	group.Go(func() error { _ = s.watcher.Run(watching); return nil })
	group.Go(func() error {
		defer end()
		return s.each(func() error { return s.fleet.Run(ctx) }, func(d *replicated) error {
			err := d.Run(ctx)
			if ctx.Err() != nil && !isFenced(err) {
				return nil
			}
			s.log.Error("replication given up", "db", d.cfg.Path, "error", err)
			if s.fenced != nil {
				s.fenced(err)
			}
			return err
		})
	})
	return group.Wait()
}

// Protected waits until every database is on its replica.
func (s *sidecar) Protected(ctx context.Context) error {
	return s.each(func() error { return s.fleet.Protected(ctx) }, func(d *replicated) error { return d.Protected(ctx) })
}

// Finish brings the last commits of every database to its replica.
func (s *sidecar) Finish(ctx context.Context) error {
	return s.each(func() error { return s.fleet.Finish(ctx) }, func(d *replicated) error { return d.Finish(ctx) })
}

// Close gives all databases free. Those of the fleet are when it has run.
func (s *sidecar) Close() error {
	return s.each(s.workshop.Close, func(d *replicated) error { return d.Close() })
}

// each does something with the fleet and the same with all other databases, at
// once, and joins the errors.
func (s *sidecar) each(fleet func() error, do func(*replicated) error) error {
	errs := make([]error, len(s.databases))
	var group errgroup.Group
	group.Go(fleet)
	for i, d := range s.databases {
		group.Go(func() error {
			errs[i] = do(d)
			return nil
		})
	}
	return errors.Join(group.Wait(), errors.Join(errs...))
}

// Report is the state of all databases.
func (s *sidecar) Report() Report {
	r := Report{PID: os.Getpid(), Version: currentVersions().Tidemark, Started: s.started.UTC()}
	for _, d := range s.databases {
		r.Databases = append(r.Databases, d.Report())
	}
	r.Databases = append(r.Databases, s.fleet.Report()...)
	if s.prover.every > 0 {
		for i, d := range r.Databases {
			r.Databases[i].proven(s.prover.report(d.Path))
		}
	}
	return r
}

// Handler answers GET /status, and orders.
func (s *sidecar) Handler() http.Handler {
	mux := http.NewServeMux()
	s.orders(mux)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(s.Report()); err != nil {
			s.log.Debug("status answer was not read", "error", err)
		}
	})
	return mux
}
