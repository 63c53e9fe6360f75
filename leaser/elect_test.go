package leaser_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestAnIdlePrimaryCostsOneRequestPerRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(5 * time.Second)
		a.is(leaser.Primary)
		puts, gets := a.bucket.Calls(storagetest.Put), a.bucket.Calls(storagetest.Get)
		pass(10 * time.Minute)
		if n := a.bucket.Calls(storagetest.Put) - puts; n < 136 || n > 167 {
			t.Errorf("%d renewals in 10 minutes, want one in 4 s", n)
		}
		if n := a.bucket.Calls(storagetest.Get) - gets; n != 0 {
			t.Errorf("%d reads, want none", n)
		}
		if n := a.bucket.Calls(storagetest.List) + a.bucket.Calls(storagetest.Delete); n != 0 {
			t.Errorf("%d other requests, want none", n)
		}
		if a.count("primary") != 1 || a.term().Generation() != 1 {
			t.Errorf("%d terms, generation %d: want the first one", a.count("primary"), a.term().Generation())
		}
	})
}

func TestAnIdleFollowerCostsOneReadPerPoll(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		pass(time.Second)
		c := prepare(t, b, "c").start()
		defer stopAll(a, c)
		pass(5 * time.Second)
		gets := c.bucket.Calls(storagetest.Get)
		pass(10 * time.Minute)
		c.is(leaser.Follower)
		if n := c.bucket.Calls(storagetest.Get) - gets; n < 299 || n > 301 {
			t.Errorf("%d reads in 10 minutes, want one in 2 s", n)
		}
		if n := c.bucket.Calls(storagetest.Put); n != 0 {
			t.Errorf("%d writes, want none", n)
		}
	})
}

func TestAFollowerTakesOverAfterSilenceAndNotBefore(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		pass(time.Second)
		c := prepare(t, b, "c").start()
		defer stopAll(a, c)
		pass(20 * time.Second)
		puts := a.bucket.Calls(storagetest.Put)
		for a.bucket.Calls(storagetest.Put) == puts {
			pass(10 * time.Millisecond)
		}
		renewed := time.Now()
		a.bucket.Inject(storagetest.Fault{Effect: storagetest.Hang})
		pass(60 * time.Second)
		c.is(leaser.Primary)
		a.is(leaser.CutOff)
		between(t, "belief after the last renewal", a.when("lost").Sub(renewed), 9980*time.Millisecond, 10*time.Second)
		between(t, "take-over after the last renewal", c.when("primary").Sub(renewed), 16500*time.Millisecond, 19600*time.Millisecond)
		if err := a.term().Check(); !errors.Is(err, leaser.ErrLost) {
			t.Errorf("check of the old term: %v", err)
		}
		if g := c.term().Generation(); g != 2 {
			t.Errorf("generation %d, want 2", g)
		}
	})
}

func TestADeadlineIsOverAlthoughARequestIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		cfg := leaser.DefaultConfig()
		a := prepare(t, b, "a").startWith(cfg)
		defer stopAll(a)
		pass(3 * time.Second)
		a.bucket.Inject(storagetest.Fault{Effect: storagetest.Hang})
		held := a.term().Remaining()
		began := time.Now()
		pass(20 * time.Second)
		if got := a.when("lost").Sub(began); got != held {
			t.Errorf("lost after %v, want after the %v that remained", got, held)
		}
	})
}

func TestAReleasedLeaseIsTakenAtTheNextPoll(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		pass(time.Second)
		c := prepare(t, b, "c").start()
		defer stopAll(c)
		pass(20 * time.Second)
		ended := time.Now()
		if err := a.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("elect: %v", err)
		}
		if !a.when("left").Equal(ended) {
			t.Error("the end of the process is no step down")
		}
		pass(10 * time.Second)
		between(t, "take-over", c.when("primary").Sub(ended), 0, 2*time.Second)
		if g := c.term().Generation(); g != 2 {
			t.Errorf("generation %d: a release must keep it", g)
		}
	})
}

func TestALockIsNeverDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		pass(10 * time.Second)
		_ = a.stop()
		if r := lock(t, b); r.State != leaser.Released || r.Generation != 1 || !strings.HasPrefix(r.Owner, "a/") {
			t.Errorf("the lock is %s", describe(r))
		}
		if n := a.bucket.Calls(storagetest.Delete); n != 0 {
			t.Errorf("%d deletions", n)
		}
	})
}

func TestAPrimaryThatEndsByItselfReleasesAndWaits(t *testing.T) {
	for name, end := range map[string]error{"well": nil, "with an error": errors.New("no disk")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b storage.Bucket) {
				a := prepare(t, b, "a")
				a.work = func(context.Context, *leaser.Lease) error { return end }
				a.start()
				defer stopAll(a)
				pass(5 * time.Second)
				if r := lock(t, b); r.State != leaser.Released || a.count("primary") != 1 {
					t.Errorf("the lock is %s after %d terms", describe(r), a.count("primary"))
				}
				first := a.when("primary")
				pass(10 * time.Second)
				between(t, "next term", a.when("primary").Sub(first), 10*time.Second, 12*time.Second)
				if g := a.term().Generation(); g != 2 {
					t.Errorf("generation %d, want 2", g)
				}
			})
		})
	}
}

func TestAStandbyThatFailsIsRunAgain(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		pass(time.Second)
		c := prepare(t, b, "c")
		l := leaser.New(c.bucket, c.node, leaser.DefaultConfig(), leaser.Options{Clock: c.clock})
		ctx, end := context.WithCancel(t.Context())
		runs := 0
		c.done.Go(func() error {
			return l.Elect(ctx, leaser.Roles{Standby: func(context.Context) error { runs++; return errors.New("no disk") }, Primary: c.primary})
		})
		pass(time.Minute)
		end()
		if err := c.done.Wait(); !errors.Is(err, context.Canceled) || runs < 3 {
			t.Errorf("standby ran %d times, elect: %v", runs, err)
		}
		_ = c.node.Close()
		stopAll(a)
	})
}

func TestOneOfTwoNewNodesWinsAndTheOtherBelongsToItsCluster(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c := prepare(t, b, "a"), prepare(t, b, "c")
		for _, m := range []*machine{a, c} {
			m.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Delay: time.Second, Effect: storagetest.Lag})
			m.start()
		}
		defer stopAll(a, c)
		pass(30 * time.Second)
		if a.count("primary")+c.count("primary") != 1 {
			t.Errorf("terms: %d and %d", a.count("primary"), c.count("primary"))
		}
		if a.node.Cluster() == "" || a.node.Cluster() != c.node.Cluster() || lock(t, b).Cluster != a.node.Cluster() {
			t.Errorf("clusters %q and %q, lock %q", a.node.Cluster(), c.node.Cluster(), lock(t, b).Cluster)
		}
	})
}

func TestANodeOfAnotherClusterIsRefused(t *testing.T) {
	other := newBucket(t)
	bubble(t, func(t *testing.T, b storage.Bucket) {
		stranger := prepare(t, other, "stranger").start()
		pass(time.Second)
		_ = stranger.stop()
		a := prepare(t, b, "a").start()
		pass(time.Second)
		s := inDirectory(t, b, "stranger", stranger.dir).start()
		if err := s.done.Wait(); !errors.Is(err, leaser.ErrCluster) {
			t.Errorf("elect: %v", err)
		}
		stopAll(a)
	})
}
