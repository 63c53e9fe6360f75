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

// three starts a primary a and two followers.
func three(t *testing.T, b storage.Bucket) (a, c, d *machine) {
	t.Helper()
	a = prepare(t, b, "a").start()
	pass(time.Second)
	a.is(leaser.Primary)
	c, d = prepare(t, b, "c").start(), prepare(t, b, "d").start()
	pass(9 * time.Second)
	return a, c, d
}

// drainFor lets a primary go on for a while after it was asked to end.
func (m *machine) drainFor(d time.Duration) {
	m.work = func(ctx context.Context, lease *leaser.Lease) error {
		if err := lease.Serving(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		held, done := lease.WhileHeld(context.WithoutCancel(ctx))
		defer done()
		select {
		case <-held.Done():
			m.happens("cut short")
		case <-time.After(d):
		}
		return nil
	}
}

func TestAHandoverIsForTheSuccessor(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		began := time.Now()
		if err := a.StepDown(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		if r := lock(t, b); r.State != leaser.Handoff || r.Successor != "d" || r.Generation != 1 {
			t.Errorf("the lock is %s for %q", describe(r), r.Successor)
		}
		pass(30 * time.Second)
		between(t, "take-over", d.when("primary").Sub(began), 0, 2*time.Second)
		if c.count("primary")+d.count("primary") != 1 || a.count("primary") != 1 {
			t.Errorf("terms: a %d, c %d, d %d", a.count("primary"), c.count("primary"), d.count("primary"))
		}
	})
}

func TestTheOthersWaitForASuccessorThatDoesNotCome(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		began := time.Now()
		if err := a.StepDown(t.Context(), "nobody"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		var next time.Time
		for _, m := range []*machine{a, c, d} {
			if at := m.when("primary"); at.After(began) {
				next = at
			}
		}
		between(t, "take-over", next.Sub(began), 21500*time.Millisecond, 24500*time.Millisecond)
	})
}

func TestASteppedDownPrimaryDoesNotCompeteForAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(time.Second)
		began := time.Now()
		if err := a.StepDown(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		pass(20 * time.Second)
		between(t, "next term", a.when("primary").Sub(began), 10*time.Second, 12*time.Second)
		if err := a.StepDown(t.Context(), "a"); err == nil {
			t.Error("a node succeeded itself")
		}
	})
}

func TestAFollowerCannotStepDown(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		if err := c.StepDown(t.Context(), ""); !errors.Is(err, leaser.ErrNotPrimary) {
			t.Errorf("got %v", err)
		}
	})
}

func TestARenewalGoesOnWhileAPrimaryDrains(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a")
		a.drainFor(9 * time.Second)
		a.start()
		pass(3 * time.Second)
		c := prepare(t, b, "c").start()
		defer stopAll(a, c)
		pass(3 * time.Second)
		began := time.Now()
		if err := a.StepDown(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		between(t, "take-over", c.when("primary").Sub(began), 9*time.Second, 9600*time.Millisecond)
		if a.count("cut short") != 0 || a.count("lost") != 0 {
			t.Error("the lease was lost while the primary drained")
		}
	})
}

func TestADrainThatDoesNotEndIsCutShort(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a")
		a.drainFor(time.Hour)
		a.start()
		defer stopAll(a)
		pass(3 * time.Second)
		began := time.Now()
		err := a.StepDown(t.Context(), "")
		if !errors.Is(err, leaser.ErrLost) {
			t.Errorf("step down: %v", err)
		}
		between(t, "end", time.Since(began), 10*time.Second, 20*time.Second)
		pass(time.Second)
		if a.count("cut short") != 1 {
			t.Error("the drain was not cut short")
		}
	})
}

func TestAPromotedFollowerIsHandedTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		began := time.Now()
		if err := c.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.is(leaser.Primary)
		between(t, "promotion", time.Since(began), 0, 5500*time.Millisecond)
		between(t, "gap", c.when("primary").Sub(a.when("left")), 0, 500*time.Millisecond)
		if r := lock(t, b); r.Generation != 2 || r.Request != "" || r.Successor != "" || r.Leaving {
			t.Errorf("the lock is %+v", r)
		}
		if a.count("lost") != 0 {
			t.Error("the asked primary lost its lease")
		}
		if err := c.Promote(t.Context()); err != nil {
			t.Errorf("promotion of the primary: %v", err)
		}
	})
}

func TestAPromotionSucceedsWithoutTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(c, d)
		a.kill()
		killed := time.Now()
		pass(3 * time.Second)
		if err := c.Promote(t.Context()); err != nil && d.count("primary") == 0 {
			t.Fatal(err)
		}
		between(t, "promotion", time.Since(killed), 0, 19*time.Second)
	})
}

func TestAPromotionThatIsGivenUpSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		c.bucket.Inject(storagetest.Fault{Op: storagetest.Put})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		want := ": node a has the lease, and could not be asked to hand over: write the lock: "
		if err := c.Promote(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
		a.is(leaser.Primary)
	})
}

func TestAHandoverTellsWhoTookTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a, c, d := three(t, b)
		defer stopAll(a, c, d)
		if err := a.HandOver(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		if r := lock(t, b); r.Node() != "d" {
			t.Errorf("it is back, but the lock is %s", describe(r))
		}
		pass(time.Second)
		err := d.HandOver(t.Context(), "nobody")
		if r := lock(t, b); err == nil || !strings.Contains(err.Error(), "node nobody did not take the lease; the primary is node "+r.Node()+" now, generation 3") {
			t.Errorf("got %v, and the lock is %s", err, describe(r))
		}
		pass(time.Second)
		for _, m := range []*machine{a, c, d} {
			if m.Status().Role != leaser.Primary {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if err := m.HandOver(ctx, "nobody"); err == nil || !strings.Contains(err.Error(), "released, but node nobody has not taken it") {
				t.Errorf("got %v", err)
			}
			cancel()
			return
		}
		t.Error("nobody is the primary")
	})
}
