package s3_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/storage"
)

// BenchmarkPutSmall is one commit's upload to a server on this machine.
func BenchmarkPutSmall(b *testing.B) {
	bucket := open(b, testbucket.Gateway(b).URL("p"))
	content := make([]byte, 4096)
	var spent []time.Duration
	for b.Loop() {
		start := time.Now()
		key := fmt.Sprintf("0000/%016x.ltx", len(spent))
		if _, err := bucket.Put(b.Context(), key, bytes.NewReader(content), storage.Condition{Absent: true}); err != nil {
			b.Fatal(err)
		}
		spent = append(spent, time.Since(start))
	}
	slices.Sort(spent)
	b.ReportMetric(float64(spent[len(spent)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(spent[len(spent)*95/100].Microseconds())/1000, "p95-ms")
}

// BenchmarkLarge stores and reads a file of 200 MiB.
func BenchmarkLarge(b *testing.B) {
	bucket := open(b, testbucket.Gateway(b).URL("p"))
	const size = 200 << 20
	name := filepath.Join(b.TempDir(), "large")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.Run("Put", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := bucket.Put(b.Context(), "large", f, storage.Condition{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Get", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			body, _, err := bucket.Get(b.Context(), "large", storage.Range{})
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, body); err != nil || n != size {
				b.Fatalf("read %d bytes: %v", n, err)
			}
			body.Close()
		}
	})
}
