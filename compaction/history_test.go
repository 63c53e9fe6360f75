package compaction_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

const pageSize = 512

// history is a database in memory that commits random pages, and the replica
// that its files go to.
type history struct {
	*replica.Replica
	t       testing.TB
	bucket  *storagetest.Faulty
	clock   *clocked
	scratch *scratch.Space
	random  *rand.Rand

	mu     sync.Mutex // of all that follows; a snapshot is taken beside commits
	image  []byte
	pos    ltx.Pos
	images map[ltx.TXID][]byte
}

func newHistory(t testing.TB) *history {
	t.Helper()
	dir, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	space, err := scratch.New(filepath.Join(t.TempDir(), "scratch"), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if used := space.Used(); used != 0 {
			t.Errorf("%d bytes of scratch are in use at the end", used)
		}
		if err := space.Close(); err != nil {
			t.Error(err)
		}
	})
	clock := &clocked{Bucket: dir, times: map[string]time.Time{}}
	b := storagetest.NewFaulty(clock)
	return &history{
		Replica: replica.New(b, replica.LayoutDir, slog.New(slog.DiscardHandler)), t: t, bucket: b, clock: clock, scratch: space,
		random: rand.New(rand.NewPCG(7, 8)), pos: ltx.Pos{PostApplyChecksum: ltx.ChecksumFlag}, images: map[ltx.TXID][]byte{},
	}
}

// clocked gives objects the time of the bubble they are stored in, which the
// file system does not know.
type clocked struct {
	storage.Bucket
	behind time.Duration // its clock
	mu     sync.Mutex
	times  map[string]time.Time
}

func (c *clocked) Put(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
	o, err := c.Bucket.Put(ctx, key, body, cond)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.ModTime = time.Now().Add(-c.behind)
		c.times[key] = o.ModTime
	}
	return o, err
}

// time is when an object was stored, gone or not.
func (c *clocked) time(key string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.times[key]
}

func (c *clocked) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		for o, err := range c.Bucket.List(ctx, prefix, after) {
			o.ModTime = c.time(o.Key)
			if !yield(o, err) {
				return
			}
		}
	}
}

// encode returns the file from TXID first to the position now, of the pages
// that want names.
func (h *history) encode(first ltx.TXID, pre ltx.Checksum, want func(pgno uint32) bool) []byte {
	h.t.Helper()
	pages := uint32(len(h.image) / pageSize)
	spec := &ltx.Spec{PostApply: h.pos.PostApplyChecksum, Header: ltx.Header{
		PageSize: pageSize, Commit: pages, MinTXID: first, MaxTXID: h.pos.TXID,
		Timestamp: int64(h.pos.TXID) * 1000, PreApplyChecksum: pre,
	}}
	for pgno := uint32(1); pgno <= pages; pgno++ {
		if want(pgno) {
			spec.Pages = append(spec.Pages, ltx.PageSpec{Pgno: pgno, Data: h.image[(pgno-1)*pageSize : pgno*pageSize]})
		}
	}
	var b bytes.Buffer
	if _, err := spec.WriteTo(&b); err != nil {
		h.t.Fatal(err)
	}
	return b.Bytes()
}

// commit changes some of 40 pages and returns the file.
func (h *history) commit(changes int) []byte {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	const pages = 40
	changed := map[uint32]bool{}
	if h.image == nil {
		h.image = make([]byte, pages*pageSize)
		changes = 1000
	}
	for range changes {
		pgno := h.random.Uint32N(pages)
		changed[pgno+1] = true
		binary.LittleEndian.PutUint64(h.image[pgno*pageSize:], h.random.Uint64())
	}
	pre := h.pos.PostApplyChecksum
	sum := ltx.Checksum(0)
	for pgno := uint32(1); pgno <= pages; pgno++ {
		sum ^= ltx.ChecksumPage(pgno, h.image[(pgno-1)*pageSize:pgno*pageSize])
	}
	h.pos = ltx.Pos{TXID: h.pos.TXID + 1, PostApplyChecksum: sum | ltx.ChecksumFlag}
	h.images[h.pos.TXID] = bytes.Clone(h.image)
	if h.pos.TXID == 1 {
		pre = 0
	}
	return h.encode(h.pos.TXID, pre, func(pgno uint32) bool { return changed[pgno] })
}

// Snapshot implements compaction.Snapshotter.
func (h *history) Snapshot(_ context.Context, w io.Writer) (ltx.Pos, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := w.Write(h.encode(1, 0, func(uint32) bool { return true }))
	return h.pos, err
}

// put stores a file and returns what is known of it.
func (h *history) put(f ltx.FileInfo, b []byte) ltx.FileInfo {
	h.t.Helper()
	o, err := h.bucket.Put(h.t.Context(), h.Key(f), bytes.NewReader(b), storage.Condition{})
	if err != nil {
		h.t.Fatal(err)
	}
	f.Size, f.ModTime = int64(len(b)), o.ModTime
	return f
}

// write commits and stores n times; the first file ever is the base.
func (h *history) write(n int) (files []ltx.FileInfo) {
	h.t.Helper()
	for range n {
		b := h.commit(3)
		f := ltx.FileInfo{Min: h.pos.TXID, Max: h.pos.TXID}
		if h.pos.TXID == 1 {
			f.Level = ltx.LevelSnapshot
		}
		files = append(files, h.put(f, b))
	}
	return files
}

// remove deletes files.
func (h *history) remove(files ...ltx.FileInfo) {
	h.t.Helper()
	for _, f := range files {
		if err := h.bucket.Delete(h.t.Context(), h.Key(f)); err != nil {
			h.t.Fatal(err)
		}
	}
}
