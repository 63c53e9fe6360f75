package ltx_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
)

func TestEncoderRefusesInvalidHeaders(t *testing.T) {
	valid := fileOf(2, 512, 3).Header
	for name, change := range map[string]func(*ltx.Header){
		"page size":               func(h *ltx.Header) { h.PageSize = 1000 },
		"no TXID":                 func(h *ltx.Header) { h.MinTXID = 0 },
		"TXIDs backwards":         func(h *ltx.Header) { h.MinTXID, h.MaxTXID = 5, 4 },
		"no pre-apply checksum":   func(h *ltx.Header) { h.PreApplyChecksum = 0 },
		"pre-apply without flag":  func(h *ltx.Header) { h.PreApplyChecksum = 1 },
		"pre-apply of a snapshot": func(h *ltx.Header) { h.MinTXID = 1 },
		"pre-apply, no checksums": func(h *ltx.Header) { h.Flags = ltx.FlagNoChecksum },
		"unknown flag":            func(h *ltx.Header) { h.Flags = 1 },
	} {
		h := valid
		change(&h)
		if _, err := ltx.NewEncoder(io.Discard, h); err == nil {
			t.Errorf("%s: header was accepted", name)
		}
	}
}

func TestEncoderRefusesPagesAgainstTheRules(t *testing.T) {
	lock := ltx.LockPgno(512)
	for name, c := range map[string]struct {
		txid    ltx.TXID
		commit  uint32
		written []uint32
		refused uint32
	}{
		"page 0":                      {2, 9, nil, 0},
		"beyond the commit":           {2, 9, nil, 10},
		"the same again":              {2, 9, []uint32{4}, 4},
		"descending":                  {2, 9, []uint32{4}, 3},
		"lock page":                   {2, lock + 1, []uint32{4}, lock},
		"snapshot not from page 1":    {1, 9, nil, 2},
		"gap in a snapshot":           {1, 9, []uint32{1, 2}, 4},
		"any page of an empty commit": {2, 0, nil, 1},
	} {
		s := fileOf(c.txid, 512, c.commit, c.written...)
		e, err := ltx.NewEncoder(io.Discard, s.Header)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Pages {
			if _, err := e.WritePage(p.Pgno, p.Data); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		before := e.N()
		if _, err := e.WritePage(c.refused, make([]byte, 512)); err == nil {
			t.Errorf("%s: page %d was accepted", name, c.refused)
		}
		if _, err := e.WritePage(c.commit, make([]byte, 511)); err == nil {
			t.Errorf("%s: short page was accepted", name)
		}
		if e.N() != before {
			t.Errorf("%s: a refused page was written", name)
		}
	}
}

func TestEncoderGoesOnAfterARefusedPage(t *testing.T) {
	want := fileOf(1, 512, 2, 1, 2)
	var buf bytes.Buffer
	e, err := ltx.NewEncoder(&buf, want.Header)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range want.Pages {
		if _, err := e.WritePage(7, p.Data); err == nil {
			t.Fatal("page 7 of 2 was accepted")
		}
		sum, err := e.WritePage(p.Pgno, p.Data)
		if err != nil {
			t.Fatal(err)
		}
		if sum != ltx.ChecksumPage(p.Pgno, p.Data) {
			t.Errorf("page %d: checksum = %s", p.Pgno, sum)
		}
	}
	if _, err := e.Close(want.PostApply ^ 1); !errors.Is(err, ltx.ErrChecksum) {
		t.Fatalf("close with a wrong checksum: %v", err)
	}
	trailer, err := e.Close(want.PostApply)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.Close(want.PostApply); err != nil || again != trailer {
		t.Errorf("second close = %v, %v", again, err)
	}
	if _, err := e.WritePage(3, want.Pages[0].Data); err == nil {
		t.Error("closed encoder accepted a page")
	}
	if !bytes.Equal(buf.Bytes(), encode(t, want)) {
		t.Error("file differs from one written without refusals")
	}
}

func TestEncoderRefusesInvalidEnds(t *testing.T) {
	noSums := fileOf(3, 512, 9, 2)
	noSums.Header.Flags, noSums.Header.PreApplyChecksum = ltx.FlagNoChecksum, 0
	emptied := fileOf(3, 512, 0)
	emptied.PostApply |= 5
	short, unflagged, none := fileOf(1, 512, 3, 1, 2), fileOf(2, 512, 3), fileOf(2, 512, 3)
	unflagged.PostApply &^= ltx.ChecksumFlag
	none.PostApply = 0
	for name, s := range map[string]*ltx.Spec{
		"incomplete snapshot": short, "checksum where there are none": noSums, "no checksum": none,
		"checksum without flag": unflagged, "emptied database with pages": emptied,
	} {
		if _, err := s.WriteTo(io.Discard); err == nil {
			t.Errorf("%s: was accepted", name)
		}
	}
}

// failAfter fails once n bytes were written.
type failAfter struct{ n int }

func (w *failAfter) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n < 0 {
		return 0, io.ErrShortBuffer
	}
	return len(b), nil
}

func TestErrorsOfTheWriterStay(t *testing.T) {
	s := fileOf(1, 65536, 4, 1, 2, 3, 4)
	size := len(encode(t, s))
	for _, n := range []int{0, 99, size / 2, size - 1} {
		if _, err := s.WriteTo(&failAfter{n}); !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("writer that fails after %d bytes: %v", n, err)
		}
	}
}

func TestFramesNotDecodedAreRefused(t *testing.T) {
	e, err := ltx.NewEncoder(io.Discard, fileOf(2, 512, 3).Header)
	if err != nil {
		t.Fatal(err)
	}
	err = e.WriteFrame(ltx.Frame{Pgno: 1, Page: make([]byte, 512)})
	if err == nil || !strings.Contains(err.Error(), "not decoded") {
		t.Errorf("err = %v", err)
	}
}

func TestCodecsDoNotAllocateForEachPage(t *testing.T) {
	const pages = 2000
	large := fileOf(1, 512, pages, ascending(pages)...)
	b := encode(t, large)
	for name, c := range map[string]struct {
		most float64
		run  func() error
	}{
		"encode and verify": {50, func() error {
			_, err := large.WriteTo(io.Discard)
			_, _, bad := ltx.VerifyFile(bytes.NewReader(b))
			return errors.Join(err, bad)
		}},
		"encode by several goroutines": {100, func() error { // each of its batches has buffers
			_, err := parallel(io.Discard, large, 2)
			return err
		}},
	} {
		allocs := testing.AllocsPerRun(3, func() {
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > c.most {
			t.Errorf("%s: %v allocations for %d pages", name, allocs, pages)
		}
	}
}
