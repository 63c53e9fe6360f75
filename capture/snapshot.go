package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/wal"
)

// ErrNotOpen is returned when there is no open database.
var ErrNotOpen = errors.New("database is not open")

// ErrDiffers is wrapped when the database does not hold what was captured.
var ErrDiffers = errors.New("database differs from what was captured")

// Snapshot writes an LTX file with every page, from TXID 1 to the position that
// it returns, as of one commit: writers and checkpoints go on meanwhile, though
// the WAL cannot start over. All that is committed when it is called is
// captured first. It wraps ErrDiffers if the database does not add up to the
// position's checksum, and ErrNotOpen.
func (c *Capturer) Snapshot(ctx context.Context, w io.Writer) (ltx.Pos, error) {
	v, err := c.view(ctx)
	if err != nil {
		return ltx.Pos{}, fmt.Errorf("snapshot: %w", err)
	}
	err = v.write(ctx, w)
	if err = errors.Join(err, v.close()); err != nil {
		return ltx.Pos{}, fmt.Errorf("snapshot: %w", err)
	}
	return v.pos, nil
}

// view is the database as of a captured position, which stays readable beside
// capture until it is closed.
type view struct {
	*image
	pos  ltx.Pos
	at   time.Time // of the last commit, or later
	conn *conn     // holds the read transaction; nil: none is needed
}

// view captures what is committed, and holds what that is.
func (c *Capturer) view(ctx context.Context) (*view, error) {
	if err := c.Capture(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur == nil {
		return nil, fmt.Errorf("%s: %w", c.path, ErrNotOpen)
	}
	v, err := c.hold()
	if err != nil {
		return nil, err
	}
	v.at = c.st.spool.newest()
	c.st.spool.seal()
	v.db.views.Add(1)
	return v, nil
}

// seal lets no file take more commits that is there: the position after them is
// told to others, and has to mean one state.
func (s *Spool) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = len(s.files)
}

// hold captures up to exactly what a new read transaction sees.
func (c *Capturer) hold() (v *view, err error) {
	db := c.cur.db
	if db.still() {
		im, err := db.stillImage()
		if err == nil && db.seen != im.glance {
			err = fmt.Errorf("read %s: %w", db.path, errMoving)
		}
		return &view{image: im, pos: c.position()}, err
	}
	v = &view{}
	if v.conn, err = openConn(db.path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.conn.end(), v.conn.close())
		}
	}()
	if err = v.conn.begin(); err != nil {
		return nil, err
	}
	ih, err := c.cur.index()
	if err != nil {
		return nil, err
	}
	if err = c.captureTo(ih); err != nil {
		return nil, err
	}
	v.pos = c.position()
	v.image, err = db.image(ih)
	return v, err
}

// captureTo captures up to the end of the WAL as ih tells it. A read
// transaction must keep it from starting over.
func (c *Capturer) captureTo(ih wal.IndexHeader) error {
	for ih.MaxFrame > 0 && !c.cur.at(ih.Salt1, ih.Salt2, ih.MaxFrame) {
		seg, err := c.cur.next(wal.Limit{Bytes: segmentBytes, Frames: ih.MaxFrame})
		if err != nil {
			return err
		}
		if seg.Commits == 0 {
			return fmt.Errorf("read %s-wal: it ends before frame %d", c.path, ih.MaxFrame)
		}
		if err := c.increment(seg); err != nil {
			return err
		}
	}
	if ih.MaxFrame > 0 && c.cur.mark.Frames != ih.MaxFrame {
		return fmt.Errorf("read %s-wal: captured beyond frame %d", c.path, ih.MaxFrame)
	}
	return nil
}

func (v *view) write(ctx context.Context, w io.Writer) error {
	enc, err := ltx.NewEncoder(w, ltx.Header{
		Version: ltx.Version, PageSize: v.db.pageSize, Commit: v.pages,
		MinTXID: 1, MaxTXID: v.pos.TXID, Timestamp: v.at.UnixMilli(),
	})
	if err != nil {
		return err
	}
	total, err := v.encode(ctx, enc, func(uint32, ltx.Checksum) error { return nil })
	if err != nil {
		return err
	}
	if total != v.pos.PostApplyChecksum {
		return fmt.Errorf("%s: %w: it adds up to %s, position %s to %s", v.db.path, ErrDiffers, total, v.pos.TXID, v.pos.PostApplyChecksum)
	}
	_, err = enc.Close(total)
	return err
}

// close ends the read transaction.
func (v *view) close() error {
	defer v.db.views.Done()
	if v.conn == nil {
		return nil
	}
	return errors.Join(v.conn.end(), v.conn.close())
}
