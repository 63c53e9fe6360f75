package capture_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
)

func TestMain(m *testing.M) {
	testdb.RunWriter()
	os.Exit(m.Run())
}

// model is the other end of a spool: it checks that the files chain and keeps
// the database they describe.
type model struct {
	t     *testing.T
	file  *os.File
	tip   capture.Tip
	files []ltx.FileInfo
	pages int // in all files
	// applied, if not nil, is told of each file and its pages.
	applied func(ltx.TXID, []uint32)
}

func newModel(t *testing.T) *model {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "model"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &model{t: t, file: f}
}

func (m *model) Tip(context.Context) (capture.Tip, error) { return m.tip, nil }

// drain takes what the spool hands out now.
func (m *model) drain(s *capture.Spool) {
	m.t.Helper()
	for {
		f, ok := s.Next()
		if !ok {
			return
		}
		m.apply(f)
		if err := s.Done(f); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *model) apply(f capture.File) {
	m.t.Helper()
	in, err := os.Open(f.Path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer in.Close()
	dec, err := ltx.NewDecoder(in)
	if err != nil {
		m.t.Fatal(err)
	}
	h := dec.Header()
	m.continues(f, h)
	var pages []uint32
	for p, err := range dec.Pages() {
		if err != nil {
			m.t.Fatal(err)
		}
		pages = append(pages, p.Pgno)
		if _, err := m.file.WriteAt(p.Data, int64(p.Pgno-1)*int64(h.PageSize)); err != nil {
			m.t.Fatal(err)
		}
		m.pages++
	}
	tr, err := dec.Close()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.file.Truncate(int64(h.Commit) * int64(h.PageSize)); err != nil {
		m.t.Fatal(err)
	}
	m.tip = capture.Tip{Pos: ltx.Pos{TXID: h.MaxTXID, PostApplyChecksum: tr.PostApplyChecksum}, PageSize: h.PageSize, Pages: h.Commit}
	if m.tip.Pos != f.Pos {
		m.t.Fatalf("file says position %v, spool says %v", m.tip.Pos, f.Pos)
	}
	m.files = append(m.files, f.Info)
	if m.applied != nil {
		m.applied(h.MaxTXID, pages)
	}
}

func (m *model) continues(f capture.File, h ltx.Header) {
	m.t.Helper()
	if h.MinTXID != f.Info.Min || h.MaxTXID != f.Info.Max {
		m.t.Fatalf("file %s holds TXIDs %s to %s", f.Path, h.MinTXID, h.MaxTXID)
	}
	if h.MaxTXID != m.tip.Pos.TXID+1 {
		m.t.Fatalf("TXID %s after %s", h.MaxTXID, m.tip.Pos.TXID)
	}
	if !h.IsSnapshot() && h.PreApplyChecksum != m.tip.Pos.PostApplyChecksum {
		m.t.Fatalf("TXID %s starts from checksum %s, the one before ends with %s", h.MaxTXID, h.PreApplyChecksum, m.tip.Pos.PostApplyChecksum)
	}
}

// equals compares the model with the database, which nobody has open.
func (m *model) equals(path string) {
	m.t.Helper()
	testdb.Checkpoint(m.t, path)
	testdb.SamePages(m.t, m.file.Name(), path, int64(m.tip.PageSize))
	data, err := os.ReadFile(m.file.Name())
	if err != nil {
		m.t.Fatal(err)
	}
	total, size := ltx.ChecksumFlag, int(m.tip.PageSize)
	for i := 0; i < len(data)/size; i++ {
		if pgno := uint32(i + 1); pgno != ltx.LockPgno(m.tip.PageSize) {
			total = ltx.ChecksumFlag | (total ^ ltx.ChecksumPage(pgno, data[i*size:(i+1)*size]))
		}
	}
	if total != m.tip.Pos.PostApplyChecksum {
		m.t.Errorf("database checksum is %s, the last file says %s", total, m.tip.Pos.PostApplyChecksum)
	}
}

// endsEqual closes the capturer and the application's handle, then compares.
func (m *model) endsEqual(c *capture.Capturer, db io.Closer, path string) {
	m.t.Helper()
	shut(m.t, c)
	if err := db.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.equals(path)
}

func open(t *testing.T, path string, m *model, cfg capture.Config) *capture.Capturer {
	t.Helper()
	c, err := capture.New(path, cfg, capture.Options{Tip: m.Tip, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func capturer(t *testing.T, path string, m *model) *capture.Capturer {
	t.Helper()
	return open(t, path, m, capture.DefaultConfig())
}

func step(t *testing.T, c *capture.Capturer) {
	t.Helper()
	if err := c.Capture(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func shut(t *testing.T, c *capture.Capturer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// running runs a capturer, and the model as its uploader, until stop.
func running(t *testing.T, c *capture.Capturer, m *model) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return c.Run(ctx) })
	g.Go(func() error {
		for {
			m.drain(c.Spool())
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-c.Spool().Changed():
			}
		}
	})
	return func() {
		t.Helper()
		cancel()
		if err := g.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}
