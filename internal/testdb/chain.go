package testdb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
)

// The chain has one row a commit. Its hash covers the row before it, and its
// state is the sum (XOR) of the hashes of all rows of churn after the commit,
// so that a database proves by itself that it is exactly what one commit left.
const chainSchema = `
CREATE TABLE IF NOT EXISTS chain (
  n INTEGER PRIMARY KEY, payload BLOB NOT NULL, state BLOB NOT NULL, hash BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS churn (id INTEGER PRIMARY KEY, body BLOB NOT NULL);`

// ErrBroken is wrapped when a chain has a gap, a wrong hash, or churn that its
// last commit did not leave.
var ErrBroken = errors.New("chain is broken")

type digest [sha256.Size]byte

func (d *digest) xor(o digest) {
	for i := range d {
		d[i] ^= o[i]
	}
}

// Link is the newest row of a chain: how many commits it has and the hash
// that stands for all of them.
type Link struct {
	N     int64
	Hash  digest
	state digest
}

// String returns the number and the start of the hash.
func (l Link) String() string { return fmt.Sprintf("%d:%x", l.N, l.Hash[:4]) }

func (l Link) next(payload []byte, state digest) Link {
	h := sha256.New()
	h.Write(l.Hash[:])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(l.N+1))
	h.Write(n[:])
	h.Write(state[:])
	h.Write(payload)
	out := Link{N: l.N + 1, state: state}
	h.Sum(out.Hash[:0])
	return out
}

func churnDigest(id int64, body []byte) (d digest) {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(id))
	h.Write(n[:])
	h.Write(body)
	h.Sum(d[:0])
	return d
}

func layChain(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, chainSchema); err != nil {
		return fmt.Errorf("create chain: %w", err)
	}
	return nil
}

// Verify reads the chain of a database and the churn beside it in one read
// transaction. It wraps ErrBroken when they do not prove each other.
func Verify(ctx context.Context, path string) (Link, error) {
	db, err := connect(path, "ro")
	if err != nil {
		return Link{}, err
	}
	l, err := verify(ctx, db)
	if err := errors.Join(err, db.Close()); err != nil {
		return Link{}, fmt.Errorf("verify chain of %s: %w", path, err)
	}
	return l, nil
}

func verify(ctx context.Context, db *sql.DB) (Link, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return Link{}, err
	}
	l, err := readChain(ctx, tx)
	if err != nil {
		return Link{}, errors.Join(err, tx.Rollback())
	}
	rows, err := readChurn(ctx, tx)
	if err := errors.Join(err, tx.Rollback()); err != nil {
		return Link{}, err
	}
	var state digest
	for _, d := range rows {
		state.xor(d)
	}
	if l.N > 0 && state != l.state {
		return Link{}, fmt.Errorf("%w: the churn of %d rows is not what commit %d left", ErrBroken, len(rows), l.N)
	}
	return l, nil
}

func readChain(ctx context.Context, tx *sql.Tx) (l Link, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT n, payload, state, hash FROM chain ORDER BY n")
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n int64
		var payload, state, hash sql.RawBytes
		if err := rows.Scan(&n, &payload, &state, &hash); err != nil {
			return l, err
		}
		if n != l.N+1 {
			return l, fmt.Errorf("%w: commit %d follows %d", ErrBroken, n, l.N)
		}
		var s digest
		copy(s[:], state)
		l = l.next(payload, s)
		if !bytes.Equal(l.Hash[:], hash) {
			return l, fmt.Errorf("%w: hash of commit %d", ErrBroken, n)
		}
	}
	return l, rows.Err()
}

func readChurn(ctx context.Context, tx *sql.Tx) (out map[int64]digest, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT id, body FROM churn")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	out = map[int64]digest{}
	for rows.Next() {
		var id int64
		var body sql.RawBytes
		if err := rows.Scan(&id, &body); err != nil {
			return nil, err
		}
		out[id] = churnDigest(id, body)
	}
	return out, rows.Err()
}

// CheckPrefix tells whether the chain of the live database has link at its
// place, that is, whether a database with that newest link is an earlier or
// the present state of it.
func CheckPrefix(ctx context.Context, l Link, live string) (err error) {
	if l.N == 0 {
		return nil
	}
	db, err := connect(live, "ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var hash []byte
	err = db.QueryRowContext(ctx, "SELECT hash FROM chain WHERE n = ?", l.N).Scan(&hash)
	if err != nil {
		return fmt.Errorf("look for commit %d in %s: %w", l.N, live, err)
	}
	if !bytes.Equal(hash, l.Hash[:]) {
		return fmt.Errorf("%w: commit %d is not the one of %s", ErrBroken, l.N, live)
	}
	return nil
}
