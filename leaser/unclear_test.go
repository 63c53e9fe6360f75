package leaser_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func TestALostReplyIsNoLostLease(t *testing.T) {
	for name, fault := range map[string]storagetest.Fault{
		"lost":           {Op: storagetest.Put, Times: 1, Effect: storagetest.LoseReply},
		"refused":        {Op: storagetest.Put, Times: 1, Effect: storagetest.LoseReply, Err: storage.ErrPrecondition},
		"never arrived":  {Op: storagetest.Put, Times: 1},
		"hangs":          {Op: storagetest.Put, Times: 1, Effect: storagetest.Hang},
		"twice":          {Op: storagetest.Put, Times: 2, Effect: storagetest.LoseReply},
		"access denied":  {Op: storagetest.Put, Times: 1, Err: storage.ErrForbidden},
		"reads fail too": {Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b storage.Bucket) {
				a := prepare(t, b, "a")
				a.bucket.Inject(fault) // of the acquisition
				a.start()
				defer stopAll(a)
				pass(8 * time.Second)
				a.is(leaser.Primary)
				terms, generation := a.count("primary"), a.term().Generation()
				for range 5 { // renewals
					a.bucket.Inject(fault)
					pass(12 * time.Second)
					a.is(leaser.Primary)
				}
				if a.count("primary") != terms || terms != 1 || generation != 1 {
					t.Errorf("%d terms, then %d", terms, a.count("primary"))
				}
			})
		})
	}
}

func TestAWrongClockRunsOut(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		puts := a.bucket.Calls(storagetest.Put)
		a.bucket.Inject(storagetest.Fault{Op: storagetest.Put, Err: errors.Join(storage.ErrForbidden, storage.ErrSkewed)})
		pass(8 * time.Second)
		if n := a.bucket.Calls(storagetest.Put) - puts; n != 1 {
			t.Errorf("%d attempts, want no other after the first", n)
		}
		pass(5 * time.Second)
		if a.count("lost") != 1 {
			t.Error("the lease is still held")
		}
	})
}

// meddle replaces the lock, or removes it.
func meddle(t *testing.T, b storage.Bucket, content string) {
	t.Helper()
	var err error
	if content == "" {
		err = b.Delete(t.Context(), leaser.Key)
	} else {
		_, err = b.Put(t.Context(), leaser.Key, strings.NewReader(content), storage.Condition{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestALockThatWasMeddledWithIsLost(t *testing.T) {
	for name, content := range map[string]string{
		"removed":  "",
		"garbage":  "not a lock",
		"an array": "[]",
		"an older": `{"generation":1,"owner":"old/1","nonce":"1","state":"held","expires_at":"2000-01-01T00:00:00Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b storage.Bucket) {
				a := prepare(t, b, "a")
				meddle(t, b, `{"generation":6,"owner":"old/1","nonce":"1","state":"released","expires_at":"2000-01-01T00:00:00Z"}`)
				a.start()
				defer stopAll(a)
				pass(time.Second)
				if g := a.term().Generation(); g != 7 {
					t.Fatalf("generation %d, want 7", g)
				}
				meddle(t, b, content)
				pass(5 * time.Second)
				if a.count("lost") != 1 {
					t.Error("the lease is still held")
				}
				pass(30 * time.Second)
				a.is(leaser.Primary)
				if g := a.term().Generation(); g != 8 {
					t.Errorf("generation %d, want 8: none comes again", g)
				}
			})
		})
	}
}

func TestAVanishedLockGoesOnAfterTheGenerationsOfTheReplica(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a")
		failures := 2
		a.floor = floor(41, &failures)
		a.start()
		defer stopAll(a)
		pass(10 * time.Second)
		if g := a.term().Generation(); g != 42 || failures != 0 {
			t.Errorf("generation %d, want 42", g)
		}
	})
}

func TestABrokenLockIsTakenAtOnceAndItsHolderStops(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		_, etag, err := leaser.Read(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if err := leaser.Break(t.Context(), b, etag, "the operator"); err != nil {
			t.Fatal(err)
		}
		if err := leaser.Break(t.Context(), b, etag, "the operator"); !errors.Is(err, storage.ErrPrecondition) {
			t.Errorf("second break: %v", err)
		}
		pass(5 * time.Second)
		if a.count("lost") != 1 || c.count("primary")+d.count("primary") != 1 {
			t.Errorf("lost %d, terms of the others %d", a.count("lost"), c.count("primary")+d.count("primary"))
		}
		if r := lock(t, b); r.Generation != 2 {
			t.Errorf("the lock is %s", describe(r))
		}
	})
}

func TestTheLockOfAnotherProgramIsWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		expires   time.Duration
		low, high time.Duration
	}{
		"that has expired":        {-time.Hour, 16500 * time.Millisecond, 17600 * time.Millisecond},
		"that expires later":      {25 * time.Second, 25 * time.Second, 27100 * time.Millisecond},
		"that expires in an hour": {time.Hour, 30 * time.Second, 32100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b storage.Bucket) {
				expires := time.Now().Add(test.expires).UTC().Format(time.RFC3339Nano)
				meddle(t, b, `{"generation":3,"expires_at":"`+expires+`","owner":"host:123","more":{}}`)
				began := time.Now()
				a := prepare(t, b, "a").start()
				defer stopAll(a)
				pass(time.Minute)
				between(t, "take-over", a.when("primary").Sub(began), test.low, test.high)
				if g := a.term().Generation(); g != 4 {
					t.Errorf("generation %d, want 4", g)
				}
			})
		})
	}
}
