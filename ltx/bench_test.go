package ltx

import (
	"bytes"
	"context"
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

// benchHeader is that of a file whose pages are step apart.
func benchHeader(txid TXID, step int) Header {
	return Header{
		Version: Version, PageSize: benchPageSize, Commit: uint32(step * benchPages),
		MinTXID: txid, MaxTXID: txid, PreApplyChecksum: ChecksumFlag | Checksum(txid-1),
	}
}

// encodeOurs spreads pages over the file.
func encodeOurs(w io.Writer, h Header, post Checksum, pages [][]byte) error {
	step := int(h.Commit) / len(pages)
	e, err := NewEncoder(w, h)
	if err != nil {
		return err
	}
	for i, page := range pages {
		if _, err := e.WritePage(uint32((i+1)*step), page); err != nil {
			return err
		}
	}
	_, err = e.Close(post)
	return err
}

func encodeReference(w io.Writer, h Header, pages [][]byte) error {
	e, err := sltx.NewEncoder(w)
	if err != nil {
		return err
	}
	if err := e.EncodeHeader(h); err != nil {
		return err
	}
	for i, page := range pages {
		if err := e.EncodePage(PageHeader{Pgno: uint32(i + 1)}, page); err != nil {
			return err
		}
	}
	e.SetPostApplyChecksum(ChecksumFlag)
	return e.Close()
}

func benchData() (pages [][]byte) {
	for i := range uint64(benchPages) {
		pages = append(pages, rowPage(benchPageSize, i))
	}
	return pages
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
	pages := benchData()
	duel(b, benchBytes, func() error {
		return encodeOurs(io.Discard, benchHeader(2, 1), ChecksumFlag, pages)
	}, func() error {
		return encodeReference(io.Discard, benchHeader(2, 1), pages)
	})
}

func BenchmarkDecode(b *testing.B) {
	pages := benchData()
	post := ChecksumFlag
	for i, page := range pages {
		post = ChecksumFlag | (post ^ ChecksumPage(uint32(i+1), page))
	}
	snapshot := benchHeader(1, 1)
	snapshot.PreApplyChecksum = 0
	b.Run("snapshot", func(b *testing.B) { benchDecode(b, snapshot, post, pages) })
	b.Run("increment", func(b *testing.B) { benchDecode(b, benchHeader(2, 1), post, pages) })
}

func benchDecode(b *testing.B, h Header, post Checksum, pages [][]byte) {
	var buf bytes.Buffer
	if err := encodeOurs(&buf, h, post, pages); err != nil {
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
}

// BenchmarkMerge merges 8 files that overlap in part.
func BenchmarkMerge(b *testing.B) {
	const sources = 8
	files, pages := make([][]byte, sources), benchData()
	for i := range files {
		var buf bytes.Buffer
		txid := TXID(i + 2)
		if err := encodeOurs(&buf, benchHeader(txid, i%3+1), ChecksumFlag|Checksum(txid), pages); err != nil {
			b.Fatal(err)
		}
		files[i] = buf.Bytes()
	}
	open := func() (srcs []io.Reader) {
		for _, f := range files {
			srcs = append(srcs, bytes.NewReader(f))
		}
		return srcs
	}
	duel(b, sources*benchBytes, func() error {
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
