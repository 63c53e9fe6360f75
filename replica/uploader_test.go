package replica_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// queue is a Source of files that are there already.
type queue struct {
	changed chan struct{}

	mu    sync.Mutex
	files []replica.Pending
	done  []ltx.TXID
}

func newQueue() *queue { return &queue{changed: make(chan struct{}, 1)} }

func (q *queue) add(files ...replica.Pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.files = append(q.files, files...)
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

func (q *queue) Next() (replica.Pending, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.files) == 0 {
		return replica.Pending{}, false
	}
	return q.files[0], true
}

func (q *queue) Done(p replica.Pending) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.files) == 0 || q.files[0] != p {
		return errors.New("not the oldest file")
	}
	q.files = q.files[1:]
	q.done = append(q.done, p.Info.Max)
	return nil
}

func (q *queue) Changed() <-chan struct{} { return q.changed }

func (q *queue) uploaded() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.done)
}

// until polls a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

var fast = replica.UploaderOptions{MinBackoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond}

func TestUploaderKeepsTheOrderThroughAnOutage(t *testing.T) {
	h, q := newHistory(t, 512), newQueue()
	var log bytes.Buffer
	r := replica.New(h.bucket, replica.LayoutDir, slog.New(slog.NewTextHandler(&log, nil)))
	u := replica.NewUploader(r, q, fast)
	h.bucket.Inject(
		storagetest.Fault{Op: storagetest.Put, Times: 3},
		storagetest.Fault{Op: storagetest.Put, Effect: storagetest.LoseReply, Times: 2},
	)
	dir, size := t.TempDir(), int64(0)
	for range 20 {
		p := h.capture(dir)
		q.add(p)
	}
	if err := u.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := h.Files(t.Context(), 0)
	if err != nil || len(files) != 20 {
		t.Fatalf("got %d files, %v; want 20", len(files), err)
	}
	for i, f := range files {
		size += f.Size
		if want := ltx.TXID(i + 1); f.Min != want || f.Max != want || q.done[i] != want {
			t.Errorf("file %d is %+v, done as %d", i, f, q.done[i])
		}
	}
	s := u.Status()
	if s.Pos != h.pos || s.Uploads != 20 || s.Bytes != size || s.Pending || s.LastError != nil || s.At.IsZero() {
		t.Errorf("got status %+v, want %v and %d bytes", s, h.pos, size)
	}
	// One outage has one line at its start and one at its end. The answers
	// that are lost belong to it.
	if got := strings.Count(log.String(), "\n"); got != 2 {
		t.Errorf("got %d log lines, want 2:\n%s", got, log.String())
	}
}

func TestRunUploadsWhatComes(t *testing.T) {
	h, q, dir := newHistory(t, 512), newQueue(), t.TempDir()
	var mu sync.Mutex
	var seen []ltx.Pos
	o := fast
	o.Uploaded = func(f ltx.FileInfo, pos ltx.Pos) {
		mu.Lock()
		defer mu.Unlock()
		if f.Max != pos.TXID || f.Size == 0 || f.ModTime.IsZero() {
			t.Errorf("was told of %+v at %v", f, pos)
		}
		seen = append(seen, pos)
	}
	u := replica.NewUploader(h.Replica, q, o)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	var g errgroup.Group
	g.Go(func() error { return u.Run(ctx) })
	for n := range 3 {
		q.add(h.capture(dir))
		until(t, "the file is uploaded", func() bool { return q.uploaded() == n+1 })
	}
	cancel(stop)
	if err := g.Wait(); !errors.Is(err, stop) {
		t.Errorf("run returned %v, want the cause of its end", err)
	}
	if len(seen) != 3 || seen[2] != h.pos {
		t.Errorf("was told of %v, want 3 up to %v", seen, h.pos)
	}
}

