package compaction_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/ltx"
)

// spec returns a file of one TXID that changes a page.
func (h *history) spec(txid ltx.TXID, generation uint64, pre, post ltx.Checksum, pages ...ltx.PageSpec) []byte {
	h.t.Helper()
	spec := &ltx.Spec{PostApply: post, Pages: pages, Header: ltx.Header{
		PageSize: pageSize, Commit: uint32(len(h.image) / pageSize), MinTXID: txid, MaxTXID: txid,
		Timestamp: int64(txid) * 1000, PreApplyChecksum: pre, NodeID: generation << 32,
	}}
	var b bytes.Buffer
	if _, err := spec.WriteTo(&b); err != nil {
		h.t.Fatal(err)
	}
	return b.Bytes()
}

// claim stores a file without pages at the next TXID.
func (h *history) claim(generation uint64) ltx.FileInfo {
	h.t.Helper()
	h.mu.Lock()
	h.pos.TXID++
	h.images[h.pos.TXID] = bytes.Clone(h.image)
	b := h.spec(h.pos.TXID, generation, h.pos.PostApplyChecksum, h.pos.PostApplyChecksum)
	h.mu.Unlock()
	return h.put(ltx.FileInfo{Min: h.pos.TXID, Max: h.pos.TXID}, b)
}

// late has something stored under a level-0 name that retention gave free, and
// tells what becomes of it before it would expire.
func late(t *testing.T, txid ltx.TXID, content func(w *working, was []byte) []byte) (deleted bool, w *working) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorking(t, noSnapshots)
		w.write(4)
		w.claim(2) // TXID 5
		w.commits(20)
		f := ltx.FileInfo{Min: txid, Max: txid}
		was := w.read(f)
		w.run(func() { <-time.After(40 * time.Second) })
		if slices.ContainsFunc(w.list(0), func(f ltx.FileInfo) bool { return f.Max == txid }) {
			t.Fatalf("TXID %d did not expire: level 0 is %s", txid, names(w.list(0)))
		}
		w.put(f, content(w, was))
		w.restart() // which is when it shows
		w.run(func() { <-time.After(6 * time.Second) })
		deleted = !slices.ContainsFunc(w.list(0), func(f ltx.FileInfo) bool { return f.Max == txid })
		w.restored(0)
	})
	return deleted, w
}

func TestWhatAWriterThatWasShutOutStoresLateIsDeletedWithProofOnly(t *testing.T) {
	page := func(w *working) ltx.PageSpec { return ltx.PageSpec{Pgno: 3, Data: bytes.Repeat([]byte{7}, pageSize)} }
	of := func(generation uint64, pre, post ltx.Checksum) func(*working, []byte) []byte {
		return func(w *working, _ []byte) []byte {
			return w.spec(12, generation, pre|ltx.ChecksumFlag, post|ltx.ChecksumFlag, page(w))
		}
	}
	for _, c := range []struct {
		name    string
		content func(*working, []byte) []byte
		deleted bool
		proof   string
	}{
		{"of a generation before the claim", of(1, 5, 6), true, "generation 1 is older than 2"},
		{"of the same generation", of(2, 5, 6), false, ""},
		{"of no generation", of(0, 5, 6), false, ""},
		{"the file itself", func(_ *working, was []byte) []byte { return was }, false, ""},
		{"damaged", func(w *working, was []byte) []byte {
			b := of(1, 5, 6)(w, was)
			b[len(b)/2] ^= 1
			return b
		}, false, ""},
	} {
		deleted, w := late(t, 12, c.content)
		if warned := strings.Contains(w.log.String(), "shut out"); deleted != c.deleted || warned != c.deleted || !strings.Contains(w.log.String(), c.proof) {
			t.Errorf("%s: deleted %v, logged %s", c.name, deleted, w.log.String())
		}
	}
}

func TestNoSnapshotIsMadeAtTheClaimOfAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, nil)
		w.commits(20)
		w.Uploaded(w.claim(3)) // TXID 21
		w.restart()
		w.run(func() {
			<-time.After(time.Hour)
			if got := names(w.list(9)); got != "9:1-1" {
				t.Errorf("snapshots are %s", got)
			}
			w.commits(1)
			if got := names(w.list(9)); got != "9:1-1 9:1-22" {
				t.Errorf("snapshots are %s", got)
			}
		})
		w.restored(0)
	})
}

func TestAStrayBesideItsNeighborsIsToldByChecksums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorking(t, func(o *compaction.Options) { noSnapshots(o); o.Config.Retention.Level0 = time.Minute })
		w.commits(20)
		w.run(func() { <-time.After(15 * time.Second) })
		gone := w.list(0)[8]
		w.remove(gone) // below level 1
		w.put(gone, w.spec(gone.Max, 0, ltx.ChecksumFlag|5, ltx.ChecksumFlag|6, ltx.PageSpec{Pgno: 1, Data: make([]byte, pageSize)}))
		w.restart()
		w.run(func() { <-time.After(time.Second) })
		if slices.ContainsFunc(w.list(0), func(f ltx.FileInfo) bool { return f.Max == gone.Max }) || w.warnings() != 1 {
			t.Errorf("level 0 is %s, logged %s", names(w.list(0)), w.log.String())
		}
		w.restored(0)
	})
}
