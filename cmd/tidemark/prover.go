package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
)

const (
	// A slice of a replica is so many files and bytes.
	proofFiles = 64
	proofBytes = 64 << 20
	// proofDatabase is the size of a database up to which it is read whole and
	// compared with the page sums; what differs is captured again.
	proofDatabase = 256 << 20
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
	report ProofReport
	round  []string // what is wrong with files of this round
}

// ProofReport is what was read again of a replica and its database.
type ProofReport struct {
	At     time.Time `json:"at"`                // of the newest slice
	Whole  time.Time `json:"whole_at,omitzero"` // when the whole replica had been read
	Files  int       `json:"files"`             // read by this process
	Wrong  []string  `json:"wrong,omitempty"`   // files, in the round before and in this one
	Differ string    `json:"differ,omitempty"`  // how the database differs from what was captured
	Since  time.Time `json:"wrong_since,omitzero"`
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

// prove goes around all databases until ctx ends, one after the other, so that
// each has its turn once in an interval.
func (s *sidecar) prove(ctx context.Context) error {
	if s.prover.every == 0 {
		return nil
	}
	for {
		paths := s.paths()
		if len(paths) == 0 {
			paths = []string{""} // look again later
		}
		for _, path := range paths {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(s.prover.every / time.Duration(len(paths))):
			}
			if d := s.find(path); path != "" && d != nil {
				s.prover.slice(ctx, path, d)
			}
		}
	}
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

// slice proves one slice.
func (p *prover) slice(ctx context.Context, path string, d orderable) {
	ctx, cancel := context.WithTimeout(ctx, max(p.every, time.Minute))
	defer cancel()
	p.mu.Lock()
	s := p.states[path]
	if s == nil {
		s = &proofState{}
		p.states[path] = s
	}
	at := s.cursor
	p.mu.Unlock()
	var found compaction.Proof
	err := d.withKeeper(ctx, func(ctx context.Context, k *keeper) (err error) {
		found, err = k.Prove(ctx, at, compaction.Slice{Files: proofFiles, Bytes: proofBytes})
		return err
	})
	differ := error(nil)
	if open, ok := d.(*replicated); ok && err == nil {
		differ = open.proveDatabase(ctx)
	}
	if err != nil || differ != nil && !errors.Is(differ, capture.ErrDiffers) {
		p.log.Debug("proof was put off", "db", path, "error", errors.Join(err, differ))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := s.report.bad()
	s.note(found, differ)
	switch now := s.report.bad(); {
	case before == "" && now != "":
		p.log.Error("what was read again is not as it must be", "db", path, "error", now)
	case before != "" && now == "":
		p.log.Info("what was read again is right", "db", path)
	}
}

// note adds what a slice found. What was wrong in a round counts until the end
// of the next one.
func (s *proofState) note(found compaction.Proof, differ error) {
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
	if r.Differ = ""; differ != nil {
		r.Differ = differ.Error()
	}
	switch {
	case r.bad() == "":
		r.Since = time.Time{}
	case r.Since.IsZero():
		r.Since = r.At
	}
}

// proveDatabase compares a database, unless it is large, with the page sums.
func (d *replicated) proveDatabase(ctx context.Context) error {
	info, err := os.Stat(d.cfg.Path)
	if err != nil || info.Size() > proofDatabase {
		return nil
	}
	_, err = d.snapshot(ctx, io.Discard)
	if errors.Is(err, capture.ErrNotOpen) {
		return nil
	}
	if errors.Is(err, capture.ErrDiffers) {
		d.doubt("a proof found that it differs from what was captured")
	}
	return err
}

// doubt has the database compared with what was captured of it.
func (d *replicated) doubt(reason string) {
	d.mu.Lock()
	p := d.parts
	d.mu.Unlock()
	if p != nil {
		p.capturer.Doubt(reason)
	}
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
