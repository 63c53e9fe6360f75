package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mattn/go-sqlite3"
)

// Load says what a Writer commits. The same load on the same database makes
// the same commits.
type Load struct {
	Seed    int64
	Rate    float64 // commits a second; 0: as fast as it goes
	Commits int64   // ends after so many; 0: when the context ends
	Payload int     // bytes in each row of the chain, random
	Churn   int     // random inserts, updates and deletes in each commit
	Body    int     // at most so many bytes in each row of churn, random
	Sync    string  // PRAGMA synchronous; "": NORMAL
	Journal string  // PRAGMA journal_mode whenever it opens; "": what the file says
	NoWait  bool    // no busy timeout: a locked database is counted at once
	// Exclusive keeps everybody else out: PRAGMA locking_mode=EXCLUSIVE.
	Exclusive bool
	// Undo makes a transaction before each commit that changes all the churn and
	// is undone. No transaction fits the cache: pages are written before the end.
	Undo bool
}

// maxChurn is where deletes become certain, so that the table stays small.
const maxChurn = 2000

// Summary is what a Writer did.
type Summary struct {
	Commits int64         // committed by this run
	Newest  int64         // number of the newest commit in the chain
	Busy    int64         // times that the database was locked beyond the busy timeout
	Worst   time.Duration // longest commit
	Took    time.Duration
}

// Writer appends commits to the chain of one database, on one connection.
type Writer struct {
	db    *sql.DB
	load  Load
	rnd   *rand.Rand
	tip   Link
	churn map[int64]digest
	ids   []int64
	sum   Summary
}

// NewWriter continues the chain of a database, which it begins if need be.
func NewWriter(ctx context.Context, db *sql.DB, load Load) (*Writer, error) {
	if load.Sync == "" {
		load.Sync = "NORMAL"
	}
	if _, err := db.ExecContext(ctx, "PRAGMA synchronous="+load.Sync); err != nil {
		return nil, fmt.Errorf("set synchronous: %w", err)
	}
	if load.Exclusive {
		if _, err := db.ExecContext(ctx, "PRAGMA locking_mode=EXCLUSIVE"); err != nil {
			return nil, fmt.Errorf("set locking mode: %w", err)
		}
	}
	if load.Journal != "" {
		if _, err := db.ExecContext(ctx, "PRAGMA journal_mode="+load.Journal); err != nil {
			return nil, fmt.Errorf("set journal mode: %w", err)
		}
	}
	if err := layChain(ctx, db); err != nil {
		return nil, err
	}
	if load.NoWait {
		if _, err := db.ExecContext(ctx, "PRAGMA busy_timeout=0"); err != nil {
			return nil, fmt.Errorf("set busy timeout: %w", err)
		}
	}
	if load.Undo {
		if _, err := db.ExecContext(ctx, "PRAGMA cache_size=2"); err != nil {
			return nil, fmt.Errorf("set cache size: %w", err)
		}
	}
	w := &Writer{db: db, load: load}
	if err := w.read(ctx); err != nil {
		return nil, fmt.Errorf("read chain: %w", err)
	}
	w.rnd = rand.New(rand.NewPCG(uint64(load.Seed), uint64(w.tip.N)))
	return w, nil
}

func (w *Writer) read(ctx context.Context) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if w.tip, err = readChain(ctx, tx); err == nil {
		w.churn, err = readChurn(ctx, tx)
	}
	w.ids = slices.Sorted(maps.Keys(w.churn))
	return errors.Join(err, tx.Rollback())
}

// Run commits until the load is done or the context ends, which is no error.
// A locked database is counted, and the commit tried again.
func (w *Writer) Run(ctx context.Context) (Summary, error) {
	start := time.Now()
	defer func() { w.sum.Took = time.Since(start) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := int64(0); w.load.Commits == 0 || i < w.load.Commits; i++ {
		if w.load.Rate > 0 {
			due := start.Add(time.Duration(float64(i) / w.load.Rate * float64(time.Second)))
			timer.Reset(time.Until(due))
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		if ctx.Err() != nil {
			break
		}
		if err := w.commitPatiently(ctx); err != nil {
			return w.sum, err
		}
	}
	w.sum.Took = time.Since(start)
	return w.sum, nil
}

func (w *Writer) commitPatiently(ctx context.Context) error {
	for {
		err := w.Commit(context.WithoutCancel(ctx))
		if err == nil || !Busy(err) {
			return err
		}
		w.sum.Busy++
		if ctx.Err() != nil {
			return nil // whoever holds the lock may never let go
		}
	}
}

// Busy tells whether an error is SQLite's "database is locked".
func Busy(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked)
}

// Commit makes one commit.
func (w *Writer) Commit(ctx context.Context) error {
	payload := w.random(w.load.Payload)
	start := time.Now()
	next, err := w.commit(ctx, payload)
	if err != nil {
		return fmt.Errorf("commit %d: %w", w.tip.N+1, err)
	}
	w.sum.Worst = max(w.sum.Worst, time.Since(start))
	w.tip = next
	w.sum.Commits++
	w.sum.Newest = next.N
	return nil
}

// Tip returns the newest link.
func (w *Writer) Tip() Link { return w.tip }

const insertLink = "INSERT INTO chain (n, payload, state, hash) VALUES (?, ?, ?, ?)"

func (w *Writer) commit(ctx context.Context, payload []byte) (Link, error) {
	if w.load.Undo {
		if err := w.undo(ctx); err != nil {
			return Link{}, err
		}
	}
	if w.load.Churn == 0 {
		next := w.tip.next(payload, w.tip.state)
		_, err := w.db.ExecContext(ctx, insertLink, next.N, payload, next.state[:], next.Hash[:])
		return next, err
	}
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return Link{}, err
	}
	next, err := w.churnAndLink(ctx, tx, payload)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		// What the failed commit planned is forgotten by reading again.
		return Link{}, errors.Join(err, ignoreDone(tx.Rollback()), w.read(ctx))
	}
	return next, nil
}

func (w *Writer) undo(ctx context.Context) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE churn SET body = randomblob(length(body))")
	return errors.Join(err, tx.Rollback())
}

func (w *Writer) churnAndLink(ctx context.Context, tx *sql.Tx, payload []byte) (Link, error) {
	state := w.tip.state
	for range w.load.Churn {
		s := w.plan()
		if _, err := tx.ExecContext(ctx, s.query, s.args...); err != nil {
			return Link{}, err
		}
		state.xor(s.change)
	}
	next := w.tip.next(payload, state)
	_, err := tx.ExecContext(ctx, insertLink, next.N, payload, next.state[:], next.Hash[:])
	return next, err
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

func (w *Writer) random(n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		v := w.rnd.Uint64()
		for k := range 8 {
			b[i+k] = byte(v >> (8 * k))
		}
	}
	return b
}
