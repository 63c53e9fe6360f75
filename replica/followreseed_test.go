package replica_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/replica/apply"
)

func TestADeadBranchIsLeft(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	p.exec(rows(30, 300))
	fork := bytes.Clone(p.image)
	forkPos := p.pos
	p.exec("UPDATE t SET v = 1 WHERE id < 10")
	f.catchUp()
	// Another primary wrote other content at the same transaction, and went on.
	p.image, p.pos = fork, forkPos
	p.exec("UPDATE t SET v = 2 WHERE id > 10")
	p.exec("UPDATE t SET v = 3 WHERE id > 20")
	f.options.Interval = time.Millisecond
	f.reopen()
	f.run(t, "the newest state", f.isCurrent)
	if s := f.Status(); s.Reseeds != 1 || !strings.Contains(f.log.String(), "the copy took over") {
		t.Errorf("%d comparisons; log: %s", s.Reseeds, f.log.String())
	}
	f.promote()
}

func TestACopyNeverGoesBackUnlessAsked(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	p.exec(rows(30, 300))
	older := bytes.Clone(p.image)
	olderPos := p.pos
	p.exec(rows(30, 300))
	f.catchUp()
	newer := f.copy.Pos()
	p.remove(file(0, newer.TXID, newer.TXID))
	if _, err := f.CatchUp(t.Context()); !errors.Is(err, replica.ErrBackward) || f.copy.Pos() != newer {
		t.Errorf("got %v at %v", err, f.copy.Pos())
	}
	if err := f.Reseed(t.Context(), 0); err != nil || f.copy.Pos() != olderPos {
		t.Errorf("got %v at %v, want %v", err, f.copy.Pos(), olderPos)
	}
	p.image, p.pos = older, olderPos
	f.promote()
}

func TestReseedFetchesWhatEitherSideTouched(t *testing.T) {
	p := newPrimary(t, 1024)
	p.exec(rows(800, 900))
	f := p.follow()
	common := p.pos
	f.catchUp()
	// The local tail: two commits that never reach the replica.
	base := bytes.Clone(p.image)
	var tail []string
	for i, query := range []string{"UPDATE t SET v = 1 WHERE id BETWEEN 100 AND 110", "DELETE FROM t WHERE id > 790; VACUUM"} {
		testdb.Exec(t, p.db, query)
		testdb.Exec(t, p.db, "PRAGMA wal_checkpoint(TRUNCATE)")
		image, err := os.ReadFile(p.path)
		if err != nil {
			t.Fatal(err)
		}
		tail = append(tail, filepath.Join(t.TempDir(), fmt.Sprint(i)))
		if err := os.WriteFile(tail[i], p.become(image), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.becomes(t, p.image, p.pos)
	p.image, p.pos = base, common
	foreign := bytes.Clone(base)
	copy(foreign[300*1024:], bytes.Repeat([]byte{7}, 3000))
	p.put(file(0, common.TXID+1, common.TXID+1), p.become(foreign))
	p.merge(9, 1, p.pos.TXID)
	if err := f.Reseed(t.Context(), common.TXID, tail...); err != nil {
		t.Fatal(err)
	}
	if log := f.log.String(); f.Status().Reseeds != 1 || strings.Contains(log, "the copy took over") {
		t.Errorf("the whole database was compared: %s", log)
	}
	f.catchUp()
	f.promote()
}

// becomes puts a database in the place of the copy, with its page sums.
func (f *follower) becomes(t *testing.T, image []byte, pos ltx.Pos) {
	t.Helper()
	if err := f.copy.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path, image, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(apply.Record(t.Context(), f.path, f.dir), apply.Place(f.dir, pos)); err != nil {
		t.Fatal(err)
	}
	f.open()
	if f.copy.Pos() != pos {
		t.Fatalf("at %v, want %v", f.copy.Pos(), pos)
	}
}

func TestWhatSomebodyWroteToTheCopyIsSetAsideFirst(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	asides, refuse := 0, errors.New("no room")
	aside := func(_ context.Context, found error) error {
		if asides++; asides == 1 {
			return refuse
		}
		return nil
	}
	f.options.Foreign = aside
	f.reopen()
	db := testdb.Open(t, f.path)
	testdb.Exec(t, db, "INSERT INTO t(v) VALUES (99)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	p.exec(rows(1, 1))
	for range 2 {
		if _, err := f.CatchUp(t.Context()); !errors.Is(err, apply.ErrForeign) || errors.Is(err, refuse) != (f.options.Foreign != nil) {
			t.Errorf("while it cannot be set aside: got %v", err)
		}
		f.options.Foreign = nil // of the follower after a restart
		f.reopen()
	}
	f.options.Foreign = aside
	f.reopen()
	f.catchUp()
	if asides != 2 {
		t.Errorf("asked %d times", asides)
	}
	f.promote()
}
