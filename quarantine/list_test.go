package quarantine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/quarantine"
)

func pending(t *testing.T, dir string, entries int, transactions uint64) {
	t.Helper()
	n, txs, err := quarantine.Pending(dir)
	if err != nil || n != entries || txs != transactions {
		t.Errorf("got %d entries with %d transactions and %v, want %d and %d", n, txs, err, entries, transactions)
	}
}

func TestNoQuarantineIsAnEmptyOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	pending(t, dir, 0, 0)
	if _, err := quarantine.Find(dir, "x"); !errors.Is(err, quarantine.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyWhatIsAcknowledgedCanBeRemoved(t *testing.T) {
	p := newPlace(t, table, more)
	e := p.set()
	p.input.Manifest.First, p.input.Manifest.Last = 0, 0
	other := p.set()
	pending(t, p.dir, 2, 4)
	if err := quarantine.Remove(p.dir, e.ID); !errors.Is(err, quarantine.ErrNotAcknowledged) {
		t.Errorf("got %v", err)
	}
	if err := quarantine.Ack(p.dir, "x"); !errors.Is(err, quarantine.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if err := quarantine.Ack(p.dir, e.ID); err != nil {
			t.Fatal(err)
		}
	}
	pending(t, p.dir, 1, 1)
	if acked, err := quarantine.Find(p.dir, e.ID); err != nil || acked.Acknowledged.IsZero() || acked.Problem != "" {
		t.Errorf("got %+v and %v", acked, err)
	}
	if err := quarantine.Remove(p.dir, e.ID); err != nil {
		t.Fatal(err)
	}
	if got := names(t, p.dir); got != other.ID {
		t.Errorf("the quarantine holds %s", got)
	}
}

func TestADamagedEntryIsListedAndCanBeAcknowledged(t *testing.T) {
	for damage, do := range map[string]func(dir string) error{
		"manifest.json":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{"), 0o600) },
		"no such file":      func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) },
		"bytes, was set":    func(dir string) error { return os.Truncate(filepath.Join(dir, "database.db"), 100) },
		"ltx: no such file": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "ltx")) },
		"acknowledged.json": func(dir string) error { return os.WriteFile(filepath.Join(dir, "acknowledged.json"), nil, 0o600) },
		`names "../x"`: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{"files": [{"name": "../x"}]}`), 0o600)
		},
	} {
		t.Run(damage, func(t *testing.T) {
			p := newPlace(t, table, more)
			whole := p.set()
			if err := do(whole.Path); err != nil {
				t.Fatal(err)
			}
			e := p.list(1)[0]
			if !strings.Contains(e.Problem, strings.TrimPrefix(damage, "ltx: ")) || e.ID != whole.ID {
				t.Errorf("got %s, %q", e.ID, e.Problem)
			}
			out := filepath.Join(t.TempDir(), "out.db")
			if err := e.Export(t.Context(), out); !errors.Is(err, quarantine.ErrDamaged) {
				t.Errorf("export: %v", err)
			}
			if err := e.Diff(t.Context(), p.database, quarantine.Text(&strings.Builder{})); !errors.Is(err, quarantine.ErrDamaged) {
				t.Errorf("diff: %v", err)
			}
			if err := errors.Join(quarantine.Ack(p.dir, e.ID), quarantine.Remove(p.dir, e.ID)); err != nil {
				t.Fatal(err)
			}
			p.list(0)
		})
	}
}

func TestExportNeverReplacesAFile(t *testing.T) {
	p := newPlace(t, table, more)
	e := p.set()
	for _, part := range []string{"", "-wal", "-journal", "-shm"} {
		out := filepath.Join(t.TempDir(), "out.db")
		if err := os.WriteFile(out+part, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := e.Export(t.Context(), out)
		if err == nil || !strings.Contains(err.Error(), out+part+" exists") {
			t.Errorf("got %v", err)
		}
		if b, err := os.ReadFile(out + part); err != nil || string(b) != "x" {
			t.Errorf("%s holds %q, %v", part, b, err)
		}
		if got := names(t, filepath.Dir(out)); got != "out.db"+part {
			t.Errorf("%s is there", got)
		}
	}
}

func TestExportProvesWhatItWrites(t *testing.T) {
	p := newPlace(t, table, more)
	e := p.set()
	f, err := os.OpenFile(e.Database(), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("x"), 5000)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := e.Export(t.Context(), filepath.Join(dir, "out.db")); !errors.Is(err, quarantine.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if got := names(t, dir); got != "" {
		t.Errorf("%s was left", got)
	}
}
