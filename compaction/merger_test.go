package compaction_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/compaction"
	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func (h *history) merger() *compaction.Merger {
	return compaction.NewMerger(h.bucket, h.Replica, h.scratch, compaction.MergerOptions{})
}

func level1(sources []ltx.FileInfo) compaction.Job { return compaction.Job{Level: 1, Sources: sources} }

func TestAMergedFileStandsForItsSources(t *testing.T) {
	h := newHistory(t)
	files := h.write(20)[1:]
	f, err := h.merger().Merge(t.Context(), level1(files))
	if err != nil {
		t.Fatal(err)
	}
	listed := h.list(1)
	if len(listed) != 1 || listed[0] != f || f.Min != 2 || f.Max != 20 {
		t.Fatalf("got %v, listed %v", f, listed)
	}
	header, trailer, err := ltx.VerifyFile(bytes.NewReader(h.read(f)))
	if err != nil || header.Timestamp != 20*1000 || trailer.PostApplyChecksum != h.pos.PostApplyChecksum {
		t.Errorf("header %+v, trailer %+v, %v: want the time of the last commit and its checksum", header, trailer, err)
	}
	h.remove(files...)
	h.restored(0)
}

func TestMergingAgainIsFineAndStoresNothing(t *testing.T) {
	h := newHistory(t)
	files := h.write(5)[1:]
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Effect: storagetest.LoseReply, Times: 1})
	if _, err := h.merger().Merge(t.Context(), level1(files)); !errors.Is(err, storagetest.ErrInjected) {
		t.Fatalf("got %v", err)
	}
	first := h.list(1)
	for range 2 {
		f, err := h.merger().Merge(t.Context(), level1(files))
		if err != nil || f.Size != first[0].Size || f.Max != 5 {
			t.Errorf("got %v, %v", f, err)
		}
	}
	if again := h.list(1); again[0] != first[0] {
		t.Errorf("got %v instead of %v", again, first)
	}
}

func TestAnotherHistoryUnderTheNameIsFencing(t *testing.T) {
	h, other := newHistory(t), newHistory(t)
	files := h.write(5)[1:]
	other.random.Uint64()
	theirs, err := other.merger().Merge(t.Context(), level1(other.write(5)[1:]))
	if err != nil {
		t.Fatal(err)
	}
	h.put(theirs, other.read(theirs))
	if _, err := h.merger().Merge(t.Context(), level1(files)); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("got %v, want ErrFenced", err)
	}
}

func TestReadsThatBreakOrShowTooLittleAreRepeated(t *testing.T) {
	for name, faults := range map[string][]storagetest.Fault{
		"not there at first":   {{Op: storagetest.Get, Times: 3, Err: storage.ErrNotFound}},
		"cut short":            {{Op: storagetest.Get, Times: 8, Effect: storagetest.CutBody, Bytes: 50}},
		"many errors":          eachFile(2, 8, storagetest.Fault{Op: storagetest.Get, Times: 5}),
		"an error a few bytes": {{Op: storagetest.Get, Times: 40, Effect: storagetest.CutBody, Bytes: 16 << 10, Keys: "ltx/0/*8.ltx"}},
		"errors between pieces": slices.Repeat([]storagetest.Fault{
			{Op: storagetest.Get, Times: 2, Effect: storagetest.CutBody, Bytes: 16 << 10, Keys: "ltx/0/*8.ltx"},
			{Op: storagetest.Get, Times: 4, Keys: "ltx/0/*8.ltx"},
		}, 10),
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t)
			files := h.write(7)[1:]
			// Large enough to come in many pieces.
			large := h.commitLarge()
			files = append(files, large)
			h.bucket.Inject(faults...)
			if _, err := h.merger().Merge(t.Context(), level1(files)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			h.bucket.Heal()
			h.restored(0)
		})
	}
}

// eachFile has a fault of its own for each level-0 file of these TXIDs.
func eachFile(first, last ltx.TXID, fault storagetest.Fault) (faults []storagetest.Fault) {
	for txid := first; txid <= last; txid++ {
		fault.Keys = "ltx/0/" + txid.String() + "-*"
		faults = append(faults, fault)
	}
	return faults
}

// commitLarge stores a commit of some 600 KB.
func (h *history) commitLarge() ltx.FileInfo {
	h.image = append(h.image, make([]byte, 1300*pageSize)...)
	for i := range h.image[40*pageSize:] {
		h.image[40*pageSize+i] = byte(h.random.Uint32())
	}
	pre, sum := h.pos.PostApplyChecksum, ltx.Checksum(0)
	for i := 0; i < len(h.image); i += pageSize {
		sum ^= ltx.ChecksumPage(uint32(i/pageSize)+1, h.image[i:i+pageSize])
	}
	h.pos = ltx.Pos{TXID: h.pos.TXID + 1, PostApplyChecksum: sum | ltx.ChecksumFlag}
	h.images[h.pos.TXID] = bytes.Clone(h.image)
	b := h.encode(h.pos.TXID, pre, func(pgno uint32) bool { return pgno > 40 })
	return h.put(ltx.FileInfo{Min: h.pos.TXID, Max: h.pos.TXID}, b)
}

