package turns_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/turns"
)

// diary writes down when each of several members began a turn.
type diary struct {
	line  *turns.Line
	began map[string][]time.Duration
	start time.Time
	most  int
	now   int
	lock  chan struct{} // capacity 1
}

// player takes turns as told.
type player struct {
	name string
	d    *diary
	play func(ctx context.Context, t *turns.Turn) turns.Next
}

func (p *player) Turn(ctx context.Context, t *turns.Turn) turns.Next {
	p.d.lock <- struct{}{}
	p.d.began[p.name] = append(p.d.began[p.name], time.Since(p.d.start))
	p.d.now++
	p.d.most = max(p.d.most, p.d.now)
	<-p.d.lock
	next := p.play(ctx, t)
	p.d.lock <- struct{}{}
	p.d.now--
	<-p.d.lock
	return next
}

func (d *diary) join(name string, play func(context.Context, *turns.Turn) turns.Next) *turns.Member {
	return d.line.Join(&player{name, d, play})
}

// polite keeps its place until it is asked for it.
func polite(ctx context.Context, t *turns.Turn) turns.Next {
	select {
	case <-ctx.Done():
	case <-t.Asked():
	}
	return turns.Next{}
}

// pass lets time pass and everything happen that is due by then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// play runs a line of so many places in a bubble.
func play(t *testing.T, places int, scene func(d *diary)) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{line: turns.New(places), began: map[string][]time.Duration{}, start: time.Now(), lock: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var group errgroup.Group
		group.Go(func() error { return d.line.Run(ctx) })
		synctest.Wait()
		scene(d)
		cancel()
		if err := group.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("the line ended with %v", err)
		}
		if d.most > places {
			t.Errorf("%d turns at once at %d places", d.most, places)
		}
	})
}

func (d *diary) expect(t *testing.T, name string, times ...time.Duration) {
	t.Helper()
	synctest.Wait()
	got := d.began[name]
	if len(got) != len(times) {
		t.Errorf("%s had turns at %v, want %v", name, got, times)
		return
	}
	for i := range got {
		if got[i] != times[i] {
			t.Errorf("%s had turns at %v, want %v", name, got, times)
		}
	}
}

func TestAMemberKeepsItsPlaceWhileNobodyWaits(t *testing.T) {
	play(t, 2, func(d *diary) {
		for _, name := range []string{"a", "b"} {
			d.join(name, polite).Wake()
		}
		pass(time.Hour)
		d.expect(t, "a", 0)
		d.expect(t, "b", 0)
	})
}

func TestTheLeastRecentlyActiveMakesRoom(t *testing.T) {
	play(t, 2, func(d *diary) {
		a, b := d.join("a", polite), d.join("b", polite)
		a.Wake()
		synctest.Wait()
		pass(time.Second)
		b.Wake()
		synctest.Wait()
		pass(time.Second)
		a.Wake() // active again, so b is the one to go
		d.join("c", polite).Wake()
		synctest.Wait()
		b.Wake()
		d.expect(t, "c", 2*time.Second)
		d.expect(t, "b", time.Second, 2*time.Second)
	})
}

func TestOneThatDoesNotEndHoldsUpNobodyElse(t *testing.T) {
	play(t, 2, func(d *diary) {
		stubborn := func(ctx context.Context, _ *turns.Turn) turns.Next {
			<-ctx.Done()
			return turns.Next{}
		}
		d.join("stubborn", stubborn).Wake()
		synctest.Wait()
		pass(time.Second)
		d.join("polite", polite).Wake()
		synctest.Wait()
		pass(time.Second)
		d.join("late", polite).Wake()
		pass(100 * time.Millisecond)
		d.expect(t, "late", 2020*time.Millisecond)
	})
}

func TestAskingEndsWhenNobodyWaitsAnyMore(t *testing.T) {
	play(t, 2, func(d *diary) {
		wanted := func() bool { return false }
		slow := func(ctx context.Context, turn *turns.Turn) turns.Next {
			wanted = turn.Wanted
			<-ctx.Done()
			return turns.Next{}
		}
		d.join("slow", slow).Wake()
		d.join("polite", polite).Wake()
		synctest.Wait()
		short := func(context.Context, *turns.Turn) turns.Next { return turns.Next{} }
		d.join("late", short).Wake()
		pass(time.Second)
		if wanted() {
			t.Error("a turn is asked to end though nobody waits")
		}
	})
}

func TestAWakeDuringATurnIsNotLost(t *testing.T) {
	for name, looks := range map[string]bool{"without a look": false, "before the last look": true} {
		t.Run(name, func(t *testing.T) {
			play(t, 1, func(d *diary) {
				m := d.join("a", func(_ context.Context, turn *turns.Turn) turns.Next {
					if len(d.began["a"]) == 1 {
						<-time.After(time.Second)
					}
					if looks {
						turn.Look()
					}
					return turns.Next{}
				})
				m.Wake()
				synctest.Wait()
				m.Wake()
				pass(time.Minute)
				if looks {
					d.expect(t, "a", 0)
				} else {
					d.expect(t, "a", 0, time.Second)
				}
			})
		})
	}
}

func TestTurnsComeInOrder(t *testing.T) {
	play(t, 1, func(d *diary) {
		var order []string
		joined := make(chan struct{})
		d.join("first", func(context.Context, *turns.Turn) turns.Next {
			<-joined // the others are in the line before any has its turn
			return turns.Next{}
		}).Wake()
		synctest.Wait()
		for _, name := range []string{"a", "b", "c", "a2"} {
			d.join(name, func(context.Context, *turns.Turn) turns.Next {
				order = append(order, name)
				return turns.Next{Again: len(order) < 8}
			}).Wake()
		}
		close(joined)
		synctest.Wait()
		for i, name := range order {
			if want := []string{"a", "b", "c", "a2"}[i%4]; name != want {
				t.Fatalf("the order is %v", order)
			}
		}
	})
}

func TestAPauseIsNotShortenedByWakes(t *testing.T) {
	play(t, 1, func(d *diary) {
		m := d.join("a", func(context.Context, *turns.Turn) turns.Next {
			if len(d.began["a"]) == 1 {
				return turns.Next{After: time.Minute}
			}
			return turns.Next{}
		})
		m.Wake()
		synctest.Wait()
		m.Wake()
		d.join("b", polite).Wake() // others are not held up
		pass(time.Hour)
		d.expect(t, "a", 0, time.Minute)
		d.expect(t, "b", 0)
	})
}
