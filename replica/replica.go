// Package replica is the remote copy of one database: all its LTX files under
// one prefix of a bucket. It knows their keys, uploads what a Source hands
// over, plans which files lead to a state or a time, restores that state, and
// verifies that all files lead where they say.
//
// What is on the bucket is the truth. The package never looks at a live
// database and knows nothing of how files are captured or merged.
package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// ErrNoBackup is returned when complete, successful listings showed that the
// replica holds no file at all.
var ErrNoBackup = errors.New("no backup found")

// Replica is the remote copy of one database. It is safe for concurrent use.
type Replica struct {
	bucket storage.Bucket
	layout Layout
	log    *slog.Logger
}

// New returns the replica whose keys are relative to b.
func New(b storage.Bucket, l Layout, log *slog.Logger) *Replica {
	return &Replica{bucket: b, layout: l, log: log}
}

// String returns the URL without secrets.
func (r *Replica) String() string { return r.bucket.String() }

// Key returns the key of a file.
func (r *Replica) Key(f ltx.FileInfo) string { return r.layout.Key(f.Level, f.Min, f.Max) }

// Files returns the files of one level, sorted by Min, then Max.
func (r *Replica) Files(ctx context.Context, level int) ([]ltx.FileInfo, error) {
	return collect(r.list(ctx, r.layout.levelPrefix(level)))
}

// Inventory returns the files of all levels, sorted by Level, Min, Max. A file
// that is merged into a higher level meanwhile is seen at least once.
func (r *Replica) Inventory(ctx context.Context) ([]ltx.FileInfo, error) {
	return collect(r.list(ctx, r.layout.prefix()))
}

// Open reads a file or a part of it; the caller closes the reader.
func (r *Replica) Open(ctx context.Context, f ltx.FileInfo, part storage.Range) (io.ReadCloser, error) {
	body, _, err := r.bucket.Get(ctx, r.Key(f), part)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", r.Key(f), err)
	}
	return body, nil
}

// list yields the files whose keys start with prefix; names that are no keys
// of ours are passed over.
func (r *Replica) list(ctx context.Context, prefix string) iter.Seq2[ltx.FileInfo, error] {
	return func(yield func(ltx.FileInfo, error) bool) {
		for object, err := range r.bucket.List(ctx, prefix, "") {
			if err != nil {
				yield(ltx.FileInfo{}, fmt.Errorf("list %s under %s: %w", prefix, r, err))
				return
			}
			f, ok := r.layout.ParseKey(object.Key)
			if !ok {
				continue
			}
			f.Size, f.ModTime = object.Size, object.ModTime
			if !yield(f, nil) {
				return
			}
		}
	}
}

func collect(files iter.Seq2[ltx.FileInfo, error]) ([]ltx.FileInfo, error) {
	var all []ltx.FileInfo
	for f, err := range files {
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}