func TestADamagedSourceIsNamedAndNothingIsStored(t *testing.T) {
	for name, damage := range map[string]func(h *history, f ltx.FileInfo){
		"a bit": func(h *history, f ltx.FileInfo) {
			b := h.read(f)
			b[len(b)/2] ^= 1
			h.put(f, b)
		},
		"zeros": func(h *history, f ltx.FileInfo) { h.put(f, make([]byte, f.Size)) },
		"another file": func(h *history, f ltx.FileInfo) {
			h.put(f, h.read(ltx.FileInfo{Min: 2, Max: 2}))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t)
			files := h.write(8)[1:]
			damage(h, files[3])
			for i, f := range h.list(0) {
				files[i].Size = f.Size
			}
			_, err := h.merger().Merge(t.Context(), level1(files))
			var source *compaction.SourceError
			if !errors.As(err, &source) || source.File.Min != 5 {
				t.Errorf("%s: got %v", name, err)
			}
			if left := h.list(1); len(left) != 0 {
				t.Errorf("%s: stored %v", name, left)
			}
		})
	}
}

func TestAChainThatIsBrokenIsNotMerged(t *testing.T) {
	h, other := newHistory(t), newHistory(t)
	other.random.Uint64()
	files, theirs := h.write(8)[1:], other.write(8)[1:]
	files[3] = h.put(theirs[3], other.read(theirs[3]))
	_, err := h.merger().Merge(t.Context(), level1(files))
	var source *compaction.SourceError
	if !errors.As(err, &source) || source.File.Min != 5 || !errors.Is(err, ltx.ErrChecksum) {
		t.Errorf("got %v", err)
	}
}

func TestAClaimThatMarksABaseIsNotMerged(t *testing.T) {
	h := newHistory(t)
	files := h.write(5)[1:]
	var b bytes.Buffer
	enc, err := ltx.NewEncoder(&b, ltx.Header{Flags: ltx.FlagNoChecksum, PageSize: pageSize, Commit: 40, MinTXID: 6, MaxTXID: 6})
	if err == nil {
		_, err = enc.Close(0)
	}
	if err != nil || b.Len() != claimSize {
		t.Fatalf("claim of %d bytes, %v", b.Len(), err)
	}
	files = append(files, h.put(ltx.FileInfo{Min: 6, Max: 6}, b.Bytes()))
	var source *compaction.SourceError
	if _, err := h.merger().Merge(t.Context(), level1(files)); !errors.As(err, &source) || source.File.Min != 6 {
		t.Errorf("got %v", err)
	}
}

// here is a Local with some files.
type here map[ltx.TXID][]byte

func (l here) Open(f ltx.FileInfo) (io.ReadCloser, error) {
	b, ok := l[f.Min]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func TestLocalFilesAreReadFirstUnlessTheyAreDamaged(t *testing.T) {
	h, local := newHistory(t), here{}
	files := h.write(8)[1:]
	for _, f := range files[1:] {
		local[f.Min] = h.read(f)
	}
	local[4] = local[4][:60]             // breaks off
	local[5] = bytes.Repeat(local[5], 2) // too long
	local[6][len(local[6])/2] ^= 1       // damaged
	gets := h.bucket.Calls(storagetest.Get)
	m := compaction.NewMerger(h.bucket, h.Replica, h.scratch, compaction.MergerOptions{Local: local})
	if _, err := m.Merge(t.Context(), level1(files)); err != nil {
		t.Fatal(err)
	}
	if got := h.bucket.Calls(storagetest.Get) - gets; got != 4 {
		t.Errorf("%d requests, want one for each of four", got)
	}
	h.remove(files...)
	h.restored(0)
}

// descriptors counts the open files of the process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestNothingIsLeftOfMergesThatFail(t *testing.T) {
	h := newHistory(t)
	files := h.write(7)[1:]
	m := h.merger()
	merge := func() {
		if _, err := m.Merge(t.Context(), level1(files)); !errors.Is(err, storagetest.ErrInjected) {
			t.Fatalf("got %v", err)
		}
	}
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Put})
	merge()
	before, open := runtime.NumGoroutine(), descriptors(t)
	for range 20 {
		merge()
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines became %d", before, now)
	}
	if now := descriptors(t); now > open || h.scratch.Used() != 0 {
		t.Errorf("%d descriptors became %d, %d bytes of scratch in use", open, now, h.scratch.Used())
	}
}

func TestScratchThatIsFullIsSaid(t *testing.T) {
	h := newHistory(t)
	files := h.write(7)[1:]
	small, err := scratch.New(t.TempDir(), 2000)
	if err != nil {
		t.Fatal(err)
	}
	m := compaction.NewMerger(h.bucket, h.Replica, small, compaction.MergerOptions{})
	start := time.Now()
	if _, err := m.Merge(t.Context(), level1(files)); !errors.Is(err, scratch.ErrScratchFull) || small.Used() != 0 {
		t.Errorf("got %v after %v, %d bytes in use", err, time.Since(start), small.Used())
	}
	if err := small.Close(); err != nil {
		t.Error(err)
	}
}
