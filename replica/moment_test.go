package replica_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// second is the time of the TXID of the same number.
func second(txid ltx.TXID) time.Time { return time.UnixMilli(1_700_000_000_000 + 1000*int64(txid)) }

func TestTimeIsInclusiveAndNeverNewer(t *testing.T) {
	h := newHistory(t, 512)
	h.timed = true
	h.write(20, 30)
	for _, tt := range []struct {
		at   time.Duration
		want ltx.TXID
	}{{0, 7}, {time.Millisecond, 7}, {999 * time.Millisecond, 7}, {time.Second, 8}, {-time.Millisecond, 6}, {time.Hour, 20}} {
		h.checkTime(second(7).Add(tt.at), tt.want)
	}
}

// checkTime restores the state of a time and compares it with that of a TXID.
func (h *history) checkTime(at time.Time, want ltx.TXID) replica.RestoreResult {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "app.db")
	result, err := replica.Restore(h.t.Context(), h.Replica, replica.RestoreOptions{Path: path, Time: at})
	if err != nil {
		h.t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, h.images[want]) || result.Pos.TXID != want || !result.Time.Equal(second(want)) {
		h.t.Errorf("%v: got transaction %v of %v, %v; want %d", at, result.Pos, result.Time, err, want)
	}
	return result
}

func TestTimeWithinAMergedFileGivesWhatIsBeforeIt(t *testing.T) {
	h := newHistory(t, 512)
	h.timed = true
	h.write(10, 30)
	h.put(file(9, 1, 10), h.snapshot())
	h.write(20, 30)
	h.merge(1, 11, 20)
	h.merge(2, 11, 30)
	h.merge(1, 21, 30)
	for txid := ltx.TXID(1); txid <= 29; txid++ {
		if txid != 25 {
			h.remove(file(0, txid, txid)) // 25 is left, and leads nowhere
		}
	}
	for at, want := range map[ltx.TXID][2]ltx.TXID{10: {10, 20}, 19: {10, 20}, 20: {20, 30}, 25: {20, 30}, 29: {20, 30}, 30: {30, 0}, 99: {30, 0}} {
		m, err := h.At(t.Context(), second(at))
		if err != nil || m.TXID != want[0] || !m.Time.Equal(second(want[0])) || m.Next.TXID != want[1] {
			t.Errorf("at %d: got %+v, %v; want %d and then %d", at, m, err, want[0], want[1])
		}
		if result := h.checkTime(second(at), want[0]); result.Next != m.Next || result.Newest != 30 {
			t.Errorf("at %d: the restore says %+v", at, result)
		}
	}
	var outside *replica.OutsideError
	_, err := h.At(t.Context(), second(9))
	if !errors.As(err, &outside) || outside.First.TXID != 10 || outside.Last.TXID != 30 || !errors.Is(err, replica.ErrOutside) {
		t.Errorf("before everything: got %v", err)
	}
	_, _, err = h.restore(17)
	if err == nil || !strings.Contains(err.Error(), second(10).Format("05.000")) || !strings.Contains(err.Error(), second(20).Format("05.000")) {
		t.Errorf("a transaction within a merged file: got %v, want the times around it", err)
	}
}

func TestTimeBehindAHoleIsNoOlderState(t *testing.T) {
	h := newHistory(t, 512)
	h.timed = true
	h.write(9, 30)
	h.remove(file(0, 6, 6))
	h.checkTime(second(5), 5)
	for _, at := range []ltx.TXID{7, 9, 50} {
		var e *replica.UnreachableError
		if _, err := h.At(t.Context(), second(at)); !errors.As(err, &e) || e.Missing != 6 || !e.EarlierTime.Equal(second(5)) {
			t.Errorf("at %d: got %v, want that transaction 6 is missing", at, err)
		}
	}
	h.put(file(0, 6, 6), []byte("short"))
	if _, err := h.At(t.Context(), second(6)); err != nil {
		t.Errorf("at a damaged file: %v", err)
	}
	_, err := replica.Restore(t.Context(), h.Replica, replica.RestoreOptions{Path: filepath.Join(t.TempDir(), "db"), Time: second(8)})
	if !errors.Is(err, replica.ErrUnreachable) || !strings.Contains(err.Error(), h.Key(file(0, 6, 6))) {
		t.Errorf("behind a damaged file: got %v, want its key", err)
	}
}

func TestTimeOfManyFilesTakesFewRequests(t *testing.T) {
	const n = 10_000
	dir, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := storagetest.NewFaulty(dir)
	r := replica.New(b, replica.LayoutDir, nil)
	if err := os.MkdirAll(filepath.Join(strings.TrimPrefix(dir.String(), "file://"), "ltx/0"), 0o700); err != nil {
		t.Fatal(err)
	}
	page := make([]byte, 512)
	for txid := ltx.TXID(1); txid <= n; txid++ {
		spec := ltx.Spec{
			Header: ltx.Header{Flags: ltx.FlagNoChecksum, PageSize: 512, Commit: 1, MinTXID: txid, MaxTXID: txid, Timestamp: second(txid).UnixMilli()},
			Pages:  []ltx.PageSpec{{Pgno: 1, Data: page}},
		}
		var file bytes.Buffer
		if _, err := spec.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(strings.TrimPrefix(dir.String(), "file://"), r.Key(ltx.FileInfo{Min: txid, Max: txid}))
		if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 3 {
		txid := 1 + ltx.TXID(random.IntN(n))
		gets, lists := b.Calls(storagetest.Get), b.Calls(storagetest.List)
		m, err := r.At(t.Context(), second(txid).Add(time.Millisecond))
		if err != nil || m.TXID != txid {
			t.Errorf("got %v, %v; want %d", m, err, txid)
		}
		if gets, lists = b.Calls(storagetest.Get)-gets, b.Calls(storagetest.List)-lists; gets > 16 || lists != 1 {
			t.Errorf("it took %d reads and %d listings", gets, lists)
		}
	}
}

func TestTimeAgreesWithLookingAtEveryState(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for i := range 60 {
		h := newHistory(t, 512)
		h.timed = true
		h.write(12, 4)
		var kept []ltx.FileInfo
		for _, f := range append(randomFiles(r), file(9, 1, 3)) {
			if f.Max <= 12 && !slices.ContainsFunc(kept, func(k ltx.FileInfo) bool { return h.Key(k) == h.Key(f) }) && f.Level > 0 {
				kept = append(kept, f)
				h.merge(f.Level, f.Min, f.Max)
			}
		}
		for txid := ltx.TXID(1); txid <= 12; txid++ {
			if r.IntN(3) > 0 {
				h.remove(file(0, txid, txid))
			} else {
				kept = append(kept, file(0, txid, txid))
			}
		}
		states := replica.States(kept)
		at := ltx.TXID(r.IntN(14))
		m, err := h.At(t.Context(), second(at))
		later, _ := slices.BinarySearch(states, at+1)
		var missing *replica.UnreachableError
		switch {
		case errors.As(err, &missing) && missing.Missing > 0:
		case later == 0 && errors.Is(err, replica.ErrOutside):
		case err != nil || later == 0 || m.TXID != states[later-1]:
			t.Fatalf("%d: files %v at %d: got %s, %v; states are %v", i, kept, at, fmt.Sprint(m), err, states)
		}
	}
}
