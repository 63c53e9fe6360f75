package ltx_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	sltx "github.com/superfly/ltx"

	"github.com/tidemark-io/tidemark/ltx"
)

// merge merges the encoded specs.
func merge(t testing.TB, specs ...*ltx.Spec) []byte {
	t.Helper()
	var srcs []io.Reader
	for _, s := range specs {
		srcs = append(srcs, bytes.NewReader(encode(t, s)))
	}
	var buf bytes.Buffer
	if _, _, err := ltx.Merge(context.Background(), &buf, srcs...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// referenceMerge does it by the reference implementation.
func referenceMerge(t testing.TB, flags uint32, specs ...*ltx.Spec) []byte {
	t.Helper()
	var srcs []io.Reader
	for _, s := range specs {
		srcs = append(srcs, bytes.NewReader(encode(t, s)))
	}
	var buf bytes.Buffer
	c, err := sltx.NewCompactor(&buf, srcs)
	if err != nil {
		t.Fatal(err)
	}
	c.HeaderFlags = flags
	if err := c.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestMergeDoesWhatTheReferenceDoes(t *testing.T) {
	specs := []*ltx.Spec{
		fileOf(4, 1024, 20, 1, 2, 3, 17, 20),
		fileOf(5, 1024, 30, 2, 25, 30),
		fileOf(6, 1024, 30),
		fileOf(7, 1024, 19, 1, 3, 18),
	}
	got, want := decode(t, merge(t, specs...)), decode(t, referenceMerge(t, 0, specs...))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged to %+v\nwant %+v", got.Header, want.Header)
	}
}

func TestMergeMakesASnapshotOfABaseAndItsIncrements(t *testing.T) {
	base, second, third := chain()
	got := decode(t, merge(t, base, second, third))
	want := &ltx.Spec{
		Header: ltx.Header{
			Version: ltx.Version, PageSize: 512, Commit: 3, MinTXID: 1, MaxTXID: 3, Timestamp: third.Header.Timestamp,
		},
		Pages:     []ltx.PageSpec{base.Pages[0], third.Pages[0], second.Pages[1]},
		PostApply: third.PostApply,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged to %+v\nwant %+v", got, want)
	}
}

// chain is a base of 2 pages; page 2 and 4 pages in all; page 2 and 3 pages in
// all. Their checksums are true.
func chain() (base, second, third *ltx.Spec) {
	base, second, third = fileOf(1, 512, 2, 1, 2), fileOf(2, 512, 4, 2, 3, 4), fileOf(3, 512, 3, 2)
	sum := func(pages ...ltx.PageSpec) ltx.Checksum {
		all := ltx.ChecksumFlag
		for _, p := range pages {
			all = ltx.ChecksumFlag | (all ^ ltx.ChecksumPage(p.Pgno, p.Data))
		}
		return all
	}
	second.Header.PreApplyChecksum = base.PostApply
	second.PostApply = sum(append([]ltx.PageSpec{base.Pages[0]}, second.Pages...)...)
	third.Header.PreApplyChecksum = second.PostApply
	third.PostApply = sum(base.Pages[0], third.Pages[0], second.Pages[1])
	return base, second, third
}

func TestMergedFramesAreCopied(t *testing.T) {
	base, _, _ := chain()
	if b := referenceEncode(t, base); !bytes.Equal(mergeBytes(t, b), b) {
		t.Error("merging a single file is not the identity")
	}
}

func TestMergeWritesOldFramesInTheNewForm(t *testing.T) {
	base, second, _ := chain()
	got := mergeBytes(t, oldForm(t, base), oldForm(t, second))
	if want := merge(t, base, second); !bytes.Equal(got, want) {
		t.Error("old frames merge to something else than new ones")
	}
}

// mergeBytes merges encoded files.
func mergeBytes(t testing.TB, files ...[]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	h, trailer, err := ltx.Merge(context.Background(), &buf, readers(files...)...)
	if err != nil {
		t.Fatal(err)
	}
	gotH, gotT, err := ltx.VerifyFile(bytes.NewReader(buf.Bytes()))
	if err != nil || gotH != h || gotT != trailer {
		t.Fatalf("file is %+v, %+v (%v)\nmerge said %+v, %+v", gotH, gotT, err, h, trailer)
	}
	return buf.Bytes()
}

func readers(files ...[]byte) (all []io.Reader) {
	for _, b := range files {
		all = append(all, bytes.NewReader(b))
	}
	return all
}

func TestMergeWithAFileWithoutChecksumsHasNone(t *testing.T) {
	base, second, third := chain()
	second.Header.Flags, second.Header.PreApplyChecksum, second.PostApply = ltx.FlagNoChecksum, 0, 0
	got := decode(t, merge(t, base, second, third))
	if !got.Header.NoChecksum() || got.Header.PreApplyChecksum != 0 || got.PostApply != 0 {
		t.Errorf("merged to %+v, post-apply %s", got.Header, got.PostApply)
	}
	want := decode(t, referenceMergeNoChecksum(t, base, second, third))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged to %+v\nwant %+v", got.Header, want.Header)
	}
}

// referenceMergeNoChecksum merges after it has dropped all checksums.
func referenceMergeNoChecksum(t testing.TB, specs ...*ltx.Spec) []byte {
	t.Helper()
	var plain []*ltx.Spec
	for _, s := range specs {
		c := *s
		c.Header.Flags, c.Header.PreApplyChecksum, c.PostApply = ltx.FlagNoChecksum, 0, 0
		plain = append(plain, &c)
	}
	return referenceMerge(t, ltx.FlagNoChecksum, plain...)
}

func TestMergeAsTakesSourcesOfTheSameTXID(t *testing.T) {
	_, second, third := chain()
	third.Header.MinTXID, third.Header.MaxTXID = 2, 2
	var buf bytes.Buffer
	h, trailer, err := ltx.MergeAs(context.Background(), &buf, 2, 2, readers(encode(t, second), encode(t, third))...)
	if err != nil {
		t.Fatal(err)
	}
	if h.MinTXID != 2 || h.MaxTXID != 2 || h.PreApplyChecksum != second.Header.PreApplyChecksum || trailer.PostApplyChecksum != third.PostApply {
		t.Errorf("merged to %+v, %+v", h, trailer)
	}
	if _, _, err := ltx.Merge(context.Background(), io.Discard, readers(encode(t, second), encode(t, third))...); err == nil {
		t.Error("Merge took two files of one TXID")
	}
	_, _, err = ltx.MergeAs(context.Background(), io.Discard, 2, 2, readers(encode(t, third), encode(t, second))...)
	if !errors.Is(err, ltx.ErrChecksum) {
		t.Errorf("merge in the wrong order: %v", err)
	}
}

func TestMergeTakesOverlappingFiles(t *testing.T) {
	base, second, third := chain()
	whole := merge(t, base, second, third)
	head, tail := merge(t, base, second), mergeBytes(t, encode(t, second), encode(t, third))
	if got := mergeBytes(t, head, tail); !bytes.Equal(got, whole) {
		t.Error("1-2 and 2-3 merge to something else than 1, 2 and 3")
	}
}

func TestMergeRefusesSourcesThatDoNotFit(t *testing.T) {
	base, second, third := chain()
	broken := *third
	broken.Header.PreApplyChecksum ^= 1
	untrue := *third
	untrue.PostApply ^= 1
	damaged := encode(t, third)
	damaged[len(damaged)-1] ^= 1
	for name, c := range map[string]struct {
		files [][]byte
		want  error
	}{
		"nothing":           {nil, nil},
		"gap":               {[][]byte{encode(t, base), encode(t, third)}, nil},
		"wrong order":       {[][]byte{encode(t, second), encode(t, base)}, nil},
		"other page size":   {[][]byte{encode(t, base), encode(t, fileOf(2, 1024, 2, 1))}, nil},
		"broken chain":      {[][]byte{encode(t, base), encode(t, second), encode(t, &broken)}, ltx.ErrChecksum},
		"untrue post-apply": {[][]byte{encode(t, base), encode(t, second), encode(t, &untrue)}, ltx.ErrChecksum},
		"damaged source":    {[][]byte{encode(t, base), encode(t, second), damaged}, ltx.ErrChecksum},
		"cut source":        {[][]byte{encode(t, base), encode(t, second)[:300]}, ltx.ErrCorrupt},
	} {
		_, _, err := ltx.Merge(context.Background(), io.Discard, readers(c.files...)...)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestMergeEndsWithItsContext(t *testing.T) {
	base, _, _ := chain()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(io.ErrNoProgress)
	if _, _, err := ltx.Merge(ctx, io.Discard, bytes.NewReader(encode(t, base))); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("err = %v", err)
	}
}

// TestMergesAgreeWithApplyingOneByOne compares with a database kept as a map.
func TestMergesAgreeWithApplyingOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for range 50 {
		pages := map[uint32][]byte{}
		var specs []*ltx.Spec
		commit, sum := uint32(0), ltx.ChecksumFlag
		for txid := ltx.TXID(1); txid <= 6; txid++ {
			commit = max(1, commit/2+rng.Uint32N(20))
			s := fileOf(txid, 512, commit)
			for pgno := uint32(1); pgno <= commit; pgno++ {
				if _, known := pages[pgno]; !known || rng.IntN(3) == 0 {
					pages[pgno] = pageOf(512, rng.Uint64())
					s.Pages = append(s.Pages, ltx.PageSpec{Pgno: pgno, Data: pages[pgno]})
				}
			}
			maps.DeleteFunc(pages, func(pgno uint32, _ []byte) bool { return pgno > commit })
			if txid > 1 {
				s.Header.PreApplyChecksum = sum
			}
			sum = ltx.ChecksumFlag
			for pgno, data := range pages {
				sum = ltx.ChecksumFlag | (sum ^ ltx.ChecksumPage(pgno, data))
			}
			s.PostApply = sum
			specs = append(specs, s)
		}
		cut := rng.IntN(len(specs)-1) + 1
		got := decode(t, mergeBytes(t, merge(t, specs[:cut]...), merge(t, specs[cut:]...)))
		if len(got.Pages) != len(pages) || got.PostApply != sum {
			t.Fatalf("%d pages, %s; want %d, %s", len(got.Pages), got.PostApply, len(pages), sum)
		}
		for _, p := range got.Pages {
			if !bytes.Equal(p.Data, pages[p.Pgno]) {
				t.Fatalf("page %d is not the newest", p.Pgno)
			}
		}
	}
}
