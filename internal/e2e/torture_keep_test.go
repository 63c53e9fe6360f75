//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/testdb"
)

// keepEvents happen to databases that stay in rollback-journal mode.
func keepEvents() (events []event) {
	for _, mode := range []string{"DELETE", "TRUNCATE", "PERSIST"} {
		layout := testdb.Options{JournalMode: mode}
		events = append(events,
			event{name: "impatient commits in mode " + mode, layout: layout, steps: []step{
				impatient(40, 100), isMode("PRAGMA journal_mode=" + mode), impatient(40, 0), leaves, isMode(""),
			}, most: few, keep: true},
			event{name: "VACUUM in mode " + mode, layout: layout, steps: []step{
				queries("DELETE FROM tall WHERE rowid % 2"), queries("VACUUM"), commits(3),
			}, keep: true},
		)
	}
	layout := testdb.Options{JournalMode: "DELETE"}
	return append(events,
		event{name: "page size changed in mode DELETE", layout: layout, steps: []step{
			commits(2), queries("PRAGMA page_size=8192", "VACUUM"), commits(3),
		}, keep: true},
		event{name: "mode DELETE left for WAL and taken again", layout: layout, steps: []step{
			commits(2), func(t *testing.T, v *victim) { v.attempt(t, "PRAGMA journal_mode=WAL") }, commits(3), leaves,
			func(t *testing.T, v *victim) { v.attempt(t, "PRAGMA journal_mode=DELETE") }, commits(3),
		}, most: few, keep: true, alone: true},
		event{name: "transaction undone in mode DELETE", layout: layout, steps: []step{
			queries("PRAGMA cache_size=2", "BEGIN", "UPDATE tall SET b = randomblob(20000) WHERE rowid < 50", "ROLLBACK"), commits(2),
		}, most: few, keep: true},
	)
}

// impatient makes n commits that wait for no lock; not one may fail.
func impatient(n int64, rate float64) step {
	return func(t *testing.T, v *victim) {
		testdb.Exec(t, v.app(t), "PRAGMA busy_timeout=0")
		sum := v.write(t, testdb.Load{Seed: v.rnd.Int64(), Commits: n, Rate: rate, Payload: 100, Churn: 2, Body: 700})
		if sum.Busy > 0 {
			t.Errorf("%d commits found the database locked", sum.Busy)
		}
		testdb.Exec(t, v.app(t), "PRAGMA busy_timeout=5000")
	}
}

// isMode wants the database to be in rollback-journal mode still, and runs a
// query first.
func isMode(query string) step {
	return func(t *testing.T, v *victim) {
		if query != "" {
			v.sql(t, query)
		}
		var mode string
		if err := v.app(t).QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode == "wal" {
			t.Errorf("journal mode %q, %v", mode, err)
		}
	}
}

func TestWriterWithoutAPauseNeverFailsInRollbackJournalMode(t *testing.T) {
	t.Parallel()
	v := newVictim(t, event{layout: testdb.Options{JournalMode: "DELETE"}, keep: true})
	before := v.place.Newest(t)
	start := time.Now()
	for time.Since(start) < 12*time.Second {
		impatient(100, 0)(t, v)
	}
	t.Logf("%d TXIDs were captured beside the writer", v.place.Newest(t)-before)
	awaitTXID(t, v.place, before+1)
	v.leave(t)
	v.settled(t)
	stop(t, v.sidecar)
	v.settled(t)
}
