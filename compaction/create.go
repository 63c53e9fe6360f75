package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
)

// content is that of a file to be stored.
type content interface {
	Reader() *io.SectionReader
	Size() int64
}

// create stores a file that was verified, unless there is one of its name. What
// such a file holds follows from its name, so one that leaves the database in
// the same state is a former attempt, ours or of another process.
func (m *Merger) create(ctx context.Context, f ltx.FileInfo, content content) (ltx.FileInfo, error) {
	key := m.replica.Key(f)
	object, err := m.bucket.Put(ctx, key, content.Reader(), storage.Condition{Absent: true})
	switch {
	case errors.Is(err, storage.ErrPrecondition):
		return m.compare(ctx, f, content)
	case err != nil:
		return ltx.FileInfo{}, fmt.Errorf("upload %s: %w", key, err)
	}
	f.Size, f.ModTime = content.Size(), object.ModTime
	if f.ModTime.IsZero() {
		f.ModTime = time.Now()
	}
	return f, nil
}

// compare verifies what is stored instead of a file.
func (m *Merger) compare(ctx context.Context, f ltx.FileInfo, ours content) (ltx.FileInfo, error) {
	key := m.replica.Key(f)
	_, want, err := ltx.VerifyFile(ours.Reader())
	if err != nil {
		return ltx.FileInfo{}, fmt.Errorf("verify file for %s: %w", key, err)
	}
	body, object, err := m.bucket.Get(ctx, key, storage.Range{})
	if err != nil {
		return ltx.FileInfo{}, fmt.Errorf("read back %s: %w", key, err)
	}
	defer body.Close()
	h, got, err := ltx.VerifyFile(body)
	switch {
	case err != nil:
		return ltx.FileInfo{}, fmt.Errorf("read back %s, which exists already; if it stays damaged, remove it: %w", key, err)
	case h.MinTXID != f.Min || h.MaxTXID != f.Max:
		return ltx.FileInfo{}, fmt.Errorf("read back %s: %w: its header says %s-%s; remove it", key, ltx.ErrCorrupt, h.MinTXID, h.MaxTXID)
	case got.PostApplyChecksum != 0 && want.PostApplyChecksum != 0 && got.PostApplyChecksum != want.PostApplyChecksum:
		return ltx.FileInfo{}, fmt.Errorf("%w: %s leaves the database in another state than the files here; stop one of the two processes",
			replica.ErrFenced, key)
	}
	f.Size, f.ModTime = object.Size, object.ModTime
	return f, nil
}
