package replica_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/replica"
)

func TestADeletionWaitsForReadsAndHoldsNoneUpMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g replica.Gate
		first, err := g.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var group errgroup.Group
		var deleting atomic.Bool
		group.Go(func() error {
			done, err := g.Delete(t.Context())
			if err != nil {
				return err
			}
			deleting.Store(true)
			<-time.After(time.Minute)
			deleting.Store(false)
			done()
			return nil
		})
		synctest.Wait()
		second, err := g.Read(t.Context()) // does not wait for the one that waits
		if err != nil || deleting.Load() {
			t.Fatalf("%v, deleting: %v", err, deleting.Load())
		}
		first()
		first() // ends the read once
		synctest.Wait()
		if deleting.Load() {
			t.Error("deletes while something is read")
		}
		second()
		synctest.Wait()
		if !deleting.Load() {
			t.Error("does not delete although nothing is read")
		}
		start := time.Now()
		third, err := g.Read(t.Context())
		if err != nil || deleting.Load() || time.Since(start) != time.Minute {
			t.Errorf("read after %v: %v", time.Since(start), err)
		}
		third()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhoWaitsAtTheGateObeysTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g replica.Gate
		done, err := g.Delete(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if _, err := g.Delete(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("delete: %v", err)
		}
		done()
		if _, err := g.Read(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestReadsAndDeletionsNeverMeet(t *testing.T) {
	var g replica.Gate
	var reads, deletions atomic.Int64
	var group errgroup.Group
	for i := range 8 {
		group.Go(func() error {
			for range 200 {
				enter, mine, other := g.Read, &reads, &deletions
				if i == 0 {
					enter, mine, other = g.Delete, &deletions, &reads
				}
				done, err := enter(t.Context())
				if err != nil {
					return err
				}
				mine.Add(1)
				if n := other.Load(); n != 0 {
					t.Errorf("meets %d others", n)
				}
				mine.Add(-1)
				done()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
