package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/tidemark-io/tidemark/storage"
)

// ErrInjected is what a Fault without an error of its own fails with.
var ErrInjected = errors.New("injected fault")

// Op names a method of a bucket.
type Op string

// The operations a Fault can name.
const (
	Get    Op = "get"
	Put    Op = "put"
	List   Op = "list"
	Delete Op = "delete"
)

// Faulty passes calls on to a bucket as long as no Fault says otherwise. It
// is safe for concurrent use.
type Faulty struct {
	bucket storage.Bucket

	mu     sync.Mutex
	faults []*Fault
	calls  map[Op]int
}

// NewFaulty returns b in good weather.
func NewFaulty(b storage.Bucket) *Faulty {
	return &Faulty{bucket: b, calls: map[Op]int{}}
}

// Inject adds faults. The first one that matches a call decides about it.
func (f *Faulty) Inject(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range faults {
		f.faults = append(f.faults, &fault)
	}
}

// FailNext lets the next n calls fail without reaching the bucket.
func (f *Faulty) FailNext(n int) { f.Inject(Fault{Times: n}) }

// FailKeys lets calls fail for keys that match the path.Match pattern, until
// Heal.
func (f *Faulty) FailKeys(pattern string) { f.Inject(Fault{Keys: pattern}) }

// Heal forgets all faults. Calls that hang go on hanging.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Calls says how often an operation was asked for, refused calls included.
func (f *Faulty) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// String is the bucket's.
func (f *Faulty) String() string { return f.bucket.String() }

// Get may fail, or return a body that ends early.
func (f *Faulty) Get(ctx context.Context, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	fault := f.match(Get, key)
	if err := fault.before(ctx); err != nil {
		return nil, storage.Object{}, fmt.Errorf("get %s/%s: %w", f, key, err)
	}
	body, object, err := f.bucket.Get(ctx, key, part)
	if err != nil || fault == nil || fault.Effect != CutBody {
		return body, object, err
	}
	return cutBody{io.LimitReader(body, fault.Bytes), body}, object, nil
}

// Put may fail before or after the body is stored.
func (f *Faulty) Put(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
	fault := f.match(Put, key)
	if err := fault.before(ctx); err != nil {
		return storage.Object{}, fmt.Errorf("put %s/%s: %w", f, key, err)
	}
	object, err := f.bucket.Put(ctx, key, body, cond)
	if lost := fault.after(); lost != nil {
		return storage.Object{}, fmt.Errorf("put %s/%s: %w", f, key, lost)
	}
	return object, err
}

// List may fail at its start, or break after some objects.
func (f *Faulty) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		fault := f.match(List, prefix)
		if err := fault.before(ctx); err != nil {
			yield(storage.Object{}, fmt.Errorf("list %s/%s: %w", f, prefix, err))
			return
		}
		listed := int64(0)
		for object, err := range f.bucket.List(ctx, prefix, after) {
			if fault != nil && fault.Effect == BreakList && listed == fault.Bytes {
				yield(storage.Object{}, fmt.Errorf("list %s/%s: %w", f, prefix, fault.cause()))
				return
			}
			if !yield(object, err) {
				return
			}
			listed++
		}
	}
}

// Delete may fail before or after the objects are gone. A fault that names
// keys strikes the whole call.
func (f *Faulty) Delete(ctx context.Context, keys ...string) error {
	fault := f.match(Delete, keys...)
	if err := fault.before(ctx); err != nil {
		return fmt.Errorf("delete %q from %s: %w", keys, f, err)
	}
	err := f.bucket.Delete(ctx, keys...)
	if lost := fault.after(); lost != nil {
		return fmt.Errorf("delete %q from %s: %w", keys, f, lost)
	}
	return err
}

// match counts the call and returns the fault that strikes it, or nil.
func (f *Faulty) match(op Op, keys ...string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	for i, fault := range f.faults {
		if !fault.matches(op, keys) {
			continue
		}
		hit := *fault
		if fault.Times > 0 {
			if fault.Times--; fault.Times == 0 {
				f.faults = slices.Delete(f.faults, i, i+1)
			}
		}
		return &hit
	}
	return nil
}

// cutBody ends early, and in silence.
type cutBody struct {
	io.Reader
	io.Closer
}
