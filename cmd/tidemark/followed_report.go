package main

import (
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/quarantine"
)

// Report is the state of the database while the node is not the primary.
func (f *followed) Report() DatabaseReport {
	f.mu.Lock()
	stands, tail, follower, err, since := f.stands, f.tail, f.follower, f.err, f.since
	f.mu.Unlock()
	r := DatabaseReport{Path: f.cfg.Path, Replica: f.remote.place.String(), State: stateStarting}
	switch stands {
	case absent, fresh:
		r.State = stateWaiting
	case ahead:
		r.State = stateWaiting
		r.Captured, r.Uploaded, r.SpoolFiles = position(tail.End), position(tail.Base), len(tail.Files)
	case inPlace:
		r.State, r.Captured, r.Uploaded = stateFollowing, position(tail.End), position(tail.End)
	case following:
		s := follower.Status()
		r.State, r.Captured = stateFollowing, position(s.Pos)
		r.Uploaded = Position{TXID: uint64(max(s.Newest, s.Pos.TXID))}
		if lag := s.Lag(time.Now()); s.Newest > s.Pos.TXID || lag > f.node.cfg.HA.FollowInterval {
			r.LagSeconds = max(0, lag.Seconds())
		}
		if s.LastError != nil {
			r.State, r.Error, r.FailingSince = stateFailing, s.LastError.Error(), s.ErrorSince
		}
		if !s.Waiting.IsZero() && time.Since(s.Waiting) > lockPatience && r.Error == "" {
			r.State, r.FailingSince = stateFailing, s.Waiting
			r.Error = "readers of the copy do not come to their end, so that it falls behind"
		}
	}
	if refused := f.refusal(); err == nil && refused.err != nil {
		err, since = refused.err, refused.since
	}
	if err != nil {
		r.State, r.Error, r.FailingSince = stateFailing, err.Error(), since
	}
	r.Quarantined = waitingAside(f.cfg.Path)
	return r
}

// waitingAside is how many transactions are set aside and not acknowledged.
func waitingAside(path string) uint64 {
	_, transactions, err := quarantine.Pending(quarantine.Dir(capture.StateDir(path)))
	if err != nil {
		return 0
	}
	return transactions
}

// isLocked tells whether the database cannot be served, but nobody can write to
// it either.
func (f *followed) isLocked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil && f.copy != nil && f.node.cfg.HA.FenceLocal == fenceLock
}
