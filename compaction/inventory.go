package compaction

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// fileKey names a file of the replica.
type fileKey struct {
	level    int
	min, max ltx.TXID
}

func keyOf(f ltx.FileInfo) fileKey { return fileKey{f.Level, f.Min, f.Max} }

// inventory is what the bucket holds, as far as is known: one listing and what
// was done since.
type inventory struct {
	replica *replica.Replica
	clock   *Clock
	listing chan struct{} // capacity 1: held while a listing is made

	mu    sync.Mutex
	files map[fileKey]ltx.FileInfo // nil: not known
	added []ltx.FileInfo           // since the listing under way began
	bad   map[fileKey]bool         // files that cannot be merged: as good as missing

	counted Status // of files, when it was known last
}

func newInventory(r *replica.Replica, c *Clock) *inventory {
	return &inventory{replica: r, clock: c, listing: make(chan struct{}, 1), bad: map[fileKey]bool{}}
}

// load makes sure of a listing and returns the files that can be used.
func (v *inventory) load(ctx context.Context) ([]ltx.FileInfo, error) {
	if files, ok := v.known(); ok {
		return files, nil
	}
	done, err := hold(ctx, v.listing)
	if err != nil {
		return nil, err
	}
	defer done()
	if files, ok := v.known(); ok {
		return files, nil // another step has listed meanwhile
	}
	return v.relist(ctx)
}

// list makes a listing and returns the files that can be used.
func (v *inventory) list(ctx context.Context) ([]ltx.FileInfo, error) {
	done, err := hold(ctx, v.listing)
	if err != nil {
		return nil, err
	}
	defer done()
	v.forget()
	return v.relist(ctx)
}

// relist lists. What is added meanwhile counts, whether it shows or not.
func (v *inventory) relist(ctx context.Context) ([]ltx.FileInfo, error) {
	listed, err := v.replica.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	v.learn(listed)
	files, _ := v.known()
	return files, nil
}

func (v *inventory) learn(listed []ltx.FileInfo) {
	v.clock.seen(listed)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.files = map[fileKey]ltx.FileInfo{}
	for _, f := range append(v.added, listed...) {
		v.files[keyOf(f)] = f
	}
	v.added = nil
}

// listed takes over a listing that somebody else made, if there is none.
func (v *inventory) listed(files []ltx.FileInfo) {
	select {
	case v.listing <- struct{}{}:
		defer func() { <-v.listing }()
	default:
		return // one is under way
	}
	if _, ok := v.known(); !ok {
		v.learn(files)
	}
}

// known returns the files that can be used, sorted by Level, Min and Max.
func (v *inventory) known() ([]ltx.FileInfo, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	files := make([]ltx.FileInfo, 0, len(v.files))
	for k, f := range v.files {
		if !v.bad[k] {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b ltx.FileInfo) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Min, b.Min), cmp.Compare(a.Max, b.Max))
	})
	return files, v.files != nil
}

// add notes a file that was just stored.
func (v *inventory) add(f ltx.FileInfo) {
	if f.ModTime.IsZero() {
		f.ModTime = time.Now()
	}
	v.clock.Note(f.ModTime)
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.bad, keyOf(f))
	if v.files == nil {
		v.added = append(v.added, f)
		return
	}
	v.files[keyOf(f)] = f
}

// remove notes files that were deleted.
func (v *inventory) remove(files []ltx.FileInfo) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range files {
		delete(v.files, keyOf(f))
		delete(v.bad, keyOf(f))
	}
}

// exclude takes a file as missing from now on.
func (v *inventory) exclude(f ltx.FileInfo) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bad[keyOf(f)] = true
}

// include takes back that a file was excluded.
func (v *inventory) include(f ltx.FileInfo) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.bad, keyOf(f))
}

// excludes tells whether a file was excluded.
func (v *inventory) excludes(f ltx.FileInfo) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bad[keyOf(f)]
}

// stops tells whether a file was excluded that has TXIDs of a hole.
func (v *inventory) stops(h Hole) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for k := range v.bad {
		if k.min <= h.Max && k.max >= h.Min {
			return true
		}
	}
	return false
}

// damaged returns the files that were excluded and are there.
func (v *inventory) damaged() (files []ltx.FileInfo) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for k := range v.bad {
		if f, ok := v.files[k]; ok {
			files = append(files, f)
		}
	}
	return files
}

// forget makes the next load list anew.
func (v *inventory) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files != nil {
		v.counted = count(v.files)
	}
	v.files = nil
}
