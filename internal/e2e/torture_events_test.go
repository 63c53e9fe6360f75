//go:build e2e

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testdb"
)

// event is something that happens to a database, in steps between which
// anything may happen to the sidecar.
type event struct {
	name   string
	layout testdb.Options // of the database before
	steps  []step
	// most is how many bytes the files captured since may have; 0: any.
	most int64
	// alone: nobody else may have the database open.
	alone bool
	// beside: only with a sidecar that is up all the time.
	beside bool
	// s3: the replica is on a server that the event may stop.
	s3 bool
	// keep: the sidecar must leave the journal mode alone.
	keep bool
}

type step func(t *testing.T, v *victim)

// few is more than some small commits take, and far less than the filler.
const few = 1 << 20

// queries makes a step of statements.
func queries(q ...string) step {
	return func(t *testing.T, v *victim) { v.sql(t, q...) }
}

func commits(n int64) step {
	return func(t *testing.T, v *victim) { v.commit(t, n) }
}

func leaves(t *testing.T, v *victim) { v.leave(t) }

func grows(n int) step {
	return func(t *testing.T, v *victim) { v.grow(t, n) }
}

// checkpointEvents are the application's own checkpoints.
func checkpointEvents() (events []event) {
	for _, mode := range []string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"} {
		mark := queries("PRAGMA wal_checkpoint(" + mode + ")")
		events = append(events,
			event{name: mode + " checkpoint of the application", steps: []step{commits(30), mark, commits(3)}, most: few},
			event{name: mode + " checkpoints with growth between", steps: []step{
				commits(5), mark, mark, grows(15), mark, commits(40), mark, mark, commits(1),
			}, most: 15*20000 + few},
		)
	}
	return events
}

// closingEvents are about connections that end.
func closingEvents() []event {
	var jobs []step
	for range 6 {
		jobs = append(jobs, commits(1), leaves)
	}
	return []event{
		{name: "last connection closed", steps: []step{commits(5), leaves, commits(5), leaves}, most: few, alone: true},
		{name: "jobs that open, write and close", steps: jobs, most: few, alone: true},
	}
}

// spaceEvents are about databases that shrink and grow.
func spaceEvents() []event {
	full, incremental := testdb.Options{AutoVacuum: "FULL"}, testdb.Options{AutoVacuum: "INCREMENTAL"}
	half := "DELETE FROM tall WHERE rowid % 2"
	return []event{
		{name: "VACUUM", steps: []step{queries(half), queries("VACUUM"), commits(3)}},
		{name: "VACUUM and truncation", steps: []step{queries(half), queries("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"), leaves}},
		{name: "automatic vacuum", layout: full, steps: []step{grows(20), queries("DELETE FROM tall WHERE rowid > 200"), commits(3)}, most: 20*20000 + few},
		{name: "automatic vacuum of half", layout: full, steps: []step{queries(half), commits(3)}},
		{name: "incremental vacuum", layout: incremental, steps: []step{
			queries("DELETE FROM tall WHERE rowid > 180"), queries("PRAGMA incremental_vacuum(20)"), commits(1), queries("PRAGMA incremental_vacuum"), commits(1),
		}, most: few},
		{name: "growth, shrinking and growth in one window", steps: []step{
			queries(makeTall, fmt.Sprintf(pour, 60), "DELETE FROM tall WHERE rowid > 150", "VACUUM", fmt.Sprintf(pour, 30)), commits(1),
		}},
		{name: "growth and shrinking in one transaction", layout: full, steps: []step{
			queries(makeTall, "BEGIN", fmt.Sprintf(pour, 60), "DELETE FROM tall WHERE rowid > 200", "COMMIT", fmt.Sprintf(pour, 5)), commits(1),
		}, most: 5*20000 + few},
		{name: "partial checkpoint that shrinks the file", steps: []step{shrinkBehindReader, commits(2), grows(5)}},
		{name: "frames over stale frames in a log of the same size", steps: []step{staleFrames, commits(3)}, most: 2 * few},
	}
}

// shrinkBehindReader shrinks the database while a reader lets a checkpoint
// copy back only what was before.
func shrinkBehindReader(t *testing.T, v *victim) {
	v.sql(t, "PRAGMA wal_autocheckpoint=0")
	v.grow(t, 20)
	reader := testdb.Open(t, v.path)
	testdb.Exec(t, reader, "BEGIN")
	testdb.Number(t, reader, "SELECT count(*) FROM tall")
	v.sql(t, "DELETE FROM tall WHERE rowid > 100", "VACUUM", "PRAGMA wal_checkpoint(PASSIVE)")
	v.commit(t, 2)
	testdb.Exec(t, reader, "COMMIT")
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	v.sql(t, "PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_autocheckpoint=1000")
}

// staleFrames commits the same pages again and again over the frames that an
// earlier generation of the log left: neither its size nor, after the first
// commit, its header changes.
func staleFrames(t *testing.T, v *victim) {
	v.sql(t, "PRAGMA wal_autocheckpoint=0", "CREATE TABLE same (k INTEGER PRIMARY KEY, b)", "INSERT INTO same VALUES (1, zeroblob(1000))")
	for range 3 {
		for range 15 {
			v.sql(t, "UPDATE same SET b = randomblob(1000)")
		}
		v.sql(t, "PRAGMA wal_checkpoint(RESTART)")
	}
	v.sql(t, "UPDATE same SET b = randomblob(1000)", "UPDATE same SET b = randomblob(1000)")
	v.sql(t, "DROP TABLE same", "PRAGMA wal_autocheckpoint=1000")
}

// modeEvents leave WAL mode, as far as the sidecar lets them.
func modeEvents() []event {
	leave := func(t *testing.T, v *victim) { v.attempt(t, "PRAGMA journal_mode=DELETE") }
	back := func(t *testing.T, v *victim) { v.attempt(t, "PRAGMA journal_mode=WAL") }
	return []event{
		{name: "journal mode left and taken again", steps: []step{leave, commits(5), leaves, commits(5), back, commits(3)}, most: few, alone: true},
		{name: "journal mode left for good", steps: []step{leave, commits(5), leaves, commits(5), leaves}, most: few, alone: true},
		{name: "page size changed by VACUUM", steps: []step{
			leave, queries("PRAGMA page_size=8192", "VACUUM"), back, commits(3),
		}, alone: true},
		{name: "page size changed and no journal", steps: []step{
			leave, queries("PRAGMA page_size=1024", "VACUUM"), leaves, commits(2), leaves, back, commits(3),
		}, alone: true},
	}
}
