package ltx_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
)

// parallel writes s by some goroutines and returns the checksums told.
func parallel(w io.Writer, s *ltx.Spec, workers int) (sums []ltx.Checksum, err error) {
	e, err := ltx.NewEncoder(w, s.Header)
	if err != nil {
		return nil, err
	}
	p := ltx.NewParallelEncoder(e, workers, func(pgno uint32, sum ltx.Checksum) error {
		if want := s.Pages[len(sums)].Pgno; pgno != want {
			return fmt.Errorf("page %d was told, want %d", pgno, want)
		}
		sums = append(sums, sum)
		return nil
	})
	var buf []byte
	for _, page := range s.Pages {
		buf = append(buf[:0], page.Data...)
		if err = p.WritePage(page.Pgno, buf); err != nil {
			break
		}
		clear(buf) // it is the caller's again
	}
	if err = errors.Join(p.Wait(), err); err != nil {
		return nil, err
	}
	_, err = e.Close(s.PostApply)
	return sums, err
}

// ascending returns the numbers from 1 to n.
func ascending(n uint32) (pgnos []uint32) {
	for pgno := range n {
		pgnos = append(pgnos, pgno+1)
	}
	return pgnos
}

func TestSeveralGoroutinesWriteTheSameFile(t *testing.T) {
	const batch = 256 << 10
	for _, size := range []uint32{512, 4096, 65536} {
		full := uint32(batch) / size
		for _, pages := range []uint32{1, full - 1, full, full + 1, 5*full + 1} {
			want := fileOf(1, size, pages, ascending(pages)...)
			file := encode(t, want)
			for _, workers := range []int{1, 3} {
				var got bytes.Buffer
				sums, err := parallel(&got, want, workers)
				if err != nil {
					t.Fatalf("%d pages of %d bytes, %d workers: %v", pages, size, workers, err)
				}
				if !bytes.Equal(got.Bytes(), file) {
					t.Errorf("%d pages of %d bytes, %d workers: the file differs", pages, size, workers)
				}
				for i, p := range want.Pages {
					if sums[i] != ltx.ChecksumPage(p.Pgno, p.Data) {
						t.Fatalf("%d pages of %d bytes, %d workers: checksum of page %d is %s", pages, size, workers, p.Pgno, sums[i])
					}
				}
			}
		}
	}
	none := fileOf(2, 512, 3)
	var got bytes.Buffer
	if _, err := parallel(&got, none, 2); err != nil || !bytes.Equal(got.Bytes(), encode(t, none)) {
		t.Errorf("a file without pages differs, err = %v", err)
	}
}

func TestAnErrorEndsSeveralGoroutines(t *testing.T) {
	const pages = 40 // of which a batch has four
	s := fileOf(1, 65536, pages, ascending(pages)...)
	size := len(encode(t, s))
	for _, n := range []int{100, size / 2, size - 100_000} {
		if _, err := parallel(&failAfter{n}, s, 2); !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("writer that fails after %d of %d bytes: %v", n, size, err)
		}
	}
	gap, beyond := fileOf(1, 65536, pages, 1, 2, 4), fileOf(1, 65536, 1, ascending(pages)...)
	for name, s := range map[string]*ltx.Spec{"a gap in a snapshot": gap, "pages beyond the commit": beyond} {
		if _, err := parallel(io.Discard, s, 2); err == nil {
			t.Errorf("%s: was accepted", name)
		}
	}
	for _, last := range []uint32{1, pages / 2, pages} {
		e, err := ltx.NewEncoder(io.Discard, s.Header)
		if err != nil {
			t.Fatal(err)
		}
		stop := errors.New("stop")
		p := ltx.NewParallelEncoder(e, 2, func(pgno uint32, _ ltx.Checksum) error {
			if pgno > last {
				t.Errorf("page %d was told after the error", pgno)
			}
			if pgno == last {
				return stop
			}
			return nil
		})
		var taken int // how many pages were, before the error came back
		for _, page := range s.Pages {
			if err = p.WritePage(page.Pgno, page.Data); err != nil {
				break
			}
			taken++
		}
		if err != nil && !errors.Is(err, stop) {
			t.Errorf("error at page %d: WritePage returned %v", last, err)
		}
		if last == 1 && taken == pages {
			t.Errorf("all %d pages were taken after the first could not be written", taken)
		}
		if err := p.Wait(); !errors.Is(err, stop) {
			t.Errorf("error at page %d: Wait returned %v", last, err)
		}
	}
}

func TestSeveralGoroutinesRefuseShortPages(t *testing.T) {
	s := fileOf(1, 512, 1, 1)
	e, err := ltx.NewEncoder(io.Discard, s.Header)
	if err != nil {
		t.Fatal(err)
	}
	p := ltx.NewParallelEncoder(e, 2, func(uint32, ltx.Checksum) error { return nil })
	for _, n := range []int{0, 511, 513} {
		if err := p.WritePage(1, make([]byte, n)); err == nil {
			t.Errorf("a page of %d bytes was accepted", n)
		}
	}
	if err := errors.Join(p.WritePage(1, s.Pages[0].Data), p.Wait()); err != nil {
		t.Errorf("after refused pages: %v", err)
	}
}
