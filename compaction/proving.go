package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// Cursor is a place among the files of a replica; zero: before the first one.
type Cursor struct {
	Level    int
	Min, Max ltx.TXID
}

// Proof is what Prove found.
type Proof struct {
	Files   int           // read whole
	Bytes   int64         // read
	Damaged []SourceError // those of them that could not be used; some are mended by now
	Next    Cursor        // where to go on; zero: all were read
}

// Prove reads the files behind a place whole and verifies them, as many as a
// slice has, and one at least. What is damaged is stored again if a copy is
// here. If not, it is as good as missing from then on, and a snapshot is made
// that stands in for it: by Run, or before Prove returns if that does not run.
func (w *Worker) Prove(ctx context.Context, after Cursor, limit Slice) (Proof, error) {
	p, err := w.prove(ctx, after, limit)
	if err != nil {
		return Proof{}, err
	}
	missed := false
	for i, bad := range p.Damaged {
		if w.heal(ctx, bad) {
			p.Damaged[i].Err = fmt.Errorf("%w; stored again from a copy", bad.Err)
		} else {
			missed = true
		}
	}
	if missed && w.options.Snapshotter != nil && !w.running() {
		err = w.snapshot(ctx)
	}
	return p, err
}

func (w *Worker) prove(ctx context.Context, after Cursor, limit Slice) (Proof, error) {
	files, err := w.inventory.load(ctx)
	if err != nil {
		return Proof{}, err
	}
	done, err := w.options.Gate.Read(ctx)
	if err != nil {
		return Proof{}, err
	}
	defer done()
	var p Proof
	for _, f := range behind(files, after) {
		if p.Files > 0 && (p.Files >= limit.Files || p.Bytes+f.Size > limit.Bytes) {
			return p, nil
		}
		damage, err := w.merger.damage(ctx, f)
		switch {
		case damage != nil:
			p.Damaged = append(p.Damaged, SourceError{f, w.merger.replica.Key(f), damage})
		case errors.Is(err, storage.ErrNotFound):
			w.inventory.forget() // it was merged away or is missing, which merging finds out
		case err != nil:
			return p, err
		}
		p.Files++
		p.Bytes += f.Size
		p.Next = Cursor{f.Level, f.Min, f.Max}
	}
	p.Next = Cursor{}
	return p, nil
}

// behind returns the files behind a place, in order.
func behind(files []ltx.FileInfo, after Cursor) []ltx.FileInfo {
	if after == (Cursor{}) {
		return files
	}
	i, found := slices.BinarySearchFunc(files, after, func(f ltx.FileInfo, c Cursor) int {
		return cmp.Or(cmp.Compare(f.Level, c.Level), cmp.Compare(f.Min, c.Min), cmp.Compare(f.Max, c.Max))
	})
	if found {
		i++
	}
	return files[i:]
}

// damage returns what is wrong with a file, if it is so twice.
func (m *Merger) damage(ctx context.Context, f ltx.FileInfo) (found, err error) {
	if err = m.proveFile(ctx, f); isBad(err) {
		err = m.proveFile(ctx, f)
	}
	if isBad(err) {
		return err, nil
	}
	return nil, err
}

// proveFile reads a file whole. An answer that breaks off says nothing about it.
func (m *Merger) proveFile(ctx context.Context, f ltx.FileInfo) error {
	body, object, err := m.bucket.Get(ctx, m.replica.Key(f), storage.Range{})
	if err != nil {
		return fmt.Errorf("read %s: %w", m.replica.Key(f), err)
	}
	defer body.Close()
	if object.Size != f.Size {
		return fmt.Errorf("%w: %d bytes, not %d as listed", ltx.ErrCorrupt, object.Size, f.Size)
	}
	read := &counting{Reader: body}
	h, _, err := ltx.VerifyFile(read)
	if err != nil && read.n < f.Size && !errors.Is(err, ltx.ErrChecksum) {
		if _, rest := io.Copy(io.Discard, read); rest != nil || read.n < f.Size {
			return fmt.Errorf("read %s: %w after %d of %d bytes", m.replica.Key(f), io.ErrUnexpectedEOF, read.n, f.Size)
		}
	}
	if err != nil {
		return err
	}
	if h.MinTXID != f.Min || h.MaxTXID != f.Max {
		return fmt.Errorf("%w: it holds %s-%s", ltx.ErrCorrupt, h.MinTXID, h.MaxTXID)
	}
	return nil
}

// counting counts what is read.
type counting struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

func isBad(err error) bool { return errors.Is(err, ltx.ErrCorrupt) || errors.Is(err, ltx.ErrChecksum) }
