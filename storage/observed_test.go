package storage_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestObservedKeepsTheContract(t *testing.T) {
	storagetest.Suite(t, func(t *testing.T) storage.Bucket {
		return storage.Observed(newDir(t, t.TempDir()), nil)
	})
}

func TestObservedCountsOperationsBytesAndErrors(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := storage.Observed(newDir(t, t.TempDir()), reg)
	store(t, b, "a", "0123456789")
	store(t, b, "b", "")
	if _, err := b.Put(t.Context(), "a", strings.NewReader("x"), storage.Condition{Absent: true}); err == nil {
		t.Fatal("created twice")
	}
	body, _, err := b.Get(t.Context(), "a", storage.Range{Offset: 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Fatal(err)
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Get(t.Context(), "none", storage.Range{}); err == nil {
		t.Fatal("got what is not there")
	}
	if _, err := listed(t, b, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	got := gather(t, reg)
	for name, want := range map[string]float64{
		"tidemark_bucket_request_seconds put":           3,
		"tidemark_bucket_request_seconds get":           2,
		"tidemark_bucket_request_seconds list":          1,
		"tidemark_bucket_request_seconds delete":        1,
		"tidemark_bucket_bytes_total put":               10,
		"tidemark_bucket_bytes_total get":               6,
		"tidemark_bucket_errors_total precondition put": 1,
		"tidemark_bucket_errors_total not-found get":    1,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v (all: %v)", name, got[name], want, got)
		}
	}
}

// gather returns counters, and the counts of histograms, by name and labels.
func gather(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += fmt.Sprintf(" %s", label.GetValue())
			}
			got[name] = metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return got
}
