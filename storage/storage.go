// Package storage is the seam between Tidemark and the place where replicas
// are kept. It moves bytes under keys and knows nothing of LTX files, levels
// or databases. The contract every implementation keeps is written on Bucket
// and executed by storagetest.Suite.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

var (
	// ErrNotFound is wrapped when the key does not exist.
	ErrNotFound = errors.New("object not found")
	// ErrPrecondition is wrapped when a Condition did not hold: nothing was
	// stored by this request.
	ErrPrecondition = errors.New("precondition failed")
	// ErrForbidden is wrapped when the service refuses the credentials or the
	// permission.
	ErrForbidden = errors.New("access denied")
	// ErrSkewed is wrapped, beside ErrForbidden, when the service refuses the
	// time of a request: the clock of this machine is wrong. Nothing was stored.
	ErrSkewed = errors.New("the clock of this machine is too far from the service's")
)

// Bucket holds objects under slash-separated keys relative to its own prefix.
// All methods are safe for concurrent use. A key that would leave the prefix
// (empty, absolute, with a "." or ".." element or a NUL byte) is an error.
type Bucket interface {
	// String returns the URL without secrets, for messages.
	fmt.Stringer

	// Get opens an object, or the part of it that part names. The caller
	// closes the reader. A part beyond the end is cut; one that starts at or
	// after the end yields no bytes. Object.Size is the size of the whole.
	// Wraps ErrNotFound.
	Get(ctx context.Context, key string, part Range) (io.ReadCloser, Object, error)

	// Put stores the body from its start to its end, all or nothing, and may
	// rewind it to try again. It is durable when Put returns. Wraps
	// ErrPrecondition when cond does not hold. Any other error leaves open
	// whether the object was stored.
	Put(ctx context.Context, key string, body io.ReadSeeker, cond Condition) (Object, error)

	// List yields the objects whose key starts with prefix and sorts after
	// after, in byte order of their keys. After an error it ends; an error
	// never looks like an empty list. Unfinished writes are not listed.
	List(ctx context.Context, prefix, after string) iter.Seq2[Object, error]

	// Delete removes objects; a missing one is no error. It tries every key
	// and joins the errors, each naming its key.
	Delete(ctx context.Context, keys ...string) error
}

// Object describes a stored object. List may leave ETag empty. An ETag may be
// the hash of the content, so it comes back when the same bytes are stored
// again: whoever swaps by ETag never writes the same bytes twice.
type Object struct {
	Key     string
	Size    int64 // bytes
	ETag    string
	ModTime time.Time
	Now     time.Time // when Get was answered, by the clock that set ModTime; zero: unknown
}

// Range selects bytes of an object; the zero value is the whole object, a
// zero Length reaches to the end.
type Range struct{ Offset, Length int64 }

// Condition guards a Put. At most one field is set; the zero value always
// holds.
type Condition struct {
	Absent bool   // the key must not exist (If-None-Match: *)
	ETag   string // the object must still have this ETag (If-Match)
}
