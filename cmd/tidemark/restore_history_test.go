package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// alternating is a replica of a database of one page that has two contents in
// turns, and their checksums.
func alternating(t *testing.T, states ltx.TXID) (*replica.Replica, *storagetest.Faulty, [2]ltx.Checksum) {
	t.Helper()
	dir, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := storagetest.NewFaulty(dir)
	r := replica.New(b, replica.LayoutDir, slog.New(slog.DiscardHandler))
	var sums [2]ltx.Checksum
	for txid := ltx.TXID(1); txid <= states; txid++ {
		page := bytes.Repeat([]byte{byte(txid % 2)}, 512)
		sum := ltx.ChecksumFlag | ltx.ChecksumPage(1, page)
		spec := ltx.Spec{
			Header:    ltx.Header{PageSize: 512, Commit: 1, MinTXID: txid, MaxTXID: txid, Timestamp: 1},
			Pages:     []ltx.PageSpec{{Pgno: 1, Data: page}},
			PostApply: sum,
		}
		if txid > 1 {
			spec.Header.PreApplyChecksum = sums[(txid-1)%2]
		}
		sums[txid%2] = sum
		var file bytes.Buffer
		if _, err := spec.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		key := r.Key(ltx.FileInfo{Min: txid, Max: txid})
		if _, err := b.Put(t.Context(), key, bytes.NewReader(file.Bytes()), storage.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	return r, b, sums
}

func TestANoteSaysWhichStateItIsIfTheReplicaAgrees(t *testing.T) {
	r, b, sums := alternating(t, 12)
	path := filepath.Join(t.TempDir(), "app.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		note string
		want ltx.TXID
	}{
		"none":               {"", 11},
		"a true one":         {fmt.Sprintf("0000000000000003 %s\n", sums[1]), 3},
		"another checksum":   {fmt.Sprintf("0000000000000003 %s\n", sums[0]), 11},
		"not that state":     {fmt.Sprintf("0000000000000004 %s\n", sums[1]), 11},
		"of another replica": {fmt.Sprintf("0000000000000063 %s\n", sums[1]), 11},
		"damaged":            {"000000", 11},
		"empty":              {"\n", 11},
	} {
		dir := filepath.Join(filepath.Dir(path), ".app.db-tidemark")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if tt.note != "" {
			if err := writeNote(path, dir, tt.note); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := (history{r, path}).Find(t.Context(), sums[1]); err != nil || got != tt.want {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, tt.want)
		}
	}
	result := replica.RestoreResult{Pos: ltx.Pos{TXID: 5, PostApplyChecksum: sums[1]}, Newest: 12}
	if err := notePosition(path, result); err != nil {
		t.Fatal(err)
	}
	if pos, err := readNote(path); err != nil || pos != result.Pos {
		t.Errorf("the note says %v, %v; want %v", pos, err, result.Pos)
	}
	b.FailNext(1)
	if got, err := (history{r, path}).Find(t.Context(), sums[1]); err == nil {
		t.Errorf("a bucket that fails: got %v without an error", got)
	}
}
