package replica

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/tidemark-io/tidemark/ltx"
)

const (
	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = 10 * time.Second
)

// UploaderOptions adjusts an Uploader; zero fields mean the defaults.
type UploaderOptions struct {
	MinBackoff time.Duration // first pause after an error, default 100 ms
	MaxBackoff time.Duration // longest pause, default 10 s
	// Stored, if not nil, is called for each file that is safely on the bucket
	// while the source has it still, as long as it takes.
	Stored func(Pending, ltx.FileInfo)
	// Uploaded, if not nil, is called after each file that is safely on the
	// bucket, with what it is there and the position after it, from the
	// uploading goroutine; it must not block.
	Uploaded func(ltx.FileInfo, ltx.Pos)
}

// UploadStatus is the state of an Uploader.
type UploadStatus struct {
	Pos        ltx.Pos   // position after the last file uploaded by this process; zero: none yet
	At         time.Time // when that was
	Pending    bool      // a file is being uploaded or waits for the next attempt
	LastError  error     // of the outage that lasts; nil: none
	ErrorSince time.Time // when that outage began
	Uploads    int64     // files uploaded
	Bytes      int64     // their size
}

// Uploader moves files from a Source to the replica: strictly in order, one in
// flight, trying for ever. ErrFenced is the only failure that ends it.
type Uploader struct {
	replica *Replica
	source  Source
	options UploaderOptions
	log     *slog.Logger
	turn    chan struct{} // capacity 1: held while a file is handled

	mu     sync.Mutex
	status UploadStatus
}

// NewUploader returns an uploader that has not started.
func NewUploader(r *Replica, s Source, o UploaderOptions) *Uploader {
	if o.MinBackoff == 0 {
		o.MinBackoff = defaultMinBackoff
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = defaultMaxBackoff
	}
	return &Uploader{replica: r, source: s, options: o, log: r.log, turn: make(chan struct{}, 1)}
}

// Run uploads until ctx ends and returns its cause, or ErrFenced.
func (u *Uploader) Run(ctx context.Context) error {
	for {
		if err := u.Flush(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-u.source.Changed():
		}
	}
}

// Flush uploads until the source has nothing left, whatever errors come
// between. It may be called while Run runs. It returns the cause of ctx's end,
// or ErrFenced.
func (u *Uploader) Flush(ctx context.Context) error {
	pause := &backoff.ExponentialBackOff{
		InitialInterval: u.options.MinBackoff, MaxInterval: u.options.MaxBackoff,
		Multiplier: 2, RandomizationFactor: 0.5,
	}
	pause.Reset()
	for {
		more, err := u.step(ctx)
		switch {
		case errors.Is(err, ErrFenced):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && !more:
			return nil
		case err == nil:
			pause.Reset()
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(pause.NextBackOff(), u.options.MaxBackoff)):
		}
	}
}

// Status returns the state now.
func (u *Uploader) Status() UploadStatus {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status
}

// step uploads the oldest file, if there is one, while no one else does.
func (u *Uploader) step(ctx context.Context) (more bool, err error) {
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
	p, ok := u.source.Next()
	u.note(func(s *UploadStatus) { s.Pending = ok })
	if !ok {
		return false, nil
	}
	info, err := u.upload(ctx, p)
	if err != nil {
		if ctx.Err() == nil {
			u.failed(p, err)
		}
		return true, err
	}
	u.succeeded(p, info)
	return true, nil
}

func (u *Uploader) upload(ctx context.Context, p Pending) (ltx.FileInfo, error) {
	info, err := u.replica.Upload(ctx, p)
	if err != nil {
		return ltx.FileInfo{}, err
	}
	if u.options.Stored != nil {
		u.options.Stored(p, info)
	}
	return info, u.source.Done(p)
}

// failed remembers the error and logs the first one of an outage.
func (u *Uploader) failed(p Pending, err error) {
	first := false
	u.note(func(s *UploadStatus) {
		first = s.LastError == nil
		s.LastError = err
		if first {
			s.ErrorSince = time.Now()
		}
	})
	if first && !errors.Is(err, ErrFenced) {
		u.log.Warn("upload failed, trying on", "file", u.replica.Key(p.Info), "error", err)
	}
}

func (u *Uploader) succeeded(p Pending, info ltx.FileInfo) {
	var before UploadStatus
	u.note(func(s *UploadStatus) {
		before = *s
		s.Pos, s.At = p.Pos, time.Now()
		s.LastError, s.ErrorSince = nil, time.Time{}
		s.Uploads++
		s.Bytes += info.Size
	})
	if before.LastError != nil {
		u.log.Info("upload recovered", "file", u.replica.Key(p.Info),
			"after", time.Since(before.ErrorSince).Round(time.Millisecond), "last_error", before.LastError)
	}
	if u.options.Uploaded != nil {
		u.options.Uploaded(info, p.Pos)
	}
}

func (u *Uploader) note(change func(*UploadStatus)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.status)
}
