//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// setAside keeps a copy of the file as it is, with everything in it.
func setAside(t *testing.T, v *victim) {
	v.empty(t)
	v.leave(t)
	v.kept = filepath.Join(t.TempDir(), "kept.db")
	put(t, v.path, v.kept)
}

// makeOther makes another database.
func makeOther(pageSize int) step {
	return func(t *testing.T, v *victim) {
		v.leave(t)
		other := &victim{path: filepath.Join(t.TempDir(), "other.db"), rnd: v.rnd}
		other.lay(t, testdb.Options{PageSize: pageSize})
		other.empty(t)
		other.leave(t)
		v.kept = other.path
	}
}

// bare deletes the log and its index.
func bare(t *testing.T, v *victim) {
	v.leave(t)
	remove(t, v.path+"-wal", v.path+"-shm", v.path+"-journal")
}

// drained leaves a log without frames behind, so that it fits any database.
func drained(t *testing.T, v *victim) {
	v.empty(t)
	v.leave(t)
}

// backfilled leaves a log of which nothing is needed any more.
func backfilled(t *testing.T, v *victim) { v.checkpoint(t, "FULL") }

func copyOver(t *testing.T, v *victim) {
	v.noticed(t, func() { put(t, v.kept, v.path) })
}

func moveOver(t *testing.T, v *victim) {
	v.noticed(t, func() { moveIn(t, v) })
}

// moveIn moves a copy of what was kept over the database.
func moveIn(t *testing.T, v *victim) {
	next := v.path + ".next"
	put(t, v.kept, next)
	if err := os.Rename(next, v.path); err != nil {
		t.Fatal(err)
	}
}

// noticed waits until a sidecar that is up has replicated what replaced the
// database: it holds the index of the log, which an application that opens the
// database before that would believe. Whoever closes a database last copies
// back what a removed log held, as late as the copy may come: then it is put
// there once more.
func (v *victim) noticed(t *testing.T, replace func()) {
	t.Helper()
	replace()
	if v.sidecar == nil {
		return
	}
	tries := 3
	v.awaitRestored(t, v.kept, func() {
		if tries > 0 && !sameBytes(t, v.path, v.kept) {
			tries--
			t.Logf("%s is not what was put there, once more", filepath.Base(v.path))
			replace()
		}
	})
}

// sameBytes compares two files.
func sameBytes(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}

// copyUnseen copies over the database and sets its times back to what they
// were, as a tool that keeps times does.
func copyUnseen(t *testing.T, v *victim) {
	was, err := os.Stat(v.path)
	if err != nil {
		t.Fatal(err)
	}
	v.noticed(t, func() {
		put(t, v.kept, v.path)
		if err := os.Chtimes(v.path, was.ModTime(), was.ModTime()); err != nil {
			t.Fatal(err)
		}
	})
}

func copyOfTheFuture(t *testing.T, v *victim) {
	v.noticed(t, func() {
		put(t, v.kept, v.path)
		later := time.Now().Add(48 * time.Hour)
		if err := os.Chtimes(v.path, later, later); err != nil {
			t.Fatal(err)
		}
	})
}

// vanish deletes all in the order of rm live.db*.
func vanish(t *testing.T, v *victim) {
	v.leave(t)
	remove(t, v.path, v.path+"-journal", v.path+"-shm", v.path+"-wal")
}

func layAgain(pageSize int) step {
	return func(t *testing.T, v *victim) { v.lay(t, testdb.Options{PageSize: pageSize}) }
}

