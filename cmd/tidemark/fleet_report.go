package main

import (
	"context"
	"io/fs"
	"log/slog"
	"syscall"
	"time"
)

// Report is the state of the databases that were found, and of the directories
// that cannot be searched.
func (f *fleet) Report() []DatabaseReport {
	var all []DatabaseReport
	for _, d := range f.folders {
		if r, bad := d.report(); bad {
			all = append(all, r)
		}
	}
	for _, s := range f.all() {
		all = append(all, s.Report())
	}
	return all
}

// report is what is wrong with the directory, if anything.
func (d *folder) report() (DatabaseReport, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := DatabaseReport{Path: d.cfg.Dir, Replica: d.cfg.Replica.where(), State: stateFailing}
	if d.err != nil {
		r.Error, r.FailingSince = d.err.Error(), d.since
	}
	return r, d.err != nil
}

// Report is the state of the database now. One that is parked is replicated as
// well as one that is open.
func (s *slot) Report() DatabaseReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := DatabaseReport{Path: s.path, Replica: s.replica, State: stateStarting}
	if s.open != nil {
		r = s.open.Report()
	}
	if p := s.parked; p != nil {
		r.Captured, r.SpoolFiles, r.State = position(p.Pos()), p.Waiting(), stateReplicating
		if r.Captured.TXID == 0 && !hasContent(s.path) {
			r.State = stateWaiting
		}
	}
	if r.Uploaded.TXID < uint64(s.last.uploaded.TXID) {
		r.Uploaded = position(s.last.uploaded)
	}
	if r.Captured.TXID < r.Uploaded.TXID {
		r.Captured = r.Uploaded
	}
	r.Compaction = s.folder.fleet.tender.status(s)
	r.UploadedBytes += s.last.bytes
	r.Resyncs += s.last.resyncs
	r.WriteLocks += s.last.locks
	if t := s.last.trouble; t != nil && s.open == nil {
		r.State, r.Error, r.FailingSince = stateFailing, t.err.Error(), t.since
		r.LagSeconds = time.Since(t.since).Seconds()
		if isFenced(t.err) {
			r.State = stateFenced
		}
	}
	return r
}

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// discreet is a log that passes on no trouble while it is muted.
type discreet struct {
	slog.Handler
	muted func() bool
}

// Enabled implements slog.Handler.
func (h discreet) Enabled(ctx context.Context, level slog.Level) bool {
	return (level < slog.LevelWarn || !h.muted()) && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h discreet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return discreet{h.Handler.WithAttrs(attrs), h.muted}
}

// WithGroup implements slog.Handler.
func (h discreet) WithGroup(name string) slog.Handler {
	return discreet{h.Handler.WithGroup(name), h.muted}
}
