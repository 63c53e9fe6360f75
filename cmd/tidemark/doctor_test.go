package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// careless is a bucket that creates objects which are there.
type careless struct{ storage.Bucket }

func (b careless) Put(ctx context.Context, key string, body io.ReadSeeker, cond storage.Condition) (storage.Object, error) {
	cond.Absent = false
	return b.Bucket.Put(ctx, key, body, cond)
}

func TestDoctorNamesTheCheckThatFailed(t *testing.T) {
	dir, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	report, err := examine(t.Context(), careless{dir}, location{dir: "/lake"}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, s3.ErrUnfit) || exitCode(err) != exitFailed || !strings.Contains(err.Error(), ": create-only: ") {
		t.Errorf("got %v", err)
	}
	if report.Fit || report.Error != err.Error() || len(report.Passed) == 0 || report.Passed[len(report.Passed)-1].Name == "create-only" {
		t.Errorf("got %+v", report)
	}
	var out strings.Builder
	if err := report.print(&out); err != nil || strings.Contains(out.String(), "can be kept") || !strings.HasPrefix(out.String(), "file:///lake\nok  create ") {
		t.Errorf("got %q and %v", out.String(), err)
	}
}