func touch(t *testing.T, v *victim) {
	if err := os.WriteFile(v.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// replaceEvents put other content in the place of the database.
func replaceEvents() (events []event) {
	// A copy may be seen before it is complete.
	most := map[string]int64{"moved": few}
	for way, over := range map[string]step{"copied": copyOver, "moved": moveOver} {
		for state, before := range map[string]step{"after its log was deleted": bare, "beside an empty log": drained} {
			events = append(events,
				event{name: "earlier state " + way + " over it " + state, steps: []step{
					setAside, commits(10), before, over, commits(3),
				}, most: most[way], alone: true},
				event{name: "other database " + way + " over it " + state, steps: []step{
					makeOther(0), before, over, commits(3),
				}, alone: true},
			)
		}
		events = append(events, event{name: "database of other page size " + way + " over it", steps: []step{
			makeOther(8192), bare, over, commits(3),
		}, alone: true})
	}
	return append(events,
		event{name: "earlier state copied over it behind a full log", steps: []step{
			setAside, together(commits(10), backfilled, leaves, copyOver), commits(3),
		}, alone: true, beside: true},
		event{name: "earlier state copied over it with the times kept", steps: []step{
			setAside, commits(10), drained, copyUnseen, commits(3),
		}, alone: true},
		event{name: "copy of the future over it", steps: []step{
			setAside, commits(10), drained, copyOfTheFuture, commits(3), drained, copyUnseen, commits(2),
		}, alone: true},
		event{name: "deleted and made anew", steps: []step{vanish, layAgain(0), commits(3)}, alone: true},
		event{name: "deleted, log first, and made anew", steps: []step{together(bare, vanish), layAgain(0), commits(3)}, alone: true},
		event{name: "deleted, empty, and made anew", steps: []step{vanish, touch, layAgain(0), commits(3)}, alone: true},
		event{name: "deleted and made anew with other pages", steps: []step{vanish, layAgain(1024), commits(3)}, alone: true},
	)
}

// together makes one step of several.
func together(steps ...step) step {
	return func(t *testing.T, v *victim) {
		for _, s := range steps {
			s(t, v)
		}
	}
}

// toolEvents are what other tools do to a database.
func toolEvents() []event {
	return []event{
		{name: "log deleted while the application goes on", steps: []step{startOther, unlinkLog, stopOther, opens, commits(3)}, alone: true},
		{name: "log and index deleted while the application goes on", steps: []step{startOther, unlinkBoth, stopOther, opens, commits(3)}, alone: true},
		{name: "backup written over it by SQLite", steps: []step{makeAlike, backupOver, commits(3)}, alone: true},
		{name: "restore of litestream moved over it", steps: []step{commits(5), restoreByLitestream, bare, moveOver, commits(3)}, most: few, alone: true},
	}
}

func startOther(t *testing.T, v *victim) {
	v.leave(t)
	v.process = testdb.StartWriter(t, v.path, testdb.Load{Seed: v.rnd.Int64(), Rate: 100, Payload: 100, Churn: 1, Body: 500})
	rig.Pause(t, 50*time.Millisecond)
}

func unlinkLog(t *testing.T, v *victim) {
	remove(t, v.path+"-wal")
	rig.Pause(t, 200*time.Millisecond)
}

func unlinkBoth(t *testing.T, v *victim) {
	remove(t, v.path+"-wal", v.path+"-shm")
	rig.Pause(t, 200*time.Millisecond)
}

func stopOther(t *testing.T, v *victim) {
	v.process.Stop(t)
	v.process = nil
}

// opens tries until the database can be opened again: whoever still has an
// index of a log that was deleted keeps it from being made anew.
func opens(t *testing.T, v *victim) {
	rig.Eventually(t, rig.Limit, func(ctx context.Context) error {
		_, err := v.app(t).ExecContext(ctx, "UPDATE chain SET n = n")
		if err != nil {
			v.leave(t)
		}
		return err
	})
}

// restoreByLitestream keeps what litestream restores of the replica.
func restoreByLitestream(t *testing.T, v *victim) {
	v.leave(t)
	v.kept = rig.LitestreamRestore(t, v.place)
}

// makeAlike makes another database of the same page size: a backup cannot
// change that of a database in WAL mode.
func makeAlike(t *testing.T, v *victim) {
	size := testdb.Number(t, v.app(t), "PRAGMA page_size")
	makeOther(int(size))(t, v)
}

// backupOver writes a database over another by SQLite's backup interface.
func backupOver(t *testing.T, v *victim) {
	from := testdb.Open(t, v.kept)
	err := raw(t.Context(), from, func(src *sqlite3.SQLiteConn) error {
		return raw(t.Context(), v.app(t), func(dst *sqlite3.SQLiteConn) error { return backup(dst, src) })
	})
	if err := errors.Join(err, from.Close()); err != nil {
		t.Fatal(err)
	}
	v.leave(t)
}

func backup(dst, src *sqlite3.SQLiteConn) error {
	b, err := dst.Backup("main", src, "main")
	if err != nil {
		return fmt.Errorf("begin backup: %w", err)
	}
	for done := false; !done && err == nil; {
		done, err = b.Step(200)
	}
	return errors.Join(err, b.Finish())
}

func raw(ctx context.Context, db *sql.DB, use func(*sqlite3.SQLiteConn) error) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	err = c.Raw(func(dc any) error { return use(dc.(*sqlite3.SQLiteConn)) })
	return errors.Join(err, c.Close())
}
