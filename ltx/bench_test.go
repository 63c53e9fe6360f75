package ltx

import (
	"bytes"
	"context"
	"errors"
	"hash/crc64"
	"io"
	"testing"
	"time"

	sltx "github.com/superfly/ltx"
)

const (
	benchPages    = 256
	benchPageSize = 4096
	benchBytes    = benchPages * benchPageSize
)

// duel measures us and the reference in turns, so that both see the same
// machine, and reports the best run of each and their ratio.
func duel(b *testing.B, size int, ours, reference func() error) {
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, run := range []func() error{ours, reference} {
			start := time.Now()
			if err := run(); err != nil {
				b.Fatal(err)
			}
			best[i] = min(best[i], time.Since(start))
		}
	}
	speed := func(d time.Duration) float64 { return float64(size) / float64(d.Nanoseconds()) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(speed(best[0]), "GB/s")
	b.ReportMetric(speed(best[1]), "reference-GB/s")
	b.ReportMetric(speed(best[0])/speed(best[1]), "ratio")
}

// benchFile is a file of pages first, first+step and so on.
func benchFile(txid TXID, first, step uint32) *Spec {
	s := &Spec{
		Header: Header{
			Version: Version, PageSize: benchPageSize, Commit: first + step*(benchPages-1), MinTXID: txid, MaxTXID: txid,
		},
		PostApply: ChecksumFlag,
	}
	if txid > 1 {
		s.Header.PreApplyChecksum = ChecksumFlag
	}
	for i := range uint32(benchPages) {
		p := PageSpec{Pgno: first + i*step, Data: rowPage(benchPageSize, uint64(i)+uint64(txid)<<32)}
		s.Pages = append(s.Pages, p)
		if txid == 1 {
			s.PostApply = ChecksumFlag | (s.PostApply ^ ChecksumPage(p.Pgno, p.Data))
		}
	}
	return s
}

// encodeReference is Spec.WriteTo by the reference.
func encodeReference(w io.Writer, s *Spec) error {
	e, err := sltx.NewEncoder(w)
	if err != nil {
		return err
	}
	if err := e.EncodeHeader(s.Header); err != nil {
		return err
	}
	for _, p := range s.Pages {
		if err := e.EncodePage(PageHeader{Pgno: p.Pgno}, p.Data); err != nil {
			return err
		}
	}
	e.SetPostApplyChecksum(s.PostApply)
	return e.Close()
}

func BenchmarkCRC(b *testing.B) {
	page, table := rowPage(benchPageSize, 1), crc64.MakeTable(crc64.ISO)
	const repeat = 16
	duel(b, repeat*benchPageSize, func() error {
		for range repeat {
			crcUpdate(0, page)
		}
		return nil
	}, func() error {
		for range repeat {
			crc64.Update(0, table, page)
		}
		return nil
	})
}

func BenchmarkEncode(b *testing.B) {
	s := benchFile(2, 1, 1)
	duel(b, benchBytes, func() error {
		_, err := s.WriteTo(io.Discard)
		return err
	}, func() error {
		return encodeReference(io.Discard, s)
	})
}

// BenchmarkParallelEncode has two goroutines compress, as many as a copy of a
// whole database has.
func BenchmarkParallelEncode(b *testing.B) {
	s := benchFile(1, 1, 1)
	duel(b, benchBytes, func() error {
		e, err := NewEncoder(io.Discard, s.Header)
		if err != nil {
			return err
		}
		pages := NewParallelEncoder(e, 2, func(uint32, Checksum) error { return nil })
		for _, p := range s.Pages {
			if err = pages.WritePage(p.Pgno, p.Data); err != nil {
				break
			}
		}
		if err = errors.Join(pages.Wait(), err); err == nil {
			_, err = e.Close(s.PostApply)
		}
		return err
	}, func() error {
		return encodeReference(io.Discard, s)
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, txid := range map[string]TXID{"snapshot": 1, "increment": 2} {
		b.Run(name, func(b *testing.B) {
			var buf bytes.Buffer
			if _, err := benchFile(txid, 1, 1).WriteTo(&buf); err != nil {
				b.Fatal(err)
			}
			duel(b, benchBytes, func() error {
				_, _, err := VerifyFile(bytes.NewReader(buf.Bytes()))
				return err
			}, func() error {
				d := sltx.NewDecoder(bytes.NewReader(buf.Bytes()))
				d.SetRetainPageIndex(false)
				return d.Verify()
			})
		})
	}
}

// BenchmarkMerge merges 8 files, which have no page in common or most.
func BenchmarkMerge(b *testing.B) {
	const sources = 8
	for name, file := range map[string]func(i uint32) *Spec{
		"disjoint":    func(i uint32) *Spec { return benchFile(TXID(i+2), i+1, sources) },
		"overlapping": func(i uint32) *Spec { return benchFile(TXID(i+2), 1, i%3+1) },
	} {
		b.Run(name, func(b *testing.B) {
			var files [sources]bytes.Buffer
			for i := range files {
				if _, err := file(uint32(i)).WriteTo(&files[i]); err != nil {
					b.Fatal(err)
				}
			}
			open := func() (srcs []io.Reader) {
				for i := range files {
					srcs = append(srcs, bytes.NewReader(files[i].Bytes()))
				}
				return srcs
			}
			benchMerge(b, sources*benchBytes, open)
		})
	}
}

func benchMerge(b *testing.B, size int, open func() []io.Reader) {
	duel(b, size, func() error {
		_, _, err := Merge(context.Background(), io.Discard, open()...)
		return err
	}, func() error {
		c, err := sltx.NewCompactor(io.Discard, open())
		if err != nil {
			return err
		}
		return c.Compact(context.Background())
	})
}
