package replica_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

func TestStatesAreExactlyWhatCanBePlanned(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		files := randomFiles(r)
		var want []ltx.TXID
		for txid := ltx.TXID(1); txid < 30; txid++ {
			if _, err := replica.Plan(files, 0, txid); err == nil {
				want = append(want, txid)
			}
		}
		if got := replica.States(files); !slices.Equal(got, want) {
			t.Fatalf("files %v: got states %v, want %v", files, got, want)
		}
	}
}

func TestAClaimBesideASnapshotLeadsNowhere(t *testing.T) {
	claim := file(0, 5, 5)
	claim.Size = ltx.HeaderSize + ltx.PageHeaderSize + 1 + 8 + ltx.TrailerSize
	files := []ltx.FileInfo{file(9, 1, 4), claim, file(9, 1, 5), file(0, 6, 6)}
	plan, err := replica.Plan(files, 4, 0)
	if want := []ltx.FileInfo{file(9, 1, 5), file(0, 6, 6)}; err != nil || !slices.Equal(plan, want) {
		t.Errorf("got %v, %v; want %v", plan, err, want)
	}
}
