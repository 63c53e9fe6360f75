package capture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// draft is an LTX file being written to a temporary name in the spool.
type draft struct {
	*ltx.Encoder
	path string
	f    *os.File
	w    *bufio.Writer
	head ltx.Header
	post ltx.Checksum
	kept bool // it was renamed
	last recent
}

// recent is the numbers of the pages that were written last; 0: none.
type recent [32]uint32

func (r *recent) note(pgno uint32) { r[pgno%uint32(len(r))] = pgno }

// WritePage writes a page and remembers its number.
func (d *draft) WritePage(pgno uint32, data []byte) (ltx.Checksum, error) {
	d.last.note(pgno)
	return d.Encoder.WritePage(pgno, data)
}

// draft starts a file. There is one draft at a time.
func (s *Spool) draft(h ltx.Header) (*draft, error) {
	h.Version, h.Timestamp, h.NodeID = ltx.Version, s.timestamp(), s.node
	f, err := os.OpenFile(s.tempPath(), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	d := &draft{path: f.Name(), f: f, w: bufio.NewWriterSize(f, 256<<10), head: h}
	if d.Encoder, err = ltx.NewEncoder(d.w, h); err != nil {
		d.discard()
		return nil, fmt.Errorf("spool: %w", err)
	}
	return d, nil
}

// finish completes the file; post is the checksum of the database after it.
func (d *draft) finish(post ltx.Checksum) error {
	d.post = post
	_, err := d.Close(post)
	if err == nil {
		err = d.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("spool %s: %w", d.path, err)
	}
	return nil
}

// spooled describes the finished file under its final name.
func (d *draft) spooled(dir string) (spooled, error) {
	info, err := d.f.Stat()
	if err != nil {
		return spooled{}, fmt.Errorf("spool: %w", err)
	}
	return describe(dir, d.head, d.post, info), nil
}

func describe(dir string, h ltx.Header, post ltx.Checksum, info os.FileInfo) spooled {
	f := spooled{pre: h.PreApplyChecksum}
	f.Info = ltx.FileInfo{Min: h.MinTXID, Max: h.MaxTXID, Size: info.Size(), ModTime: time.UnixMilli(h.Timestamp)}
	// The first TXID is a base too, so it goes where bases go.
	if h.IsSnapshot() {
		f.Info.Level = ltx.LevelSnapshot
	}
	f.Pos = ltx.Pos{TXID: h.MaxTXID, PostApplyChecksum: post}
	f.Path = filepath.Join(dir, fileName(f.Info))
	return f
}

// discard closes the draft and removes what is left of it under its temporary
// name.
func (d *draft) discard() {
	_ = d.f.Close()
	if !d.kept {
		_ = os.Remove(d.path)
	}
}

// merge folds the draft at path into a waiting file, which keeps its TXID.
func (s *Spool) merge(into *spooled, path string) (err error) {
	tmp, err := os.OpenFile(filepath.Join(s.dir, "merge.tmp"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("gather: %w", err)
	}
	defer func() {
		err = errors.Join(err, tmp.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	size, err := mergeFiles(tmp, into.Info.Max, into.Path, path)
	if err != nil {
		return fmt.Errorf("gather into %s: %w", into.Path, err)
	}
	if err := os.Rename(tmp.Name(), into.Path); err != nil {
		return fmt.Errorf("gather: %w", err)
	}
	into.Info.Size = size
	return nil
}

func mergeFiles(dst *os.File, txid ltx.TXID, paths ...string) (size int64, err error) {
	older, err := os.Open(paths[0])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, older.Close()) }()
	newer, err := os.Open(paths[1])
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, newer.Close()) }()
	w := bufio.NewWriterSize(dst, 256<<10)
	// The spool is local and a merge is short, so it is not interrupted.
	if _, _, err := ltx.MergeAs(context.Background(), w, txid, txid, older, newer); err != nil {
		return 0, err
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	info, err := dst.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
