package compaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// checkClaims refuses claims without checksums. They mark where a base was
// written, and what changed there is in the base only.
func (g *gathered) checkClaims() error {
	for i, f := range g.sources {
		if f.Size != ltx.MinFileSize {
			continue
		}
		if e, err := g.verify(i); err == nil && e.post == 0 {
			return g.blame(i, errors.New("it has neither pages nor checksums: it marks where a base was written that is not here"))
		}
	}
	return nil
}

// prove verifies every source by itself and that they follow each other. One
// whose content is wrong is read again from the bucket, in case a store showed
// it before it was complete, or the local file was damaged.
func (g *gathered) prove(ctx context.Context) error {
	var before end
	for i := range g.sources {
		now, err := g.verify(i)
		for tries := 0; err != nil && tries < rereads; tries++ {
			if err := g.reread(ctx, i); err != nil {
				return err
			}
			now, err = g.verify(i)
		}
		if err == nil {
			err = now.follows(before)
		}
		if err != nil {
			return g.blame(i, err)
		}
		before = now
	}
	return nil
}

func (g *gathered) blame(i int, err error) error {
	return &SourceError{File: g.sources[i], Key: g.merger.replica.Key(g.sources[i]), Err: err}
}

// end is what matters of a source for the one after it.
type end struct {
	min, max  ltx.TXID
	pageSize  uint32
	pre, post ltx.Checksum
}

func (g *gathered) verify(i int) (end, error) {
	h, t, err := ltx.VerifyFile(g.reader(i))
	if err != nil {
		return end{}, err
	}
	f := g.sources[i]
	if h.MinTXID != f.Min || h.MaxTXID != f.Max {
		return end{}, fmt.Errorf("%w: its header says %s-%s", ltx.ErrCorrupt, h.MinTXID, h.MaxTXID)
	}
	return end{h.MinTXID, h.MaxTXID, h.PageSize, h.PreApplyChecksum, t.PostApplyChecksum}, nil
}

// follows checks that e can be merged behind before.
func (e end) follows(before end) error {
	switch {
	case before.max == 0:
		return nil
	case e.pageSize != before.pageSize:
		return fmt.Errorf("%w: pages of %d bytes follow pages of %d", ltx.ErrCorrupt, e.pageSize, before.pageSize)
	case e.min == before.max+1 && e.pre != 0 && before.post != 0 && e.pre != before.post:
		return fmt.Errorf("%w: it applies to %s, the file before it leaves %s", ltx.ErrChecksum, e.pre, before.post)
	}
	return nil
}

// reread reads a source from the bucket once more, in place of what was read.
func (g *gathered) reread(ctx context.Context, i int) error {
	if err := wait(ctx, newPauses().NextBackOff()); err != nil {
		return err
	}
	file, err := g.merger.scratch.Create()
	if err != nil {
		return err
	}
	g.files = append(g.files, file)
	f := g.sources[i]
	if err := g.merger.fetch(ctx, f, storage.Range{Length: f.Size}, file); err != nil {
		return err
	}
	g.sections[i] = last(file, f)
	return nil
}

// endOf reads the trailer of a file on the bucket.
func (m *Merger) endOf(ctx context.Context, f ltx.FileInfo) (ltx.Trailer, error) {
	var b bytes.Buffer
	part := storage.Range{Offset: f.Size - ltx.TrailerSize, Length: ltx.TrailerSize}
	if err := m.fetch(ctx, f, part, &b); err != nil {
		return ltx.Trailer{}, err
	}
	t, err := ltx.ReadTrailer(b.Bytes())
	if err != nil {
		return ltx.Trailer{}, fmt.Errorf("read %s: %w", m.replica.Key(f), err)
	}
	return t, nil
}
