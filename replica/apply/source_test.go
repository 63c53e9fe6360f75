package apply_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

// source is a real database, whose states become changes of a copy.
type source struct {
	t     testing.TB
	path  string
	db    *sql.DB
	image []byte
	pos   ltx.Pos
}

func newSource(t testing.TB, o testdb.Options, queries ...string) *source {
	t.Helper()
	s := &source{t: t, path: filepath.Join(t.TempDir(), "source.db")}
	s.db = testdb.Create(t, s.path, o)
	s.exec(queries...)
	return s
}

// exec runs statements and makes what they leave the next state.
func (s *source) exec(queries ...string) apply.Change {
	s.t.Helper()
	testdb.Exec(s.t, s.db, queries...)
	testdb.Exec(s.t, s.db, "PRAGMA wal_checkpoint(TRUNCATE)")
	return s.become(readAside(s.t, s.path))
}

// become makes an image the next state and returns what leads there.
func (s *source) become(image []byte) apply.Change {
	f := between(s.image, image, s.pos)
	s.image, s.pos = image, f.Post
	return f
}

// readAside reads a file by another process: one that closes it here would take
// the locks of SQLite away.
func readAside(t testing.TB, path string) []byte {
	t.Helper()
	out, err := child("cat", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func pageSize(image []byte) uint32 {
	if len(image) == 0 {
		return 4096
	}
	size := uint32(binary.BigEndian.Uint16(image[16:]))
	if size == 1 {
		return 65536
	}
	return size
}

func page(image []byte, pgno uint32) []byte {
	size := pageSize(image)
	if int(pgno*size) > len(image) {
		return nil
	}
	return image[(pgno-1)*size : pgno*size]
}

// between is the change from one image to another.
func between(from, to []byte, pre ltx.Pos) apply.Change {
	size := pageSize(to)
	f := apply.Change{PageSize: size, Commit: uint32(len(to)) / size, Pre: pre, Post: ltx.Pos{TXID: pre.TXID + 1, PostApplyChecksum: sumOf(to)}}
	var changed []ltx.Page
	for pgno := uint32(1); pgno <= f.Commit; pgno++ {
		data := page(to, pgno)
		if pageSize(from) != size || !bytes.Equal(page(from, pgno), data) {
			changed = append(changed, ltx.Page{Pgno: pgno, Data: data, Sum: ltx.ChecksumPage(pgno, data)})
		}
	}
	f.Pages = func() iter.Seq2[ltx.Page, error] { return yieldAll(changed) }
	return f
}

func yieldAll(pages []ltx.Page) iter.Seq2[ltx.Page, error] {
	return func(yield func(ltx.Page, error) bool) {
		for _, p := range pages {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func sumOf(image []byte) ltx.Checksum {
	sum := ltx.Checksum(0)
	for pgno := uint32(1); pgno <= uint32(len(image))/pageSize(image); pgno++ {
		sum ^= ltx.ChecksumPage(pgno, page(image, pgno))
	}
	return sum | ltx.ChecksumFlag
}

// copied is a copy beside its state directory.
type copied struct {
	*apply.Copy
	t          testing.TB
	path, dir  string
	options    apply.Options
	wantClosed bool
}

// newCopied puts an image where a copy is to be, with its page sums.
func newCopied(t testing.TB, image []byte, pos ltx.Pos) *copied {
	t.Helper()
	dir := t.TempDir()
	c := &copied{t: t, path: filepath.Join(dir, "copy.db"), dir: filepath.Join(dir, ".state")}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.path, image, 0o644); err != nil {
		t.Fatal(err)
	}
	c.record(pos)
	c.open()
	t.Cleanup(func() {
		if !c.wantClosed {
			c.close()
		}
	})
	return c
}

func (c *copied) record(pos ltx.Pos) {
	c.t.Helper()
	if err := apply.Record(c.t.Context(), c.path, c.dir); err != nil {
		c.t.Fatal(err)
	}
	if err := apply.Place(c.dir, pos); err != nil {
		c.t.Fatal(err)
	}
}

func (c *copied) open() {
	c.t.Helper()
	var err error
	if c.Copy, err = apply.Open(c.t.Context(), c.path, c.dir, c.options); err != nil {
		c.t.Fatal(err)
	}
}

func (c *copied) close() {
	c.t.Helper()
	if err := c.Close(); err != nil {
		c.t.Error(err)
	}
}

func (c *copied) apply(f apply.Change) {
	c.t.Helper()
	if err := c.Apply(c.t.Context(), f); err != nil {
		c.t.Fatal(err)
	}
}

// release ends the copy and checks that the file is an image byte for byte, but
// for the lock page, and its page sums those of the position.
func (c *copied) release(image []byte, pos ltx.Pos) {
	c.t.Helper()
	if err := c.Release(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.wantClosed = true
	got, err := os.ReadFile(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	if !bytes.Equal(got, image) {
		c.t.Fatalf("the released file differs: %d bytes, want %d", len(got), len(image))
	}
	c.checkSums(image, pos)
	for _, name := range []string{c.path + "-journal", c.path + "-wal", filepath.Join(c.dir, "copy")} {
		if _, err := os.Stat(name); err == nil {
			c.t.Errorf("%s is left", name)
		}
	}
}

// checkSums compares the page sums file with an image.
func (c *copied) checkSums(image []byte, pos ltx.Pos) {
	c.t.Helper()
	sums, err := ltx.OpenPageSums(filepath.Join(c.dir, "sums"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer sums.Close()
	if sums.Pos() != pos || sums.Interrupted() || len(image) > 0 && sums.PageSize() != pageSize(image) {
		c.t.Fatalf("page sums are at %v (interrupted: %v), want %v", sums.Pos(), sums.Interrupted(), pos)
	}
	if err := sums.Verify(); err != nil {
		c.t.Fatal(err)
	}
	for pgno := uint32(1); pgno <= sums.Pages(); pgno++ {
		if got, err := sums.Sum(pgno); err != nil || got != ltx.ChecksumPage(pgno, page(image, pgno)) {
			c.t.Fatalf("sum of page %d: got %v, %v", pgno, got, err)
		}
	}
}
