package replica_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// verify verifies the replica.
func (h *history) verify() (replica.Verification, error) {
	h.t.Helper()
	space, err := scratch.New(h.t.TempDir(), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	sums, err := ltx.OpenPageSums(filepath.Join(h.t.TempDir(), "sums"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(sums.Close(), space.Close()); err != nil || space.Used() != 0 {
			h.t.Errorf("close: %v, %d bytes of scratch left", err, space.Used())
		}
	}()
	var done, total int64
	v, err := replica.Verify(h.t.Context(), h.Replica, replica.VerifyOptions{
		Scratch: space, Sums: sums, Progress: func(d, n int64) { done, total = d, n },
	})
	if err == nil && (done > total || len(v.Faults) == 0 && done != total) {
		h.t.Errorf("progress ended at %d of %d", done, total)
	}
	return v, err
}

// layered is a replica with all levels, some of whose files were deleted.
func layered(t *testing.T, plain bool) *history {
	h := newHistory(t, 512)
	h.plain = plain
	h.write(4, 40)
	h.write(8, 60)
	h.write(8, 30)
	h.put(file(9, 1, 20), h.snapshot())
	h.write(20, 50)
	h.merge(1, 21, 25)
	h.merge(1, 26, 30)
	h.merge(1, 31, 40)
	h.merge(2, 21, 40)
	h.merge(1, 24, 28) // overlaps
	for txid := ltx.TXID(1); txid <= 30; txid++ {
		if txid != 22 {
			h.remove(file(0, txid, txid))
		}
	}
	return h
}

// replace stores a file again with its first page changed, right by itself.
func (h *history) replace(f ltx.FileInfo) {
	h.t.Helper()
	var spec ltx.Spec
	if _, err := spec.ReadFrom(bytes.NewReader(h.read(f))); err != nil {
		h.t.Fatal(err)
	}
	spec.Pages[0].Data[17+f.Level] ^= 1 // equal changes of two pages cancel out in the sum
	h.put(f, h.encode(&spec))
}

func TestVerifyFindsNothingWrongInASoundReplica(t *testing.T) {
	for _, plain := range []bool{false, true} {
		h := layered(t, plain)
		v, err := h.verify()
		if err != nil || len(v.Faults) != 0 || v.Proven != h.pos || v.Last.TXID != 40 || v.First.TXID != 20 || v.Files != 17 {
			t.Errorf("got %+v, %v", v, err)
		}
		want := map[string]bool{"overlap": true, "no database checksums": plain}
		for text, there := range want {
			if notes := strings.Join(v.Notes, "\n"); strings.Contains(notes, text) != there {
				t.Errorf("plain %v: notes are %q", plain, notes)
			}
		}
	}
}

func TestVerifyNamesEachFault(t *testing.T) {
	for name, tt := range map[string]struct {
		damage    func(h *history)
		key, says string
		last      ltx.TXID
	}{
		"a cut file": {func(h *history) { h.put(file(1, 26, 30), h.read(file(1, 26, 30))[:300]) },
			"ltx/1/000000000000001a-000000000000001e.ltx", "corrupt", 40},
		"a short file": {func(h *history) { h.put(file(0, 35, 35), []byte("x")) }, "ltx/0/0000000000000023", "too short", 40},
		"another page in a merged file": {func(h *history) { h.replace(file(2, 21, 40)) },
			"ltx/2/0000000000000015-0000000000000028.ltx", "its pages make", 40},
		"another page in a small file": {func(h *history) { h.replace(file(0, 36, 36)) }, "ltx/0/0000000000000024", "its pages make", 40},
		"missing files": {func(h *history) {
			h.remove(file(2, 21, 40))
			h.remove(file(1, 31, 40))
			h.remove(file(0, 37, 37))
		}, "", "0000000000000025: no sound file", 36},
		"no snapshot": {func(h *history) { h.remove(file(9, 1, 20)) }, "", "no sound file to start from", 0},
		"a file of another line": {func(h *history) {
			other := newHistory(h.t, 512)
			other.random.Uint64()
			other.write(40, 50)
			h.put(file(0, 40, 40), other.read(file(0, 40, 40)))
		}, "ltx/0/0000000000000028", "applies to a database with checksum", 40},
	} {
		h := layered(t, false)
		tt.damage(h)
		v, err := h.verify()
		if err != nil || len(v.Faults) == 0 {
			t.Errorf("%s: got %+v, %v", name, v, err)
			continue
		}
		f := v.Faults[0]
		if len(v.Faults) > 1 || !strings.HasPrefix(f.Key, tt.key) || !strings.Contains(f.Problem, tt.says) || f.Advice == "" || v.Last.TXID != tt.last {
			t.Errorf("%s: got %+v, last %d", name, v.Faults, v.Last.TXID)
		}
	}
}

func TestVerifyComparesFilesWithoutChecksums(t *testing.T) {
	h := layered(t, true)
	h.replace(file(2, 21, 40))
	v, err := h.verify()
	if err != nil || len(v.Faults) != 1 || v.Faults[0].Key != h.Key(file(2, 21, 40)) {
		t.Errorf("got %+v, %v", v.Faults, err)
	}
}

func TestVerifyOfHolesClaimsAndStrangers(t *testing.T) {
	h := layered(t, false)
	for _, f := range []ltx.FileInfo{file(2, 21, 40), file(1, 31, 40), file(0, 37, 37)} {
		h.remove(f)
	}
	h.put(file(9, 1, 40), h.snapshot())
	if _, err := h.bucket.Put(t.Context(), "ltx/README.txt", strings.NewReader("hello"), storage.Condition{}); err != nil {
		t.Fatal(err)
	}
	h.commit(55, 3) // a base, with its claim
	h.put(file(9, 1, 41), h.snapshot())
	claim := h.header(41, 41)
	claim.Flags, claim.PreApplyChecksum = ltx.FlagNoChecksum, 0
	h.plain = true
	h.put(file(0, 41, 41), h.encode(&ltx.Spec{Header: claim}))
	h.plain = false
	h.write(3, 55)
	v, err := h.verify()
	if err != nil || len(v.Faults) != 0 || v.Proven != h.pos {
		t.Fatalf("got %+v, %v", v, err)
	}
	notes := strings.Join(v.Notes, "\n")
	for _, want := range []string{"transaction 0000000000000025: only a snapshot", "transaction 0000000000000029: only", "ltx/README.txt"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q do not say %q", notes, want)
		}
	}
}

func TestVerifyThatCannotReadIsAnError(t *testing.T) {
	h := newHistory(t, 512)
	if _, err := h.verify(); !errors.Is(err, replica.ErrNoBackup) {
		t.Errorf("nothing: got %v", err)
	}
	h = layered(t, false)
	h.bucket.Inject(storagetest.Fault{Op: storagetest.List, Effect: storagetest.BreakList, Bytes: 3})
	if v, err := h.verify(); err == nil {
		t.Errorf("a list that breaks: got %+v", v)
	}
	h.bucket.Heal()
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Keys: "ltx/1/*", Err: storage.ErrForbidden})
	if v, err := h.verify(); !errors.Is(err, storage.ErrForbidden) {
		t.Errorf("files that may not be read: got %+v, %v", v, err)
	}
	h.bucket.Heal()
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Get, Keys: "ltx/1/*", Err: storage.ErrNotFound, Times: 2})
	if v, err := h.verify(); err != nil || len(v.Faults) != 0 || v.Proven != h.pos {
		t.Errorf("files that vanish and come back: got %+v, %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	space, _ := scratch.New(t.TempDir(), 0)
	if _, err := replica.Verify(ctx, h.Replica, replica.VerifyOptions{Scratch: space}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
}
