package demo_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/demo"
)

// written returns a catalog with some commits.
func written(t *testing.T, commits int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a ?#%catalog.db")
	if err := demo.Create(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := demo.Write(ctx, path, time.Microsecond, func(n int64) {
		if n == commits {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func picture(t *testing.T, path string) demo.Picture {
	t.Helper()
	p, err := demo.Take(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWriterKeepsAnUnbrokenChain(t *testing.T) {
	path := written(t, 25)
	p := picture(t, path)
	if p.Commits != 25 || p.Broken != 0 || p.Integrity != "ok" {
		t.Fatalf("got %+v", p)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	twin := filepath.Join(t.TempDir(), "twin.db")
	if err := os.WriteFile(twin, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := picture(t, twin); got != p {
		t.Fatalf("copy: got %+v, want %+v", got, p)
	}
}

func TestPictureSeesDamage(t *testing.T) {
	for _, damage := range []string{
		"UPDATE chain SET payload = x'00' WHERE n = 7",
		"DELETE FROM chain WHERE n = 7",
		"UPDATE ducklake_data_file SET path = 'x' WHERE data_file_id = 3",
		"CREATE INDEX i ON chain(hash)",
	} {
		path := written(t, 10)
		before := picture(t, path)
		db, err := sql.Open("sqlite3", "file:"+filepath.Join(filepath.Dir(path), "a%20%3f%23%25catalog.db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		after := picture(t, path)
		if after.Dump == before.Dump || after.Pages == before.Pages {
			t.Errorf("%s: not seen", damage)
		}
	}
}
