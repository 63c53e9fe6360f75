// Package live reads the pages of a database that others write to, as of one
// commit, under a plain read transaction. It never writes, locks nobody out and
// lets checkpoints go on. It knows nothing of replicas.
package live

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/tidemark-io/tidemark/wal"
)

// View is a database as of one commit, for as long as it is open.
type View struct {
	path     string
	conn     *sqlite3.SQLiteConn
	file     *os.File
	wal, shm *os.File // nil: it is not in WAL mode
	pageSize uint32
	pages    uint32
	overlay  []wal.PageRef // ascending by page
}

// Open begins a read transaction on an existing database.
func Open(path string) (*View, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	name := (&url.URL{Scheme: "file", Path: path}).String()
	name = strings.Replace(name, "file://", "file:", 1) + "?mode=rw&_busy_timeout=5000"
	conn, err := (&sqlite3.SQLiteDriver{}).Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	v := &View{path: path, conn: conn.(*sqlite3.SQLiteConn)}
	if err := v.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), v.Close())
	}
	return v, nil
}

// PageSize returns the size of a page in bytes.
func (v *View) PageSize() uint32 { return v.pageSize }

// Pages returns the size of the database in pages.
func (v *View) Pages() uint32 { return v.pages }

// Close ends the read transaction. Descriptors are closed after the connection:
// closing one drops all locks that the process has on the file.
func (v *View) Close() error {
	err := v.conn.Close()
	for _, f := range []*os.File{v.file, v.wal, v.shm} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

func (v *View) begin() error {
	for _, query := range []string{"PRAGMA wal_autocheckpoint=0", "BEGIN", "PRAGMA schema_version"} {
		if _, err := v.number(query); err != nil {
			return err
		}
	}
	size, err := v.number("PRAGMA page_size")
	if err != nil {
		return err
	}
	count, err := v.number("PRAGMA page_count")
	if err != nil {
		return err
	}
	v.pageSize, v.pages = uint32(size), uint32(count)
	if v.file, err = os.Open(v.path); err != nil {
		return err
	}
	mode, err := v.row("PRAGMA journal_mode")
	if err != nil || mode != "wal" {
		return err
	}
	return v.readIndex()
}

// readIndex finds the frames of the WAL that the database consists of. What
// was committed since the transaction began counts too: the transaction keeps
// it where it is.
func (v *View) readIndex() error {
	var err error
	if v.wal, err = os.Open(v.path + "-wal"); err != nil {
		return err
	}
	ih, err := v.indexHeader()
	if err != nil || ih.MaxFrame == 0 {
		return err
	}
	v.pages = ih.Pages
	if ih.Backfilled >= ih.MaxFrame {
		return nil
	}
	head, err := wal.ReadHeader(v.wal)
	if err != nil {
		return err
	}
	seg, err := wal.Committed(v.wal, head, head.Start(), wal.Limit{Frames: ih.MaxFrame})
	if err != nil {
		return err
	}
	if head.Salt1 != ih.Salt1 || head.Salt2 != ih.Salt2 || seg.To.Frames != ih.MaxFrame {
		return fmt.Errorf("only %d of the %d frames of its WAL are readable", seg.To.Frames, ih.MaxFrame)
	}
	v.overlay = seg.Pages
	return nil
}

// indexHeader reads the head of the wal-index, again when a writer changes it.
func (v *View) indexHeader() (wal.IndexHeader, error) {
	var err error
	if v.shm, err = os.Open(v.path + "-shm"); err != nil {
		return wal.IndexHeader{}, err
	}
	for tries := 0; ; tries++ {
		ih, err := wal.ReadIndexHeader(v.shm)
		if !errors.Is(err, wal.ErrBusy) || tries == 1000 {
			return ih, err
		}
	}
}

// chunk is how much is read at a time.
const chunk = 1 << 20

// Each calls fn with every page in order. The buffer is reused.
func (v *View) Each(ctx context.Context, fn func(pgno uint32, page []byte) error) error {
	buf := make([]byte, chunk)
	perChunk := chunk / v.pageSize
	for first := uint32(1); first <= v.pages && first != 0; first += perChunk {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(perChunk, v.pages-first+1)
		if err := v.read(first, buf[:n*v.pageSize]); err != nil {
			return fmt.Errorf("read %s: %w", v.path, err)
		}
		for i := range n {
			if err := fn(first+i, buf[i*v.pageSize:(i+1)*v.pageSize]); err != nil {
				return err
			}
		}
	}
	return nil
}

// read fills buf with the pages from first on.
func (v *View) read(first uint32, buf []byte) error {
	n, err := v.file.ReadAt(buf, int64(first-1)*int64(v.pageSize))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(buf[n:]) // SQLite reads pages beyond the end of the file as zeros
	last := first + uint32(len(buf))/v.pageSize - 1
	i, _ := slices.BinarySearchFunc(v.overlay, first, func(r wal.PageRef, p uint32) int { return int(int64(r.Pgno) - int64(p)) })
	for ; i < len(v.overlay) && v.overlay[i].Pgno <= last; i++ {
		ref := v.overlay[i]
		at := (ref.Pgno - first) * v.pageSize
		if _, err := v.wal.ReadAt(buf[at:at+v.pageSize], wal.FrameOffset(ref.Frame, v.pageSize)); err != nil {
			return err
		}
	}
	return nil
}

// row returns the first value of a query; nil if there is none.
func (v *View) row(query string) (driver.Value, error) {
	rows, err := v.conn.QueryContext(context.Background(), query, nil)
	if err != nil {
		return nil, err
	}
	values := make([]driver.Value, max(1, len(rows.Columns())))
	if err = rows.Next(values); errors.Is(err, io.EOF) {
		err = nil
	}
	return values[0], errors.Join(err, rows.Close())
}

func (v *View) number(query string) (int64, error) {
	value, err := v.row(query)
	n, _ := value.(int64)
	return n, err
}
