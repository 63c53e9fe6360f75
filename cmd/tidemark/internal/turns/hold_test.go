package turns_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/turns"
)

func TestAnOutageCostsFewTurnsAndEndsForAllAtOnce(t *testing.T) {
	const members = 1000
	play(t, 4, func(d *diary) {
		var away atomic.Bool
		away.Store(true)
		count := func() (n int) {
			d.lock <- struct{}{}
			defer func() { <-d.lock }()
			for _, times := range d.began {
				n += len(times)
			}
			return n
		}
		for i := range members {
			d.join(fmt.Sprint(i), func(context.Context, *turns.Turn) turns.Next {
				<-time.After(time.Millisecond)
				if away.Load() {
					return turns.Next{Until: "bucket"}
				}
				d.line.Release("bucket")
				return turns.Next{}
			}).Wake()
		}
		pass(10 * time.Second)
		before := count()
		if before < members || before > members+10 {
			t.Errorf("%d turns for %d members in 10 s of the outage", before, members)
		}
		pass(time.Hour)
		if n := count() - before; n < 3600/20 || n > 3600/5 {
			t.Errorf("%d tries in an hour", n)
		}
		before = count()
		away.Store(false)
		pass(20 * time.Second)
		if n := count() - before; n != members {
			t.Errorf("%d turns after the outage, want one for each of %d", n, members)
		}
	})
}

func TestAnotherOneTriesWhenTheFirstFoundOutNothing(t *testing.T) {
	play(t, 1, func(d *diary) {
		fail := func(name string, second turns.Next) {
			d.join(name, func(context.Context, *turns.Turn) turns.Next {
				if len(d.began[name]) == 1 {
					return turns.Next{Until: "bucket"}
				}
				return second
			}).Wake()
		}
		fail("broken", turns.Next{After: 24 * time.Hour})
		fail("gone", turns.Next{})
		fail("good", turns.Next{Until: "bucket"})
		pass(time.Minute)
		synctest.Wait()
		for name, want := range map[string]int{"broken": 2, "gone": 2} {
			if n := len(d.began[name]); n != want {
				t.Errorf("%s had %d turns, want %d", name, n, want)
			}
		}
		if n := len(d.began["good"]); n < 4 {
			t.Errorf("the last one tried %d times only", n)
		}
	})
}

func TestOneOutageDoesNotHoldUpOthers(t *testing.T) {
	play(t, 1, func(d *diary) {
		d.join("a", func(context.Context, *turns.Turn) turns.Next { return turns.Next{Until: "one"} }).Wake()
		d.join("b", func(context.Context, *turns.Turn) turns.Next { return turns.Next{} }).Wake()
		d.line.Release("another")
		d.expect(t, "a", 0)
		d.expect(t, "b", 0)
	})
}
