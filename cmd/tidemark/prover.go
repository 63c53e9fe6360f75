package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
)

const (
	// A slice of a replica is so many files and bytes.
	proofFiles = 64
	proofBytes = 64 << 20
	// proofDatabase is the size of a slice of a database, which is compared with
	// the page sums; what differs is captured again.
	proofDatabase = 64 << 20
	// proofAgain is how soon at least it is looked whether what differed was
	// mended.
	proofAgain = 10 * time.Second
)

// prover reads replicas and databases again, a slice of each once in an
// interval, and remembers what is wrong.
type prover struct {
	every time.Duration // 0: never
	log   *slog.Logger

	mu     sync.Mutex
	states map[string]*proofState // by path
}

// proofState is how far the proof of a database is.
type proofState struct {
	cursor compaction.Cursor
	page   uint32 // of the database, the next one
	report ProofReport
	round  []string // what is wrong with files of this round
}

// ProofReport is what was read again of a replica and its database.
type ProofReport struct {
	At       time.Time `json:"at"`                         // of the newest slice
	Whole    time.Time `json:"whole_at,omitzero"`          // when the whole replica had been read
	Files    int       `json:"files"`                      // read by this process
	Compared time.Time `json:"database_whole_at,omitzero"` // when the whole database had been compared
	Wrong    []string  `json:"wrong,omitempty"`            // files, in the round before and in this one
	Differ   string    `json:"differ,omitempty"`           // how the database differs from what was captured
	Since    time.Time `json:"wrong_since,omitzero"`
}

// bad is what is wrong; empty: nothing.
func (r *ProofReport) bad() string {
	switch {
	case r == nil:
		return ""
	case r.Differ != "":
		return r.Differ
	case len(r.Wrong) > 0:
		return fmt.Sprintf("damaged on the replica, a snapshot stands in where one can: %s (%d in all)", r.Wrong[0], len(r.Wrong))
	}
	return ""
}

// provable is a database whose proof goes on in slices.
type provable interface {
	orderable
	// prove compares so many bytes of pages of the database from one on with what
	// was captured, and returns the page to go on with; 0: it was the last one.
	prove(ctx context.Context, first uint32, bytes int64) (next uint32, err error)
}

// prove goes around all databases until ctx ends, one after the other, so that
// each has its turn once in an interval.
func (s *sidecar) prove(ctx context.Context) error {
	if s.prover.every == 0 {
		return nil
	}
	for {
		paths := s.paths()
		s.prover.keep(paths)
		if len(paths) == 0 {
			paths = []string{""} // look again later
		}
		for _, path := range paths {
			differs, err := s.proveAfter(ctx, s.prover.every/time.Duration(len(paths)), path)
			if differs {
				_, err = s.proveAfter(ctx, min(s.prover.every, proofAgain), path)
			}
			if err != nil {
				return err
			}
		}
	}
}

// proveAfter waits, then proves a slice of a database if it is still there, and
// tells whether it differs.
func (s *sidecar) proveAfter(ctx context.Context, wait time.Duration, path string) (differs bool, err error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-timer.C:
	}
	d, ok := s.find(path).(provable)
	return ok && s.prover.slice(ctx, path, d), nil
}

// paths are those of all databases.
func (s *sidecar) paths() []string {
	var paths []string
	for _, d := range s.databases {
		paths = append(paths, d.cfg.Path)
	}
	for _, d := range s.fleet.all() {
		paths = append(paths, d.path)
	}
	return paths
}

// keep forgets what is known of all other databases.
func (p *prover) keep(paths []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	states := make(map[string]*proofState, len(paths))
	for _, path := range paths {
		if s := p.states[path]; s != nil {
			states[path] = s
		}
	}
	p.states = states
}

// slice proves a slice of a database, then of its replica, whatever the other
// one is up to. It tells whether the database differs.
func (p *prover) slice(ctx context.Context, path string, d provable) (differs bool) {
	ctx, cancel := context.WithTimeout(ctx, max(p.every, time.Minute))
	defer cancel()
	p.mu.Lock()
	s := p.states[path]
	if s == nil {
		s = &proofState{}
		p.states[path] = s
	}
	page, at := s.page, s.cursor
	p.mu.Unlock()
	next, err := d.prove(ctx, page, proofDatabase)
	differs = errors.Is(err, capture.ErrDiffers)
	p.update(path, s, err, func() bool { return s.compared(next, err) })
	var found compaction.Proof
	err = d.withKeeper(ctx, func(ctx context.Context, k *keeper) (err error) {
		found, err = k.Prove(ctx, at, compaction.Slice{Files: proofFiles, Bytes: proofBytes})
		return err
	})
	p.update(path, s, err, func() bool { return err == nil && s.read(found) })
	return differs
}

// update adds the outcome of a slice, and tells when it changes what is known.
// note returns false if there is none.
func (p *prover) update(path string, s *proofState, err error, note func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := s.report.bad()
	if !note() {
		p.log.Debug("proof was put off", "db", path, "error", err)
		return
	}
	now := s.report.bad()
	switch {
	case now == "":
		s.report.Since = time.Time{}
	case before == "":
		s.report.Since = s.report.At
	}
	switch {
	case before == "" && now != "":
		p.log.Error("what was read again is not as it must be", "db", path, "error", now)
	case before != "" && now == "":
		p.log.Info("what was read again is right", "db", path)
	}
}

// compared adds what a slice of the database showed. One that differs is
// compared again from there, when that has been mended.
func (s *proofState) compared(next uint32, err error) bool {
	r := &s.report
	if err != nil && !errors.Is(err, capture.ErrDiffers) {
		return false
	}
	r.At, s.page = time.Now().UTC(), next
	if r.Differ = ""; err != nil {
		r.Differ = err.Error()
	} else if next == 0 {
		r.Compared = r.At
	}
	return true
}

// read adds what a slice of the replica showed. What was wrong in a round counts
// until the end of the next one.
func (s *proofState) read(found compaction.Proof) bool {
	r := &s.report
	r.At, s.cursor = time.Now().UTC(), found.Next
	r.Files += found.Files
	for _, f := range found.Damaged {
		s.round = append(s.round, f.Error())
		r.Wrong = append(r.Wrong, f.Error())
	}
	if found.Next == (compaction.Cursor{}) {
		r.Whole, r.Wrong, s.round = r.At, s.round, nil
	}
	return true
}

// report is what is known of a database; nil: nothing.
func (p *prover) report(path string) *ProofReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[path]
	if s == nil || s.report.At.IsZero() {
		return nil
	}
	r := s.report
	return &r
}

// proven adds what was read again to the report of a database that seems well.
func (r *DatabaseReport) proven(p *ProofReport) {
	r.Proof = p
	if bad := p.bad(); bad != "" && r.State == stateReplicating {
		r.State, r.Error, r.FailingSince = stateFailing, bad, p.Since
	}
}
