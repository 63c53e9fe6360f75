package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// Tip is the newest position that the replica proves, in this package's words.
// TXID 0: the replica is empty. Checksum 0: its newest file carries none.
type Tip struct {
	Pos             ltx.Pos
	PageSize, Pages uint32
	At              time.Time // of its newest commit; zero: unknown
}

// state is what the state directory holds.
type state struct {
	dir     string
	sums    *ltx.PageSums
	spool   *Spool
	written stamp // of the page sums, after our last write
}

const (
	sumsName  = "sums"
	spoolName = "spool"
)

// openState opens the state directory and finishes what a killed process left
// half done. dropped names files of the spool that were damaged.
func openState(dir string) (st *state, dropped []string, err error) {
	st = &state{dir: dir}
	if st.spool, dropped, err = openSpool(st.path(spoolName)); err != nil {
		return nil, nil, permission(err, dir)
	}
	if st.sums, err = ltx.OpenPageSums(st.path(sumsName)); err != nil {
		return nil, nil, permission(err, dir)
	}
	if err := errors.Join(st.redo(), st.noteSums()); err != nil {
		return nil, nil, errors.Join(err, st.sums.Close())
	}
	return st, dropped, nil
}

// reopen opens what is in the state directory now.
func (st *state) reopen(dir string) (dropped []string, err error) {
	// They are closed already if an earlier attempt went no further.
	if err := st.sums.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return nil, err
	}
	now, dropped, err := openState(dir)
	if err != nil {
		return dropped, err
	}
	st.sums, st.written = now.sums, now.written
	st.spool.replace(now.spool)
	return dropped, nil
}

// redo brings the page sums to the end of the spool: files get into the spool
// first, so what is missing in the sums is there.
func (st *state) redo() error {
	redone := st.sums.Interrupted()
	for _, f := range st.spool.files {
		pos := st.sums.Pos()
		behind := f.Pos.TXID > pos.TXID || f.Pos.TXID == pos.TXID && f.Pos != pos
		if !behind && !st.sums.Interrupted() {
			continue
		}
		if err := st.applyFile(f.Path); err != nil {
			return fmt.Errorf("redo page sums: %w", err)
		}
		redone = true
	}
	if !redone {
		return nil
	}
	err := st.sums.Verify()
	if errors.Is(err, ltx.ErrCorrupt) {
		return st.sums.Reset() // the sums did not belong to what is before the spool
	}
	return err
}

// heal finishes an update of the page sums that an error cut off after its
// file got into the spool.
func (st *state) heal() error {
	if !st.spool.unpublished() {
		return nil
	}
	if err := errors.Join(st.redo(), st.noteSums()); err != nil {
		return err
	}
	st.spool.publish()
	return nil
}

// applyFile brings the page sums to the position after the file at path.
func (st *state) applyFile(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, t, err := ltx.VerifyFile(f)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return st.apply(f, func(h ltx.Header) ltx.Pos {
		return ltx.Pos{TXID: h.MaxTXID, PostApplyChecksum: t.PostApplyChecksum}
	})
}

// applyDraft brings the page sums to pos by the pages of a finished draft, in
// memory that does not depend on its size.
func (st *state) applyDraft(d *draft, pos ltx.Pos) error {
	f := io.NewSectionReader(d.f, 0, d.N())
	return st.apply(f, func(ltx.Header) ltx.Pos { return pos })
}

func (st *state) apply(r io.Reader, pos func(ltx.Header) ltx.Pos) (err error) {
	dec, err := ltx.NewDecoder(r)
	if err != nil {
		return err
	}
	h := dec.Header()
	defer func() { err = errors.Join(err, st.noteSums()) }()
	if err := st.sums.Begin(); err != nil {
		return err
	}
	for p, err := range dec.Pages() {
		if err != nil {
			return err
		}
		if err := st.sums.Set(p.Pgno, p.Sum); err != nil {
			return err
		}
	}
	if _, err := dec.Close(); err != nil {
		return err
	}
	return st.sums.Commit(pos(h), h.PageSize, h.Commit)
}

// doubts says why the state does not continue the replica at tip; empty when
// it does.
func (st *state) doubts(tip Tip) string {
	pos := st.sums.Pos()
	files := st.spool.files
	switch {
	case pos.IsZero():
		return "there is no local state"
	case st.sums.Interrupted():
		return "the page sums were interrupted"
	case len(files) > 0 && files[len(files)-1].Pos != pos:
		return "page sums and spool disagree"
	case pos.TXID < tip.Pos.TXID:
		return fmt.Sprintf("the replica is at TXID %s, local state at %s", tip.Pos.TXID, pos.TXID)
	case pos.TXID == tip.Pos.TXID && pos != tip.Pos:
		return fmt.Sprintf("the replica holds other content at TXID %s", pos.TXID)
	case len(files) == 0 && pos.TXID != tip.Pos.TXID:
		return fmt.Sprintf("the replica ends at TXID %s, local state at %s", tip.Pos.TXID, pos.TXID)
	case len(files) > 0:
		return files[0].doubts(tip)
	}
	return ""
}

// doubts says why the oldest file of a spool does not continue the replica.
func (f spooled) doubts(tip Tip) string {
	before := f.Info.Max - 1
	switch {
	case before > tip.Pos.TXID:
		return fmt.Sprintf("the replica ends at TXID %s, the spool starts after %s", tip.Pos.TXID, before)
	case before == tip.Pos.TXID && !f.Info.IsSnapshot() && f.pre != tip.Pos.PostApplyChecksum:
		return fmt.Sprintf("the replica holds other content at TXID %s", before)
	}
	return ""
}

// forget drops everything: the replica tells more than the state does.
func (st *state) forget() error {
	return errors.Join(st.spool.clear(), st.sums.Reset(), st.noteSums())
}

func (st *state) close() error { return st.sums.Close() }
