package s3_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func directory(t *testing.T) storage.Bucket {
	t.Helper()
	d, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// empty fails the test when the probe has left something.
func empty(t *testing.T, b storage.Bucket) {
	t.Helper()
	for object, err := range b.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s was left behind", object.Key)
	}
}

func TestProbePassesWhatIsFit(t *testing.T) {
	for name, b := range map[string]storage.Bucket{
		"directory": directory(t),
		"versitygw": open(t, testbucket.Gateway(t).URL("probed")),
	} {
		t.Run(name, func(t *testing.T) {
			result, err := s3.Probe(t.Context(), b, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Checks) != 10 || result.Took == 0 {
				t.Errorf("got %+v", result)
			}
			t.Logf("%v: %+v", result.Took, result.Checks)
			empty(t, b)
		})
	}
}

func TestProbesOfADirectoryLeaveOneLockFileInAll(t *testing.T) {
	root := t.TempDir()
	b, err := storage.NewDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for range 2 {
		if _, err := s3.Probe(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
		left = nil
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				left = append(left, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
}

// bent is a bucket whose writes go another way.
type bent struct {
	storage.Bucket
	put func(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error)
}

func (b *bent) Put(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
	return b.put(ctx, key, body, cond)
}

func ignoresAbsent(b storage.Bucket) storage.Bucket {
	return &bent{b, func(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
		cond.Absent = false
		return b.Put(ctx, key, body, cond)
	}}
}

func ignoresMatch(b storage.Bucket) storage.Bucket {
	return &bent{b, func(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
		cond.ETag = ""
		return b.Put(ctx, key, body, cond)
	}}
}

// acceptsMatchOfNothing stores an object that is not there, whatever ETag is asked for.
func acceptsMatchOfNothing(b storage.Bucket) storage.Bucket {
	return &bent{b, func(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
		if _, _, err := b.Get(ctx, key, storage.Range{}); errors.Is(err, storage.ErrNotFound) {
			cond.ETag = ""
		}
		return b.Put(ctx, key, body, cond)
	}}
}

func refusesConditions(b storage.Bucket) storage.Bucket {
	return &bent{b, func(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
		if cond != (storage.Condition{}) {
			return storage.Object{}, errors.New("NotImplemented: a header you provided (HTTP 501)")
		}
		return b.Put(ctx, key, body, cond)
	}}
}

// looksThenWrites is right as long as nobody else writes.
func looksThenWrites(b storage.Bucket, which func(storage.Condition) bool) storage.Bucket {
	return &bent{b, func(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
		if !which(cond) {
			return b.Put(ctx, key, body, cond)
		}
		_, object, err := b.Get(ctx, key, storage.Range{})
		absent := errors.Is(err, storage.ErrNotFound)
		if err != nil && !absent {
			return storage.Object{}, err
		}
		if cond.Absent && !absent || cond.ETag != "" && (absent || object.ETag != cond.ETag) {
			return storage.Object{}, storage.ErrPrecondition
		}
		<-time.After(20 * time.Millisecond)
		return b.Put(ctx, key, body, storage.Condition{})
	}}
}

func TestProbeRefusesWhatIsUnfit(t *testing.T) {
	for name, test := range map[string]struct {
		bend func(storage.Bucket) storage.Bucket
		want string
	}{
		"ignores If-None-Match":     {ignoresAbsent, "create-only: "},
		"ignores If-Match":          {ignoresMatch, "if-match: "},
		"takes If-Match of nothing": {acceptsMatchOfNothing, "if-match without the object: "},
		"knows no conditions":       {refusesConditions, "create: "},
		"creates in two steps": {func(b storage.Bucket) storage.Bucket {
			return looksThenWrites(b, func(c storage.Condition) bool { return c.Absent })
		}, "create race of 4 KiB: "},
		"replaces in two steps": {func(b storage.Bucket) storage.Bucket {
			return looksThenWrites(b, func(c storage.Condition) bool { return c.ETag != "" })
		}, "if-match race: "},
		"answers old content":          {func(b storage.Bucket) storage.Bucket { return &stale{Bucket: b, kept: map[string]string{}} }, "if-match: "},
		"answers other ETags to reads": {func(b storage.Bucket) storage.Bucket { return &relabeled{b} }, "etag: "},
		"lives in another time":        {func(b storage.Bucket) storage.Bucket { return &misdated{b} }, "clock: "},
		"lists late":                   {func(b storage.Bucket) storage.Bucket { return &forgetful{b} }, "list: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := directory(t)
			_, err := s3.Probe(t.Context(), test.bend(b), nil)
			if !errors.Is(err, s3.ErrUnfit) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want the check %q to fail", err, test.want)
			}
			t.Log(err)
			if name != "lists late" {
				empty(t, b)
			}
		})
	}
}

func TestProbeCopesWithWhatALeaseCopesWith(t *testing.T) {
	for name, bend := range map[string]func(storage.Bucket) storage.Bucket{
		"another error for lost races": func(b storage.Bucket) storage.Bucket {
			return &bent{b, func(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
				object, err := b.Put(ctx, key, body, cond)
				if errors.Is(err, storage.ErrPrecondition) {
					err = errors.New("ConditionalRequestConflict: try again (HTTP 409)")
				}
				return object, err
			}}
		},
		"every fifth reply lost": func(b storage.Bucket) storage.Bucket {
			var n atomic.Int32
			return &bent{b, func(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
				object, err := b.Put(ctx, key, body, cond)
				if n.Add(1)%5 == 1 && cond != (storage.Condition{}) {
					return storage.Object{}, errors.Join(errors.New("connection reset"), err)
				}
				return object, err
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := directory(t)
			if _, err := s3.Probe(t.Context(), bend(b), nil); err != nil {
				t.Error(err)
			}
			empty(t, b)
		})
	}
}

func TestProbeOfWhatDoesNotAnswerFindsNothingOut(t *testing.T) {
	b := storagetest.NewFaulty(directory(t))
	b.Inject(storagetest.Fault{})
	if _, err := s3.Probe(t.Context(), b, nil); err == nil || errors.Is(err, s3.ErrUnfit) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s3.Probe(ctx, directory(t), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// stale answers what it answered first.
type stale struct {
	storage.Bucket
	mu   sync.Mutex
	kept map[string]string
}

func (s *stale) Get(ctx context.Context, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	body, object, err := s.Bucket.Get(ctx, key, part)
	if err != nil {
		return body, object, err
	}
	content, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, object, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.kept[key]; ok {
		content = []byte(old)
	}
	s.kept[key] = string(content)
	return io.NopCloser(strings.NewReader(string(content))), object, nil
}

type relabeled struct{ storage.Bucket }

func (r *relabeled) Get(ctx context.Context, key string, part storage.Range) (io.ReadCloser, storage.Object, error) {
	body, object, err := r.Bucket.Get(ctx, key, part)
	object.ETag = "W/" + object.ETag
	return body, object, err
}

func TestAProbeOfWhatIsAwaySaysNothingOfLeftovers(t *testing.T) {
	b := storagetest.NewFaulty(directory(t))
	b.FailNext(1 << 20)
	var log strings.Builder
	_, err := s3.Probe(t.Context(), b, slog.New(slog.NewTextHandler(&log, nil)))
	if err == nil || errors.Is(err, s3.ErrUnfit) {
		t.Errorf("got %v", err)
	}
	if log.Len() > 0 {
		t.Errorf("it said %s", log.String())
	}
}