func TestStatusShowsTheOutageThatLasts(t *testing.T) {
	h, q := newHistory(t, 512), newQueue()
	u := replica.NewUploader(h.Replica, q, fast)
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Err: storage.ErrForbidden})
	q.add(h.capture(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return u.Run(ctx) })
	until(t, "the outage is seen", func() bool { return u.Status().LastError != nil })
	s := u.Status()
	if !errors.Is(s.LastError, storage.ErrForbidden) || s.ErrorSince.IsZero() || !s.Pending || s.Uploads != 0 {
		t.Errorf("got status %+v", s)
	}
	h.bucket.Heal()
	until(t, "the outage is over", func() bool { return u.Status().LastError == nil && u.Status().Uploads == 1 })
	cancel()
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("run returned %v", err)
	}
}

func TestFlushBesideRunUploadsEachFileOnce(t *testing.T) {
	h, q, dir := newHistory(t, 512), newQueue(), t.TempDir()
	u := replica.NewUploader(h.Replica, q, fast)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var runs, flushes errgroup.Group
	runs.Go(func() error { return u.Run(ctx) })
	for range 50 {
		q.add(h.capture(dir))
	}
	for range 4 {
		flushes.Go(func() error { return u.Flush(t.Context()) })
	}
	if err := flushes.Wait(); err != nil {
		t.Fatal(err)
	}
	if s := u.Status(); s.Uploads != 50 || q.uploaded() != 50 || h.bucket.Calls(storagetest.Put) != 50 {
		t.Errorf("%d uploads, %d done, %d requests; want 50 of each", s.Uploads, q.uploaded(), h.bucket.Calls(storagetest.Put))
	}
	cancel()
	if err := runs.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("run returned %v", err)
	}
}

func TestFlushGivesUpWithItsContext(t *testing.T) {
	for _, fault := range []storagetest.Fault{{Op: storagetest.Put}, {Op: storagetest.Put, Effect: storagetest.Hang}} {
		h, q := newHistory(t, 512), newQueue()
		h.bucket.Inject(fault)
		u := replica.NewUploader(h.Replica, q, fast)
		q.add(h.capture(t.TempDir()))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := u.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v: got %v, want the deadline", fault, err)
		}
		cancel()
		if _, waits := q.Next(); !waits {
			t.Errorf("%+v: the file was dropped", fault)
		}
	}
}

func TestUploaderStopsWhenFenced(t *testing.T) {
	h, q := newHistory(t, 512), newQueue()
	u := replica.NewUploader(h.Replica, q, fast)
	p := h.capture(t.TempDir())
	h.put(p.Info, []byte("written by another process"))
	q.add(p)
	if err := u.Run(t.Context()); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("run returned %v, want ErrFenced", err)
	}
	if err := u.Flush(t.Context()); !errors.Is(err, replica.ErrFenced) || !errors.Is(u.Status().LastError, replica.ErrFenced) {
		t.Errorf("flush returned %v, want ErrFenced", err)
	}
	if q.uploaded() != 0 {
		t.Error("the fenced file was dropped")
	}
}

func TestWhatIsStoredIsShownWhileTheSourceHasIt(t *testing.T) {
	h, q := newHistory(t, 512), newQueue()
	var stored []ltx.TXID
	options := fast
	options.Stored = func(p replica.Pending, f ltx.FileInfo) {
		content, err := os.ReadFile(p.Path)
		if err != nil || int64(len(content)) != f.Size || f.ModTime.IsZero() || q.uploaded() != len(stored) {
			t.Errorf("got %v, %v: %d bytes are here, %d were done before", f, err, len(content), q.uploaded())
		}
		stored = append(stored, f.Max)
	}
	h.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Effect: storagetest.LoseReply, Times: 2})
	dir := t.TempDir()
	for range 3 {
		q.add(h.capture(dir))
	}
	if err := replica.NewUploader(h.Replica, q, options).Flush(t.Context()); err != nil || len(stored) != 3 {
		t.Errorf("%v were shown, %v", stored, err)
	}
}
