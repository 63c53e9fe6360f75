package replica_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// history is a database in memory that commits random pages, and the replica
// that its files go to.
type history struct {
	*replica.Replica
	t        testing.TB
	bucket   *storagetest.Faulty
	random   *rand.Rand
	pageSize uint32
	plain    bool   // files carry no database checksums
	timed    bool   // transactions have the time that second says
	image    []byte // the database now
	pos      ltx.Pos
	images   map[ltx.TXID][]byte
}

func newHistory(t testing.TB, pageSize uint32) *history {
	t.Helper()
	dir, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := storagetest.NewFaulty(dir)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return &history{
		Replica: replica.New(b, replica.LayoutDir, log), t: t, bucket: b,
		random: rand.New(rand.NewPCG(7, uint64(pageSize))), pageSize: pageSize,
		pos: ltx.Pos{PostApplyChecksum: ltx.ChecksumFlag}, images: map[ltx.TXID][]byte{},
	}
}

func (h *history) pages() uint32 { return uint32(len(h.image) / int(h.pageSize)) }

func (h *history) page(pgno uint32) []byte {
	return h.image[(pgno-1)*h.pageSize : pgno*h.pageSize]
}

// commit changes some pages, sets the size of the database and returns the
// file of the commit.
func (h *history) commit(pages uint32, changes int) []byte {
	h.t.Helper()
	changed := map[uint32]bool{}
	for pgno := h.pages() + 1; pgno <= pages; pgno++ {
		changed[pgno] = true
	}
	h.image = append(h.image, make([]byte, int(pages*h.pageSize))...)[:pages*h.pageSize]
	for range min(changes, int(pages)) {
		changed[1+h.random.Uint32N(pages)] = true
	}
	spec := &ltx.Spec{Header: h.header(h.pos.TXID+1, h.pos.TXID+1)}
	for pgno := uint32(1); pgno <= pages; pgno++ {
		if changed[pgno] || h.pos.TXID == 0 {
			h.scribble(h.page(pgno))
			spec.Pages = append(spec.Pages, ltx.PageSpec{Pgno: pgno, Data: h.page(pgno)})
		}
	}
	h.pos = ltx.Pos{TXID: h.pos.TXID + 1, PostApplyChecksum: h.sum()}
	h.images[h.pos.TXID] = bytes.Clone(h.image)
	spec.PostApply = h.pos.PostApplyChecksum
	return h.encode(spec)
}

// snapshot returns a file with every page.
func (h *history) snapshot() []byte {
	h.t.Helper()
	spec := &ltx.Spec{Header: h.header(1, h.pos.TXID), PostApply: h.pos.PostApplyChecksum}
	for pgno := uint32(1); pgno <= h.pages(); pgno++ {
		if pgno != ltx.LockPgno(h.pageSize) {
			spec.Pages = append(spec.Pages, ltx.PageSpec{Pgno: pgno, Data: h.page(pgno)})
		}
	}
	return h.encode(spec)
}

func (h *history) header(minTXID, maxTXID ltx.TXID) ltx.Header {
	header := ltx.Header{PageSize: h.pageSize, Commit: h.pages(), MinTXID: minTXID, MaxTXID: maxTXID, Timestamp: 1}
	if h.timed {
		header.Timestamp = second(maxTXID).UnixMilli()
	}
	if h.plain {
		header.Flags = ltx.FlagNoChecksum
	} else if minTXID > 1 {
		header.PreApplyChecksum = h.pos.PostApplyChecksum
	}
	return header
}

// scribble makes a page half random, so that it compresses by half.
func (h *history) scribble(page []byte) {
	for i := 0; i < len(page)/2; i += 8 {
		binary.LittleEndian.PutUint64(page[i:], h.random.Uint64())
	}
}

func (h *history) sum() ltx.Checksum {
	sum := ltx.Checksum(0)
	for pgno := uint32(1); pgno <= h.pages(); pgno++ {
		sum ^= ltx.ChecksumPage(pgno, h.page(pgno))
	}
	return sum | ltx.ChecksumFlag
}

func (h *history) encode(spec *ltx.Spec) []byte {
	h.t.Helper()
	if h.plain {
		spec.PostApply = 0
	}
	var b bytes.Buffer
	if _, err := spec.WriteTo(&b); err != nil {
		h.t.Fatal(err)
	}
	return b.Bytes()
}

// put stores a file as it is.
func (h *history) put(f ltx.FileInfo, b []byte) {
	h.t.Helper()
	if _, err := h.bucket.Put(h.t.Context(), h.Key(f), bytes.NewReader(b), storage.Condition{}); err != nil {
		h.t.Fatal(err)
	}
}

// write commits and stores the commit n times.
func (h *history) write(n int, pages uint32) {
	h.t.Helper()
	for range n {
		b := h.commit(pages, 3)
		h.put(ltx.FileInfo{Min: h.pos.TXID, Max: h.pos.TXID}, b)
	}
}

// remove deletes a file.
func (h *history) remove(f ltx.FileInfo) {
	h.t.Helper()
	if err := h.bucket.Delete(h.t.Context(), h.Key(f)); err != nil {
		h.t.Fatal(err)
	}
}

// read returns a file as it is stored.
func (h *history) read(f ltx.FileInfo) []byte {
	h.t.Helper()
	body, err := h.Open(h.t.Context(), f, storage.Range{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

func mergeAll(ctx context.Context, w io.Writer, sources []*bytes.Reader) error {
	readers := make([]io.Reader, len(sources))
	for i, s := range sources {
		readers[i] = s
	}
	_, _, err := ltx.Merge(ctx, w, readers...)
	return err
}
