package leaser_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestAllWhoConfirmShareOneRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		puts, began := a.bucket.Calls(storagetest.Put), time.Now()
		a.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Effect: storagetest.Lag, Delay: time.Second})
		var group errgroup.Group
		for range 100 {
			group.Go(func() error { return a.term().Confirm(t.Context()) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if n := a.bucket.Calls(storagetest.Put) - puts; n > 2 {
			t.Errorf("%d renewals for 100 who waited", n)
		}
		between(t, "confirmation", time.Since(began), time.Second, 2*time.Second)
	})
}

func TestARenewalThatIsUnderWayConfirmsNothingNew(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		a.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Effect: storagetest.Lag, Delay: time.Second})
		var group errgroup.Group
		group.Go(func() error { return a.term().Confirm(t.Context()) })
		pass(500 * time.Millisecond)
		began := time.Now()
		if err := errors.Join(a.term().Confirm(t.Context()), group.Wait()); err != nil {
			t.Fatal(err)
		}
		between(t, "second confirmation", time.Since(began), 1500*time.Millisecond, 1500*time.Millisecond)
	})
}

func TestAConfirmationSurvivesALostReply(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		a.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Effect: storagetest.LoseReply, Times: 1})
		puts := a.bucket.Calls(storagetest.Put)
		if err := a.term().Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := a.bucket.Calls(storagetest.Put) - puts; n != 1 {
			t.Errorf("%d writes, want that the first one was read back", n)
		}
	})
}

func TestAConfirmationEndsWithTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		a.bucket.Inject(storagetest.Fault{Effect: storagetest.Hang})
		began := time.Now()
		if err := a.term().Confirm(t.Context()); !errors.Is(err, leaser.ErrLost) {
			t.Errorf("got %v", err)
		}
		between(t, "end", time.Since(began), 0, 10*time.Second)
		if err := a.term().Confirm(t.Context()); !errors.Is(err, leaser.ErrLost) {
			t.Errorf("after the end: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.term().Serving(ctx); !errors.Is(err, leaser.ErrLost) {
			t.Errorf("serving: %v", err)
		}
	})
}

func TestHeadsPassFromOneHolderToTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a")
		a.work = func(ctx context.Context, lease *leaser.Lease) error {
			lease.Heads(func() map[string]leaser.Head { return map[string]leaser.Head{"": {TXID: 42, Chain: "cafe"}} })
			if err := lease.Serving(ctx); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}
		a.start()
		pass(time.Second)
		if r := lock(t, b); r.Head == nil || r.Head.TXID != 42 || r.Fence != "000000000000002a" || r.State != leaser.Held {
			t.Errorf("the lock is %+v", r)
		}
		_ = a.stop()
		c := prepare(t, b, "c")
		c.work = func(ctx context.Context, _ *leaser.Lease) error { <-ctx.Done(); return nil } // never serves
		c.start()
		defer stopAll(c)
		pass(10 * time.Second)
		if got := c.term().Prior().AllHeads()[""]; got != (leaser.Head{TXID: 42, Chain: "cafe"}) {
			t.Errorf("prior head %+v", got)
		}
		if r := lock(t, b); r.Generation != 2 || r.Head == nil || r.Head.TXID != 42 {
			t.Errorf("the lock of a holder that knows nothing is %+v", r)
		}
		c.is(leaser.Acquiring)
	})
}

func TestAFenceHoldsWritesBack(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		data := storagetest.NewFaulty(b)
		fenced := leaser.Fence(data, a.term())
		put := func(key string) error {
			_, err := fenced.Put(t.Context(), key, strings.NewReader("x"), storage.Condition{Absent: true})
			return err
		}
		if err := errors.Join(put("one"), fenced.Delete(t.Context(), "none")); err != nil {
			t.Fatal(err)
		}
		a.bucket.Inject(storagetest.Fault{Effect: storagetest.Hang})
		data.Inject(storagetest.Fault{Op: storagetest.Put, Effect: storagetest.Hang, Times: 1})
		began := time.Now()
		if err := put("two"); !errors.Is(err, leaser.ErrLost) {
			t.Errorf("under way: %v", err)
		}
		between(t, "cut short", time.Since(began), 0, 10*time.Second)
		calls := data.Calls(storagetest.Put) + data.Calls(storagetest.Delete)
		if err := put("three"); !errors.Is(err, leaser.ErrLost) {
			t.Errorf("put: %v", err)
		}
		if err := fenced.Delete(t.Context(), "one"); !errors.Is(err, leaser.ErrLost) {
			t.Errorf("delete: %v", err)
		}
		if data.Calls(storagetest.Put)+data.Calls(storagetest.Delete) != calls {
			t.Error("a request was sent after the end of the lease")
		}
		if _, _, err := fenced.Get(t.Context(), "one", storage.Range{}); err != nil {
			t.Errorf("reading: %v", err)
		}
	})
}

func TestAnUploadGoesOnOverRenewals(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		data := storagetest.NewFaulty(b)
		data.Inject(storagetest.Fault{Op: storagetest.Put, Effect: storagetest.Lag, Delay: 5 * time.Minute})
		_, err := leaser.Fence(data, a.term()).Put(t.Context(), "large", strings.NewReader("x"), storage.Condition{})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestStatusTellsWhatIsKnown(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		if s := a.Status(); s.Generation != 1 || s.Remaining <= 0 || s.Degraded || s.LastError != "" || !strings.HasPrefix(s.Holder.Owner, "a/") {
			t.Errorf("primary: %+v", s)
		}
		if s := c.Status(); s.Role != leaser.Follower || s.Generation != 0 || s.Remaining != 0 || !strings.HasPrefix(s.Holder.Owner, "a/") {
			t.Errorf("follower: %+v", s)
		}
		for _, m := range []*machine{a, c} {
			m.bucket.Inject(storagetest.Fault{})
		}
		pass(9 * time.Second)
		if s := c.Status(); s.Role != leaser.CutOff || !strings.Contains(s.LastError, "injected") {
			t.Errorf("follower without a bucket: %+v", s)
		}
		c.bucket.Heal()
		pass(3 * time.Second)
		c.is(leaser.Follower)
	})
}

func TestAPrimaryThatCannotRenewIsDegradedFirst(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		a.bucket.Inject(storagetest.Fault{})
		pass(5 * time.Second)
		if s := a.Status(); s.Role != leaser.Primary || s.Degraded {
			t.Errorf("after some seconds: %+v", s)
		}
		pass(3 * time.Second)
		if s := a.Status(); s.Role != leaser.Primary || !s.Degraded || s.LastError == "" {
			t.Errorf("after 8 s: %+v", s)
		}
		pass(3 * time.Second)
		a.is(leaser.CutOff)
		if leaser.Acquiring.Shown() != leaser.Follower || leaser.CutOff.Shown() != leaser.CutOff {
			t.Error("people are told another role")
		}
	})
}
