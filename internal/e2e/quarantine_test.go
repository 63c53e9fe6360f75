//go:build e2e

package e2e_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/quarantine"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// overtaken makes a database with two files that could not be uploaded, since
// the replica went on with those of another node. It returns both databases
// and the tail of the first.
func overtaken(t *testing.T, p rig.Place) (ours, theirs string, tail capture.Tail) {
	t.Helper()
	ours, db := live(t, testdb.Options{})
	commit(t, db, 20)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	rig.ReplicateOnce(t, ours, p)
	for range 2 {
		db := testdb.Open(t, ours)
		commit(t, db, 5)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if tail, err = capture.CutTail(t.Context(), ours, capture.Options{
			Log: slog.New(slog.DiscardHandler), Metrics: capture.NewMetrics(nil),
		}); err != nil {
			t.Fatal(err)
		}
	}
	theirs = filepath.Join(t.TempDir(), "live.db")
	if err := os.Rename(rig.Restore(t, p), theirs); err != nil {
		t.Fatal(err)
	}
	rig.ReplicateOnce(t, theirs, p)
	commit(t, testdb.Open(t, theirs), 7)
	rig.ReplicateOnce(t, theirs, p)
	return ours, theirs, tail
}

// quarantineTail puts a tail into the quarantine.
func quarantineTail(t *testing.T, p rig.Place, database string, tail capture.Tail) quarantine.Entry {
	t.Helper()
	first, last := tail.Files[0], tail.Files[len(tail.Files)-1]
	in := quarantine.Input{Database: database, Manifest: quarantine.Manifest{
		Node: "node-a", First: first.Info.Min, Last: last.Info.Max,
		Base:  quarantine.Position{TXID: tail.Base.TXID, Checksum: tail.Base.PostApplyChecksum},
		Local: quarantine.Side{Generation: 1, At: quarantine.Position{TXID: first.Pos.TXID, Checksum: first.Pos.PostApplyChecksum}},
	}}
	for _, f := range tail.Files {
		in.Files = append(in.Files, f.Path)
	}
	for _, f := range p.Level(t, 0) {
		if ltx.TXID(f.Max) == first.Info.Max {
			in.Manifest.Foreign = quarantine.Object{Key: f.Name(), Size: f.Size}
		}
	}
	if in.Manifest.Foreign.Key == "" {
		t.Fatalf("the replica does not have TXID %s: %v", first.Info.Max, p.Files(t))
	}
	e, err := quarantine.Set(t.Context(), quarantine.Dir(stateDir(database)), in)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// above opens the bucket that the place is in.
func above(t *testing.T, p rig.Place) (b storage.Bucket, name string) {
	t.Helper()
	if p.Server == nil {
		b, err := storage.NewDir(filepath.Dir(p.Dir))
		if err != nil {
			t.Fatal(err)
		}
		return b, filepath.Base(p.Dir)
	}
	cfg, err := s3.ParseURL(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	name = path.Base(cfg.Prefix)
	cfg.Prefix = path.Dir(cfg.Prefix)
	cfg.AccessKeyID, cfg.SecretAccessKey = testbucket.AccessKey, testbucket.SecretKey
	b, err = s3.Open(t.Context(), cfg.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return b, name
}

// told runs a command that must succeed and returns what it prints.
func told(t *testing.T, p rig.Place, args ...string) string {
	t.Helper()
	e := rig.Tidemark(t, p.Env, args...).Wait(t, rig.Limit)
	if e.Code != 0 {
		t.Fatalf("%q exited with %d", args, e.Code)
	}
	return e.Output
}

func TestCommitsThatWereOvertakenAreKept(t *testing.T) {
	everywhere(t, func(t *testing.T, p rig.Place) {
		ours, theirs, tail := overtaken(t, p)
		e := quarantineTail(t, p, ours, tail)
		if e.Copy.Checksum != tail.End.PostApplyChecksum || len(tail.Files) != 2 {
			t.Errorf("the copy sums up to %s, want that of %v; %d files", e.Copy.Checksum, tail.End, len(tail.Files))
		}
		if got := told(t, p, "quarantine", "list", ours); !strings.Contains(got, e.ID) || !strings.Contains(got, " open") {
			t.Errorf("listed: %s", got)
		}
		diff := told(t, p, "quarantine", "diff", "-replica", p.URL, ours)
		for n := 21; n <= 30; n++ {
			if !strings.Contains(diff, fmt.Sprintf("  + n=%d payload=x'", n)) {
				t.Errorf("commit %d is not in the difference", n)
			}
		}
		if !strings.Contains(diff, "\n  10 added, 0 removed, 0 changed\n") || strings.Contains(diff, "n=20 ") {
			t.Errorf("got %s", diff)
		}
		out := filepath.Join(t.TempDir(), "out.db")
		told(t, p, "quarantine", "export", "-o", out, ours)
		testdb.SameDatabase(t, out, ours)

		b, name := above(t, p)
		prefix := name + ".quarantine/node-a"
		if err := quarantine.Upload(t.Context(), b, prefix, e); err != nil {
			t.Fatal(err)
		}
		testdb.SameDatabase(t, download(t, b, path.Join(prefix, e.ID, "database.db")), ours)
		if got := told(t, p, "quarantine", "list", ours); !strings.Contains(got, " open, uploaded") {
			t.Errorf("listed: %s", got)
		}
		told(t, p, "verify", "-against", theirs, p.URL) // nothing of it is in the replica
		told(t, p, "quarantine", "ack", "-remove", ours)
		if got := told(t, p, "quarantine", "list", ours); !strings.Contains(got, "nothing is set aside") {
			t.Errorf("listed: %s", got)
		}
		restoresEqual(t, p, theirs)
	})
}

// download writes an object to a file.
func download(t *testing.T, b storage.Bucket, key string) string {
	t.Helper()
	body, _, err := b.Get(t.Context(), key, storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	out := filepath.Join(t.TempDir(), "downloaded.db")
	f, err := os.Create(out)
	if err == nil {
		_, err = io.Copy(f, body)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}
