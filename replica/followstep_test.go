package replica_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// run lets the follower run until done says so.
func (f *follower) run(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	errDone := errors.New("done")
	var g errgroup.Group
	g.Go(func() error { return f.Run(ctx) })
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			t.Errorf("waited a minute for: %s; status %+v", what, f.Status())
			done = func() bool { return true }
		}
	}
	cancel(errDone)
	if err := g.Wait(); !errors.Is(err, errDone) {
		t.Errorf("run ended with %v", err)
	}
}

func (f *follower) isCurrent() bool { return f.copy.Pos() == f.p.pos }

func TestAFollowerIsWhereThePrimaryIs(t *testing.T) {
	for _, size := range []int{512, 4096, 65536} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			p := newPrimary(t, size)
			f := p.follow()
			f.options.Interval = time.Millisecond
			f.reopen()
			random := rand.New(rand.NewPCG(5, uint64(size)))
			for step := range 12 {
				for range 1 + random.IntN(6) {
					p.exec(rows(1+random.IntN(30), 1+random.IntN(2000)))
				}
				switch step % 4 {
				case 1:
					p.exec("DELETE FROM t WHERE id % 3 <> 0", "VACUUM")
				case 2:
					p.merge(1, p.pos.TXID-2, p.pos.TXID)
				}
				f.run(t, "the newest state", f.isCurrent)
				testdb.SameDatabase(t, p.path, f.path)
			}
			f.catchUp()
			f.promote()
			p.exec(rows(3, 100))
			f.catchUp()
			f.promote()
		})
	}
}

func TestAnIdleLookIsOneListing(t *testing.T) {
	p := newPrimary(t, 1024)
	p.exec(rows(1, 1))
	f := p.follow()
	f.options.Interval = time.Millisecond
	f.reopen()
	f.catchUp()
	gets, lists := f.bucket.count()
	f.run(t, "20 looks", func() bool { _, n := f.bucket.count(); return n >= lists+20 })
	if n, _ := f.bucket.count(); n != gets {
		t.Errorf("%d reads of files while idle: %q", n-gets, f.bucket.gets[gets:])
	}
	want := fmt.Sprintf("ltx/0/ after %s", p.Key(file(0, p.pos.TXID-1, p.pos.TXID-1)))
	for _, list := range f.bucket.lists[lists:] {
		if list != want {
			t.Fatalf("listed %q, want %q", list, want)
		}
	}
	gets, lists = f.bucket.count()
	p.exec(rows(1, 1))
	f.run(t, "the newest state", f.isCurrent)
	if g, l := f.bucket.count(); g != gets+1 || l > lists+2 {
		t.Logf("reading one commit took %d reads and %d listings", g-gets, l-lists)
		if g != gets+1 {
			t.Errorf("reading one commit took %d reads of files", g-gets)
		}
	}
	if s := f.Status(); s.LastError != nil || s.Lag(time.Now()) < 0 || s.Newest != p.pos.TXID {
		t.Errorf("status %+v", s)
	}
}

func TestAFollowerGoesOnAfterARestart(t *testing.T) {
	p := newPrimary(t, 1024)
	p.exec(rows(300, 900))
	f := p.follow()
	for range 5 {
		p.exec(rows(2, 10))
		f.catchUp()
		f.reopen()
	}
	for _, key := range f.bucket.gets {
		if strings.Contains(key, "000000000000000"+"2.ltx") && key != p.Key(file(0, 2, 2)) {
			t.Errorf("read %s", key)
		}
	}
	f.promote()
}

func TestAHoleInLevel0IsFilledFromAbove(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	f.catchUp()
	for range 6 {
		p.exec(rows(5, 300))
	}
	p.merge(1, 2, 5)
	for txid := ltx.TXID(1); txid <= 5; txid++ {
		if txid != 1 {
			p.remove(file(0, txid, txid))
		}
	}
	f.catchUp()
	if s := f.Status(); s.Reseeds != 0 {
		t.Errorf("%d comparisons with a whole state", s.Reseeds)
	}
	f.promote()
	for range 3 {
		p.exec(rows(5, 300))
	}
	p.put(file(9, 1, p.pos.TXID), p.snapshot())
	for txid := p.pos.TXID - 2; txid < p.pos.TXID; txid++ {
		p.remove(file(0, txid, txid))
	}
	p.exec("DELETE FROM t WHERE id > 20", "VACUUM")
	f.catchUp()
	if s := f.Status(); s.Reseeds != 1 {
		t.Errorf("%d comparisons with a whole state, want 1", s.Reseeds)
	}
	f.promote()
}

