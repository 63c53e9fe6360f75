package main

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

func TestVisitsBeginInOrderAndFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tender := newTender(nil, &workshop{places: 2})
		rnd := rand.New(rand.NewPCG(1, 2))
		start := time.Now()
		visits := make([]*visit, 200)
		for i := range visits {
			tender.mu.Lock()
			visits[i] = tender.of(&slot{})
			tender.plan(visits[i], start.Add(time.Duration(1000+rnd.IntN(1000))*time.Second))
			tender.mu.Unlock()
		}
		tender.mu.Lock()
		for _, v := range visits[:100] {
			tender.plan(v, start.Add(time.Duration(rnd.IntN(1500))*time.Second)) // some earlier, some not
		}
		tender.mu.Unlock()
		for _, v := range visits[50:60] {
			tender.forget(v.slot)
		}
		began := 0
		for last := start; began < 190; {
			var due []time.Time
			next := tender.start(func(v *visit) { due = append(due, time.Now()) })
			if tender.running > 4 {
				t.Fatalf("%d visits at a time", tender.running)
			}
			if len(due) == 0 && next.Before(last) {
				t.Fatalf("the next one is due at %s, before %s", next, last)
			}
			began += len(due)
			tender.running = 0
			last = time.Now()
			if wait := time.Until(next); wait > 0 && began < 190 {
				<-time.After(wait)
			}
		}
		if len(tender.queue) != 0 || time.Since(start) > 2000*time.Second {
			t.Errorf("%d are left after %s", len(tender.queue), time.Since(start))
		}
	})
}

func TestAfterAStartOnlyAReplicaWithMoreThanItsNewestStateIsVisited(t *testing.T) {
	snapshot := ltx.FileInfo{Level: ltx.LevelSnapshot, Min: 1, Max: 7}
	at := ltx.Pos{TXID: 7, PostApplyChecksum: ltx.ChecksumFlag}
	for name, c := range map[string]struct {
		tip  replica.Tip
		want int
	}{
		"nothing":                       {},
		"a snapshot":                    {replica.Tip{Pos: at, Info: snapshot}, 0},
		"files that are to be removed":  {replica.Tip{Pos: at, Info: snapshot, Older: true}, 1},
		"a file that is to be merged":   {replica.Tip{Pos: at, Info: ltx.FileInfo{Min: 7, Max: 7}}, 1},
		"several that are to be merged": {replica.Tip{Pos: at, Info: ltx.FileInfo{Min: 7, Max: 7}, Older: true}, 1},
	} {
		tender := newTender(nil, &workshop{places: 2})
		tender.asked(&slot{}, c.tip)
		if len(tender.queue) != c.want {
			t.Errorf("%s: %d visits are due, want %d", name, len(tender.queue), c.want)
		}
	}
}

func TestAVisitThatGoesOnIsPlannedWhenItEnds(t *testing.T) {
	tender := newTender(nil, &workshop{places: 2})
	s := &slot{}
	if !tender.borrow(s, nil) {
		t.Fatal("nobody visits")
	}
	worker := &keeper{}
	tender.of(s).worker = worker
	if tender.borrow(s, worker) {
		t.Error("there are two visits at a time")
	}
	tender.mu.Lock()
	tender.plan(tender.of(s), time.Now().Add(time.Hour))
	tender.mu.Unlock()
	if len(tender.queue) != 0 {
		t.Error("a visit that goes on is in the queue")
	}
}

func TestVisitsThatWouldComeAtAFullHourAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{-time.Hour, 0, time.Second, time.Hour, 30 * 24 * time.Hour} {
			least, most := time.Duration(1<<62), time.Duration(0)
			for range 1000 {
				late := time.Until(spread(time.Now().Add(d))) - d
				least, most = min(least, late), max(most, late)
			}
			if least < 0 || most > min(mostSpread, max(time.Millisecond, d/8)) || most < min(mostSpread, d/8)*3/4 {
				t.Errorf("in %s: between %s and %s later", d, least, most)
			}
		}
		if !spread(time.Time{}).IsZero() {
			t.Error("what is never due has a time")
		}
	})
}
