//go:build e2e

package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// requests counts those since a moment, by what they do. A start also looks, once
// each, where the lock of nodes with a lease would be.
func requests(p rig.Place, since time.Time) (lists, gets int) {
	for _, r := range p.Meter.Requests() {
		switch {
		case r.Start.Before(since) || r.Method != http.MethodGet || strings.HasSuffix(r.Path, "/lock.json"):
		case strings.Contains(r.Query, "list-type=2"):
			lists++
		default:
			gets++
		}
	}
	return lists, gets
}

func TestAStartListsOnceAndMergingReadsWhatIsHere(t *testing.T) {
	t.Parallel()
	const settings = "levels: [{interval: 2s}, {interval: 5s}]\nsnapshot: {interval: 24h}\nl0-retention: 1h\n"
	p := rig.S3(t)
	path, db := live(t, testdb.Options{})
	sidecar := sidecarWith(t, path, p, settings)
	awaitFile(t, p)
	commit(t, db, 5)
	stop(t, sidecar)

	began := time.Now()
	sidecar = sidecarWith(t, path, p, settings)
	load := modest(100)
	load.Rate = 10
	testdb.StartWriter(t, path, load).Wait(t)
	rig.Eventually(t, rig.Limit, func(context.Context) error { return levels(t, p, 1, 2) })
	stop(t, sidecar)
	lists, gets := requests(p, began)
	t.Logf("%d listings and %d reads for %d files of level 0 and %d merged ones", lists, gets,
		len(p.Level(t, 0)), len(p.Level(t, 1))+len(p.Level(t, 2)))
	// Read are the newest file, for the start, and those that were there before.
	if lists != 1 || gets > 4 {
		t.Errorf("%d listings and %d reads", lists, gets)
	}
	restoresEqual(t, p, path)
}
