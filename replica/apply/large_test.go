//go:build !race

package apply_test

import (
	"iter"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

func TestTheLockPageIsPassedOver(t *testing.T) {
	const size, lock = 65536, 1<<30/65536 + 1
	s := newSource(t, testdb.Options{PageSize: size, JournalMode: "DELETE"}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
	c := newCopied(t, s.image, s.pos)
	zero, base := make([]byte, size), s.image
	total := s.pos.PostApplyChecksum
	for pgno := uint32(len(base)/size) + 1; pgno <= lock+2; pgno++ {
		if pgno != lock {
			total ^= ltx.ChecksumPage(pgno, zero)
		}
	}
	total |= ltx.ChecksumFlag
	grown := ltx.Pos{TXID: s.pos.TXID + 1, PostApplyChecksum: total}
	c.apply(apply.Change{PageSize: size, Commit: lock + 2, Pre: s.pos, Post: grown, Pages: func() iter.Seq2[ltx.Page, error] {
		return func(yield func(ltx.Page, error) bool) {
			for pgno := uint32(len(base)/size) + 1; pgno <= lock+2; pgno++ {
				if pgno != lock && !yield(ltx.Page{Pgno: pgno, Data: zero, Sum: ltx.ChecksumPage(pgno, zero)}, nil) {
					return
				}
			}
		}
	}})
	c.close()
	c.open()
	back := ltx.Pos{TXID: grown.TXID + 1, PostApplyChecksum: s.pos.PostApplyChecksum}
	c.apply(apply.Change{PageSize: size, Commit: uint32(len(base) / size), Pre: grown, Post: back})
	c.release(base, back)
}
