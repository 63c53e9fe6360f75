package apply_test

import (
	"bytes"
	"fmt"
	"iter"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

// BenchmarkApply changes some pages of a database of 160 MB at a time, without
// and with a process that reads the rest of it.
func BenchmarkApply(b *testing.B) {
	s := newSource(b, testdb.Options{}, ledger, ledgerRows(500), "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", fmt.Sprintf(fill, 40000, 3900))
	for _, n := range []int{1, 100, 10_000} {
		for _, readers := range []int{0, 1} {
			b.Run(fmt.Sprintf("%d pages, %d readers", n, readers), func(b *testing.B) {
				c := newCopied(b, s.image, s.pos)
				changes := [2]apply.Change{scattered(s, n, 1), scattered(s, n, 2)}
				all := startReaders(b, "total", c.path, readers)
				txid := s.pos.TXID
				b.ResetTimer()
				for i := range b.N {
					f := changes[i%2]
					txid++
					f.Post.TXID = txid
					c.apply(f)
				}
				b.StopTimer()
				if reads := stopReaders(b, all); readers > 0 {
					b.ReportMetric(float64(reads)/b.Elapsed().Seconds(), "reads/s")
				}
			})
		}
	}
}

// scattered changes one byte in each of n pages, far apart where there is room,
// to a value for each version. They are leaves of the table that nobody reads.
func scattered(s *source, n int, version byte) apply.Change {
	const size = 4096
	total := uint32(len(s.image) / size)
	step := (total - 5000) / uint32(n)
	var pages []ltx.Page
	for pgno := total - step*uint32(n-1); pgno <= total; pgno += step {
		if page(s.image, pgno)[0] != 13 {
			continue
		}
		data := bytes.Clone(page(s.image, pgno))
		data[size-100] = version
		pages = append(pages, ltx.Page{Pgno: pgno, Data: data, Sum: ltx.ChecksumPage(pgno, data)})
	}
	return apply.Change{
		PageSize: size, Commit: total,
		Pages: func() iter.Seq2[ltx.Page, error] { return yieldAll(pages) },
	}
}
