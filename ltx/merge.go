package ltx

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Merge writes to dst the one file that does what srcs do one after another,
// oldest first: of each page the newest version, none beyond the last commit.
// Frames are copied as they are. Each source must begin where the one before
// ends or overlap it, and its pre-apply checksum must be the post-apply
// checksum before it (ErrChecksum); if any source has no checksums, the result
// has none. All sources are verified to their end: what dst holds is a file
// only when Merge returns without error. Memory grows with the number of
// sources, by some pages each, not with their size.
func Merge(ctx context.Context, dst io.Writer, srcs ...io.Reader) (Header, Trailer, error) {
	m, err := newMerger(srcs)
	if err != nil {
		return Header{}, Trailer{}, err
	}
	if err := m.checkRange(); err != nil {
		return Header{}, Trailer{}, err
	}
	return m.run(ctx, dst, m.srcs[0].header.MinTXID, m.last().header.MaxTXID)
}

// MergeAs is Merge into a file of the given TXIDs, whatever those of the
// sources are; the checksums alone show that they follow each other.
func MergeAs(ctx context.Context, dst io.Writer, min, max TXID, srcs ...io.Reader) (Header, Trailer, error) {
	m, err := newMerger(srcs)
	if err != nil {
		return Header{}, Trailer{}, err
	}
	return m.run(ctx, dst, min, max)
}

// merger walks through its sources together.
type merger struct {
	srcs  []*Decoder
	heads []Frame // next frame of each; page 0: none is left
	enc   *Encoder
}

func newMerger(srcs []io.Reader) (*merger, error) {
	if len(srcs) == 0 {
		return nil, errors.New("merge ltx files: no sources")
	}
	m := &merger{heads: make([]Frame, len(srcs))}
	for i, src := range srcs {
		d, err := NewDecoder(src)
		if err != nil {
			return nil, fmt.Errorf("merge ltx files: source %d: %w", i, err)
		}
		m.srcs = append(m.srcs, d)
		if size := m.srcs[0].header.PageSize; d.header.PageSize != size {
			return nil, fmt.Errorf("merge ltx files: source %d has pages of %d bytes, those before of %d",
				i, d.header.PageSize, size)
		}
	}
	return m, nil
}

func (m *merger) last() *Decoder { return m.srcs[len(m.srcs)-1] }

// checkRange says whether the sources' TXIDs follow each other.
func (m *merger) checkRange() error {
	for i, d := range m.srcs[1:] {
		before, h := m.srcs[i].header, d.header
		if h.MinTXID-1 > before.MaxTXID || h.MaxTXID <= before.MaxTXID {
			return fmt.Errorf("merge ltx files: %s-%s does not follow %s-%s",
				h.MinTXID, h.MaxTXID, before.MinTXID, before.MaxTXID)
		}
	}
	return nil
}

// run writes the file.
func (m *merger) run(ctx context.Context, dst io.Writer, min, max TXID) (Header, Trailer, error) {
	enc, err := NewEncoder(dst, m.header(min, max))
	if err != nil {
		return Header{}, Trailer{}, fmt.Errorf("merge ltx files: %w", err)
	}
	m.enc = enc
	if err := m.copyPages(ctx); err != nil {
		return Header{}, Trailer{}, fmt.Errorf("merge ltx files: %w", err)
	}
	post, err := m.verify()
	if err != nil {
		return Header{}, Trailer{}, fmt.Errorf("merge ltx files: %w", err)
	}
	t, err := enc.Close(post)
	if err != nil {
		return Header{}, Trailer{}, fmt.Errorf("merge ltx files: %w", err)
	}
	return enc.Header(), t, nil
}

// header is that of the result.
func (m *merger) header(min, max TXID) Header {
	first, last := m.srcs[0].header, m.last().header
	h := Header{
		PageSize:         first.PageSize,
		Commit:           last.Commit,
		MinTXID:          min,
		MaxTXID:          max,
		Timestamp:        last.Timestamp,
		NodeID:           last.NodeID,
		PreApplyChecksum: first.PreApplyChecksum,
	}
	for _, d := range m.srcs {
		if d.header.NoChecksum() {
			h.Flags, h.PreApplyChecksum = FlagNoChecksum, 0
		}
	}
	return h
}

// copyPages copies the newest frame of each page.
func (m *merger) copyPages(ctx context.Context) error {
	for i := range m.srcs {
		if err := m.advance(i); err != nil {
			return err
		}
	}
	const checkEvery = 64
	for n := 0; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done, err := m.copyPage()
		if done || err != nil {
			return err
		}
	}
}

// copyPage copies the lowest page at the heads and moves past it.
func (m *merger) copyPage() (done bool, err error) {
	newest, pgno := -1, uint32(0)
	for i := range m.heads {
		if p := m.heads[i].Pgno; p != 0 && (pgno == 0 || p <= pgno) {
			newest, pgno = i, p
		}
	}
	if newest < 0 {
		return true, nil
	}
	if pgno <= m.enc.header.Commit {
		if err := m.enc.WriteFrame(m.heads[newest]); err != nil {
			return false, err
		}
	}
	for i := range m.heads {
		if m.heads[i].Pgno != pgno {
			continue
		}
		if err := m.advance(i); err != nil {
			return false, err
		}
	}
	return false, nil
}

// advance reads the next frame of source i.
func (m *merger) advance(i int) error {
	f, err := m.srcs[i].next()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("source %d: %w", i, err)
	}
	m.heads[i] = f
	return nil
}

// verify closes the sources, checks that their checksums chain, and returns
// the post-apply checksum of the result.
func (m *merger) verify() (Checksum, error) {
	var before Checksum
	for i, d := range m.srcs {
		t, err := d.Close()
		if err != nil {
			return 0, fmt.Errorf("source %d: %w", i, err)
		}
		pre := d.header.PreApplyChecksum
		if i > 0 && pre != 0 && before != 0 && pre != before && !m.overlaps(i) {
			return 0, fmt.Errorf("%w: source %d applies to %s, source %d leaves %s", ErrChecksum, i, pre, i-1, before)
		}
		before = t.PostApplyChecksum
	}
	if m.enc.header.NoChecksum() {
		return 0, nil
	}
	return before, nil
}

// overlaps tells whether source i begins within the one before it, so that
// their checksums say nothing about each other.
func (m *merger) overlaps(i int) bool {
	before, h := m.srcs[i-1].header, m.srcs[i].header
	return h.MinTXID <= before.MaxTXID && h.MaxTXID > before.MaxTXID
}