func TestAHoleThatNothingFillsIsToldAndTriedAgain(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	f.options.Interval = time.Millisecond
	f.reopen()
	p.exec(rows(5, 300))
	before := p.pos
	p.exec(rows(5, 300))
	hole := file(0, p.pos.TXID, p.pos.TXID)
	kept := p.read(hole)
	p.remove(hole)
	p.exec(rows(5, 300))
	f.run(t, "an error", func() bool { return f.Status().LastError != nil && f.copy.Pos() == before })
	if err := f.Status().LastError; !errors.Is(err, replica.ErrUnreachable) || !strings.Contains(err.Error(), "transaction 0000000000000003 is missing") {
		t.Errorf("got %v", err)
	}
	p.put(hole, kept)
	f.run(t, "the newest state", func() bool { return f.isCurrent() && f.Status().LastError == nil })
	if n := strings.Count(f.log.String(), "level=ERROR") + strings.Count(f.log.String(), "level=WARN"); n > 2 {
		t.Errorf("the log has %d complaints:\n%s", n, f.log.String())
	}
	f.promote()
}

func TestFilesWithoutChecksumsAreFollowed(t *testing.T) {
	p := newPrimary(t, 1024)
	p.plain = true
	p.exec(rows(5, 300))
	f := p.follow()
	for range 4 {
		p.exec(rows(5, 300))
		p.exec("DELETE FROM t WHERE id % 7 = 1", "VACUUM")
		f.catchUp()
	}
	f.promote()
}

func TestADamagedFileIsReplacedByOthers(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	for range 4 {
		p.exec(rows(5, 300))
	}
	p.merge(1, 2, 4)
	p.put(file(0, 3, 3), []byte("not a file of this kind, and too short"))
	f.catchUp()
	p.exec(rows(5, 300))
	p.exec(rows(5, 300))
	whole := p.read(file(0, p.pos.TXID, p.pos.TXID))
	p.put(file(0, p.pos.TXID, p.pos.TXID), bytes.Replace(whole, whole[120:121], []byte{whole[120] ^ 1}, 1))
	if _, err := f.CatchUp(t.Context()); err == nil || f.copy.Pos().TXID != p.pos.TXID-1 {
		t.Errorf("a damaged newest file: got %v at %v", err, f.copy.Pos())
	}
	p.put(file(0, p.pos.TXID, p.pos.TXID), whole)
	f.catchUp()
	f.promote()
}

func TestFollowingSurvivesABadConnection(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	f.options.Interval = time.Millisecond
	f.reopen()
	for range 5 {
		p.exec(rows(50, 3000))
	}
	p.bucket.Inject(storagetest.Fault{Op: storagetest.List, Times: 3}, storagetest.Fault{Op: storagetest.Get, Times: 5},
		storagetest.Fault{Op: storagetest.Get, Err: storage.ErrNotFound, Times: 2},
		storagetest.Fault{Op: storagetest.Get, Effect: storagetest.CutBody, Bytes: 40 << 10, Times: 8})
	f.run(t, "the newest state", f.isCurrent)
	p.bucket.Heal()
	f.catchUp()
	f.promote()
}

func TestTenThousandFilesAreFollowedTogether(t *testing.T) {
	p := newPrimary(t, 512)
	f := p.follow()
	last := p.pages()
	folder, _ := strings.CutPrefix(p.bucket.String(), "file://")
	for range 10_000 {
		spec := &ltx.Spec{Header: p.header(p.pos.TXID+1, p.pos.TXID+1)}
		old := ltx.ChecksumPage(last, p.page(last))
		p.scribble(p.page(last))
		spec.Pages = []ltx.PageSpec{{Pgno: last, Data: p.page(last)}}
		sum := p.pos.PostApplyChecksum ^ old ^ ltx.ChecksumPage(last, p.page(last))
		p.pos = ltx.Pos{TXID: p.pos.TXID + 1, PostApplyChecksum: sum | ltx.ChecksumFlag}
		spec.PostApply = p.pos.PostApplyChecksum
		if err := os.WriteFile(filepath.Join(folder, p.Key(file(0, p.pos.TXID, p.pos.TXID))), p.encode(spec), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	f.catchUp()
	t.Logf("10000 files in %v", time.Since(start))
	f.promote()
}
