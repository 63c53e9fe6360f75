package apply_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica/apply"
)

const fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO t(v) SELECT randomblob(%d) FROM n"

func TestACopyIsWhatItsSourceIsAfterEachChange(t *testing.T) {
	for _, o := range []testdb.Options{
		{PageSize: 512}, {PageSize: 1024, JournalMode: "DELETE"}, {PageSize: 4096, AutoVacuum: "FULL"},
		{PageSize: 8192, AutoVacuum: "INCREMENTAL", JournalMode: "DELETE"}, {PageSize: 65536},
	} {
		t.Run(fmt.Sprintf("%d %s %s", o.PageSize, o.JournalMode, o.AutoVacuum), func(t *testing.T) {
			t.Parallel()
			s := newSource(t, o, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", fmt.Sprintf(fill, 50, 700))
			c := newCopied(t, s.image, s.pos)
			random := rand.New(rand.NewPCG(3, uint64(o.PageSize)))
			for step := range 40 {
				c.apply(s.exec(someStatement(random, step)))
				if c.Pos() != s.pos || int(c.Pages()*c.PageSize()) != len(s.image) {
					t.Fatalf("step %d: the copy is at %v with %d pages", step, c.Pos(), c.Pages())
				}
				if step%8 == 0 {
					testdb.SameDatabase(t, s.path, c.path)
					c.close()
					c.open()
				}
			}
			testdb.SameDatabase(t, s.path, c.path)
			c.release(s.image, s.pos)
		})
	}
}

func someStatement(random *rand.Rand, step int) string {
	switch random.IntN(8) {
	case 0:
		return "DELETE FROM t WHERE id % 3 = 0"
	case 1:
		return "VACUUM"
	case 2:
		return "PRAGMA incremental_vacuum"
	case 3:
		return fmt.Sprintf("CREATE TABLE IF NOT EXISTS t%d (x)", step)
	case 4:
		return "UPDATE t SET v = randomblob(length(v)) WHERE id % 5 = 1"
	}
	return fmt.Sprintf(fill, 1+random.IntN(60), 1+random.IntN(3000))
}

func TestAChangeThatDoesNotFitChangesNothing(t *testing.T) {
	s := newSource(t, testdb.Options{PageSize: 1024}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
	c := newCopied(t, s.image, s.pos)
	before := s.pos
	good := s.exec(fmt.Sprintf(fill, 30, 500))
	twice := good
	twice.Pre = good.Post
	wrong := good
	wrong.Post.PostApplyChecksum ^= 1
	short := good
	short.Commit++
	odd := good
	odd.PageSize = 1000
	other := good
	other.PageSize = 2048
	lost := good
	lost.Post.PostApplyChecksum = 0
	lost.Pages = func() iter.Seq2[ltx.Page, error] { return dropLast(good.Pages()) }
	for name, f := range map[string]apply.Change{
		"another position": twice, "another result": wrong, "a page too few": short, "no page size": odd,
		"another page size": other, "a new page missing": lost,
	} {
		if err := c.Apply(t.Context(), f); !errors.Is(err, apply.ErrMismatch) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	broken, calls := failing(good)
	if err := c.Apply(t.Context(), broken); !errors.Is(err, os.ErrInvalid) || *calls != 3 {
		t.Errorf("pages that cannot be read the third time: got %v after %d", err, *calls)
	}
	if c.Pos() != before {
		t.Fatalf("the copy is at %v, want %v", c.Pos(), before)
	}
	c.apply(good)
	c.release(s.image, s.pos)
}

// failing is a change whose pages cannot be read any more in the middle of
// writing them.
func failing(f apply.Change) (apply.Change, *int) {
	calls, good := 0, f.Pages
	f.Pages = func() iter.Seq2[ltx.Page, error] {
		calls++
		return func(yield func(ltx.Page, error) bool) {
			n := 0
			for p, err := range good() {
				if n++; n > 3 && calls == 3 {
					yield(p, os.ErrInvalid)
					return
				}
				if !yield(p, err) {
					return
				}
			}
		}
	}
	return f, &calls
}

func dropLast(pages iter.Seq2[ltx.Page, error]) iter.Seq2[ltx.Page, error] {
	return func(yield func(ltx.Page, error) bool) {
		var held *ltx.Page
		for p, _ := range pages {
			if held != nil && !yield(*held, nil) {
				return
			}
			held = &p
		}
	}
}

func TestAChangeWithoutPagesMovesThePosition(t *testing.T) {
	s := newSource(t, testdb.Options{})
	c := newCopied(t, s.image, s.pos)
	claim := ltx.Pos{TXID: s.pos.TXID + 1, PostApplyChecksum: s.pos.PostApplyChecksum}
	c.apply(apply.Change{PageSize: c.PageSize(), Commit: c.Pages(), Pre: s.pos, Post: claim})
	if c.Pos() != claim {
		t.Fatalf("got %v, want %v", c.Pos(), claim)
	}
	c.close()
	c.open()
	c.release(s.image, claim)
}

func TestANewBaseMayHaveAnotherPageSize(t *testing.T) {
	s := newSource(t, testdb.Options{PageSize: 4096}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", fmt.Sprintf(fill, 100, 900))
	c := newCopied(t, s.image, s.pos)
	reader := testdb.Open(t, c.path)
	if n := testdb.Number(t, reader, "SELECT count(*) FROM t"); n != 100 {
		t.Fatalf("got %d rows", n)
	}
	for i, size := range []int{512, 65536, 1024} {
		other := newSource(t, testdb.Options{PageSize: size}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", fmt.Sprintf(fill, 10+i, 2000))
		c.apply(s.become(other.image))
		if n := testdb.Number(t, reader, "SELECT count(*) FROM t"); n != int64(10+i) {
			t.Errorf("page size %d: a reader that has the file open sees %d rows", size, n)
		}
		testdb.SameDatabase(t, other.path, c.path)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	c.release(s.image, s.pos)
}

func TestACopyMayBecomeEmptyAndGrowAgain(t *testing.T) {
	s := newSource(t, testdb.Options{}, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
	full := s.image
	c := newCopied(t, s.image, s.pos)
	c.apply(s.become(nil))
	if info, err := os.Stat(c.path); err != nil || info.Size() != 0 {
		t.Fatalf("got %v, %v", info, err)
	}
	c.close()
	c.open()
	c.apply(s.become(full))
	c.release(s.image, s.pos)
}
