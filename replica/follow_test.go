package replica_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/replica/apply"
	"github.com/tidemark-io/tidemark/storage"
)

// primary is a real database whose commits go to a replica.
type primary struct {
	*history
	path string
	db   *sql.DB
}

func newPrimary(t testing.TB, pageSize int) *primary {
	t.Helper()
	p := &primary{history: newHistory(t, uint32(pageSize)), path: filepath.Join(t.TempDir(), "primary.db")}
	p.db = testdb.Create(t, p.path, testdb.Options{PageSize: pageSize})
	p.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v)", rows(40, 900))
	return p
}

func rows(n, size int) string {
	return fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO t(v) SELECT randomblob(%d) FROM n", n, size)
}

// exec commits and stores what the commit changed. Nobody but the one
// connection has the file open, so reading it does no harm.
func (p *primary) exec(queries ...string) {
	p.t.Helper()
	testdb.Exec(p.t, p.db, queries...)
	testdb.Exec(p.t, p.db, "PRAGMA wal_checkpoint(TRUNCATE)")
	image, err := os.ReadFile(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	b := p.become(image)
	p.put(file(0, p.pos.TXID, p.pos.TXID), b)
}

// become makes image the next state and returns the file that leads there.
func (p *primary) become(image []byte) []byte {
	p.t.Helper()
	before := p.image
	p.image = image
	spec := &ltx.Spec{Header: p.header(p.pos.TXID+1, p.pos.TXID+1)}
	for pgno := uint32(1); pgno <= p.pages(); pgno++ {
		end := int(pgno * p.pageSize)
		if len(before) < end || !bytes.Equal(before[end-int(p.pageSize):end], p.page(pgno)) {
			spec.Pages = append(spec.Pages, ltx.PageSpec{Pgno: pgno, Data: p.page(pgno)})
		}
	}
	p.pos = ltx.Pos{TXID: p.pos.TXID + 1, PostApplyChecksum: p.sum()}
	p.images[p.pos.TXID] = image
	spec.PostApply = p.pos.PostApplyChecksum
	return p.encode(spec)
}

// follower is a copy of a primary.
type follower struct {
	*replica.Follower
	p         *primary
	copy      *apply.Copy
	path, dir string
	bucket    *counted
	log       bytes.Buffer
	options   replica.FollowOptions
}

// counted notes what is asked of a bucket.
type counted struct {
	storage.Bucket
	mu    sync.Mutex
	gets  []string
	lists []string
}

func (c *counted) Get(ctx context.Context, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	c.mu.Lock()
	c.gets = append(c.gets, key)
	c.mu.Unlock()
	return c.Bucket.Get(ctx, key, part)
}

func (c *counted) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Object, error] {
	c.mu.Lock()
	c.lists = append(c.lists, prefix+" after "+after)
	c.mu.Unlock()
	return c.Bucket.List(ctx, prefix, after)
}

func (c *counted) count() (gets, lists int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.gets), len(c.lists)
}

// follow seeds a copy and returns its follower.
func (p *primary) follow() *follower {
	p.t.Helper()
	dir := p.t.TempDir()
	f := &follower{p: p, path: filepath.Join(dir, "copy.db"), dir: filepath.Join(dir, ".state"), bucket: &counted{Bucket: p.bucket}}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	f.seed()
	space, err := scratch.New(p.t.TempDir(), 0)
	if err != nil {
		p.t.Fatal(err)
	}
	f.options = replica.FollowOptions{Scratch: space, Log: slog.New(slog.NewTextHandler(&f.log, nil))}
	f.open()
	p.t.Cleanup(func() {
		if err := f.copy.Close(); err != nil {
			p.t.Error(err)
		}
		if err := space.Close(); err != nil {
			p.t.Error(err)
		}
	})
	return f
}

func (f *follower) seed() {
	f.p.t.Helper()
	result, err := replica.Seed(f.p.t.Context(), f.p.Replica, f.dir, replica.RestoreOptions{Path: f.path})
	if err != nil || result.Pos.TXID != f.p.pos.TXID {
		f.p.t.Fatalf("seeded %+v, %v; want %v", result, err, f.p.pos)
	}
}

func (f *follower) open() {
	f.p.t.Helper()
	var err error
	if f.copy, err = apply.Open(f.p.t.Context(), f.path, f.dir, apply.Options{}); err != nil {
		f.p.t.Fatal(err)
	}
	r := replica.New(f.bucket, replica.LayoutDir, slog.New(slog.DiscardHandler))
	f.Follower = replica.NewFollower(r, f.copy, f.options)
}

func (f *follower) reopen() {
	f.p.t.Helper()
	if err := f.copy.Close(); err != nil {
		f.p.t.Fatal(err)
	}
	f.open()
}

// catchUp brings the copy to the newest state and checks that it is there.
func (f *follower) catchUp() replica.Tip {
	f.p.t.Helper()
	tip, err := f.CatchUp(f.p.t.Context())
	if err != nil {
		f.p.t.Fatal(err)
	}
	if tip.Pos != f.p.pos || f.copy.Pos() != f.p.pos || tip.Commit != f.p.pages() || tip.PageSize != f.p.pageSize {
		f.p.t.Fatalf("at %+v, the copy at %v; want %v of %d pages", tip, f.copy.Pos(), f.p.pos, f.p.pages())
	}
	return tip
}

// promote releases the copy, which must be the primary byte for byte then, with
// page sums that say the same, and takes it up again.
func (f *follower) promote() {
	f.p.t.Helper()
	pos := f.copy.Pos()
	if err := f.copy.Release(f.p.t.Context()); err != nil {
		f.p.t.Fatal(err)
	}
	got, err := os.ReadFile(f.path)
	if err != nil {
		f.p.t.Fatal(err)
	}
	if !bytes.Equal(got, f.p.image) {
		f.p.t.Errorf("the released file is not the primary's: %d bytes, want %d", len(got), len(f.p.image))
	}
	sums, err := ltx.OpenPageSums(filepath.Join(f.dir, "sums"))
	if err != nil {
		f.p.t.Fatal(err)
	}
	if err := sums.Verify(); err != nil || sums.Pos() != pos || sums.Pages() != f.p.pages() {
		f.p.t.Errorf("page sums at %v of %d pages, %v; want %v", sums.Pos(), sums.Pages(), err, pos)
	}
	sums.Close()
	f.open()
}
